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
  const muted = (/** @type {string | null | undefined} */ text) => (text ? h("span", { class: "muted" }, text) : null);
  const age = (/** @type {any} */ one) => muted(one.last_seen_at ? `${one.count > 1 ? `${one.count} times, ` : ""}last ${ago(one.last_seen_at)}` : null);
  const help = (/** @type {any} */ { label, payload }) => h("span", { class: "row-action" }, h("span", { class: "muted" }, ...withCode(label)), payload?.command ? command(payload.command) : null);
  /** A row of a finding. @param {any} one @param {any} title */
  const finding = (one, title) => h("li", { class: "row" }, sign(one.severity), h("div", { class: "row-text" }, h("span", { class: "row-title" }, title),
    h("span", null, ...withCode([one.title, one.detail].filter((text, at) => text && (at === 0 || text !== one.title)).join(": "))), age(one), h("div", { class: "row-actions" }, (one.actions ?? []).slice(0, 2).map(help))));
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
      // Runs that do not end are listed with their tasks.
      const ofRoot = (status.problems ?? []).filter((/** @type {any} */ one) => one.subject);
      const ofTasks = diagnosed.filter((task) => task.task_id);
      const next = JSON.stringify([ofRoot, ofTasks]);
      if (next === shape) return;
      shape = next;
      rows = [
        ...ofRoot.map((/** @type {any} */ one) => finding(one, capital(one.subject))),
        ...ofTasks.flatMap((task) => task.diagnostics.map((/** @type {any} */ one) => finding(one, h("a", { href: here({ task: task.task_id }) }, task.title)))),
      ];
      show(isWhole);
    },
  };
}
