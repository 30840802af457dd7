// What is wrong with tasks, files of the configuration, policies, channels and plugins, with the commands that help.

import { command, h, put } from "../dom.js";
import { here } from "../route.js";
import { withCode } from "../drawer/section.js";
import { capital } from "../parts/reason.js";
import { ago } from "../time.js";
import { severity as sign } from "../parts/state.js";

/** So many are shown at first. */
const FIRST = 5;

export function problems() {
  const list = h("ul", { class: "reports panel", hidden: true });
  let isWhole = false;
  /** @type {HTMLElement[]} */
  let rows = [];
  const more = h("button", { type: "button", class: "button small more-button", hidden: true, onclick: () => show(!isWhole) });
  // Not before the daemon has said so.
  const none = h("p", { class: "muted", hidden: true }, "No problem is known.");
  const element = h("section", { class: "work-section", "aria-labelledby": "problems-title" }, h("h2", { id: "problems-title" }, "Problems"), none, list, more);
  let shape = "";
  const row = (/** @type {string} */ severity, /** @type {any} */ title, /** @type {any[]} */ ...rest) => h("li", { class: "row" }, sign(severity), h("div", { class: "row-text" }, h("span", { class: "row-title" }, title), rest));
  const muted = (/** @type {string | null | undefined} */ text) => (text ? h("span", { class: "muted" }, text) : null);
  /** @param {boolean} all */
  function show(all) {
    isWhole = all;
    none.hidden = rows.length > 0;
    list.hidden = rows.length === 0;
    put(list, all ? rows : rows.slice(0, FIRST));
    more.hidden = rows.length <= FIRST;
    put(more, all ? "Show fewer" : `Show ${rows.length - FIRST} more`);
  }

  return {
    element,
    /** @param {any[]} diagnosed @param {any} status */
    update(diagnosed, status) {
      const next = JSON.stringify([diagnosed, status.defects, status.unheld_policies, status.failing_channels, status.paused_plugins, status.spent_budgets, status.board_troubles, status.broken]);
      if (next === shape) return;
      shape = next;
      // What is broken has words beside its name.
      const words = new Map((status.broken ?? []).map((/** @type {any} */ one) => [one.release?.replace("supervisor release --", ""), capital(one.what)]));
      rows = [
        ...Object.entries(status.board_troubles ?? {}).map(([board, why]) => row("critical", `board ${board} is not written`, muted(String(why)))),
        ...(status.defects ?? []).map((/** @type {any} */ defect) => row("error", `${defect.path}${defect.line ? `, line ${defect.line}` : ""}`, muted([defect.key, defect.message].filter(Boolean).join(": ")))),
        ...Object.entries(status.unheld_policies ?? {}).map(([policy, why]) => row("error", `this host cannot enforce the policy ${policy}`, muted(String(why)))),
        ...(status.failing_channels ?? []).map((/** @type {any} */ mail) => row("warning", `channel ${mail.channel}: ${mail.waiting} wait, ${mail.dead} not delivered`, muted(mail.last_error), command("supervisor notify outbox"))),
        ...(status.paused_plugins ?? []).map((/** @type {any} */ cursor) => row("warning", `plugin ${cursor.plugin} gets no events`, muted(cursor.last_error), command(`supervisor plugins resume ${cursor.plugin}`))),
        ...diagnosed.flatMap((task) => task.diagnostics.map((/** @type {any} */ one) =>
          row(one.severity, h("a", { href: here({ task: task.task_id }) }, words.get(task.title) ?? task.title), h("span", null, ...withCode([one.title, one.detail].filter((text, at) => text && (at === 0 || text !== one.title)).join(": "))), muted(`${one.count > 1 ? `${one.count} times, ` : ""}last ${ago(one.last_seen_at)}`),
            h("div", { class: "row-actions" }, (one.actions ?? []).filter((/** @type {any} */ action) => action.payload?.command).slice(0, 2).map((/** @type {any} */ action) => h("span", { class: "row-action" }, h("span", { class: "muted" }, ...withCode(action.label)), command(action.payload.command))))))),
      ];
      show(isWhole);
    },
  };
}
