// The runs of a task as coloured rows: outcome, exit, cost, duration, tokens, the log; and what is known of each.
import { h, icon } from "../dom.js";
import { count, usd, bytes } from "../money.js";
import { link } from "../route.js";
import { at, duration, now, stamp } from "../time.js";
import { problem as failed } from "../toast.js";
import { sandbox } from "./sandbox.js";
import { details, keyed, section, some } from "./section.js";
import { runs as page } from "./server.js";

/** How many runs are shown at first, and more at each demand. */
const STEP = 10;

/** The kind of an outcome, which gives its colour. */
const KINDS = {
  completed: "ok", approved: "ok", check_passed: "ok", review_requested: "ok",
  blocked: "warn", changes_requested: "warn", cancelled: "warn", reclaimed: "warn", preempted: "warn", rate_limited: "warn",
  crashed: "bad", timed_out: "bad", stalled: "bad", out_of_memory: "bad", unreported: "bad", lost: "bad", spawn_failed: "bad", check_failed: "bad",
};

/** Returns the list. @param {import("./drawer.js").Desk} drawer */
export function runs(drawer) {
  const part = section("Runs");
  const list = h("ul", { class: "runs" });
  const older = h("button", { type: "button", class: "drawer-older", hidden: true, onclick: () => showOlder() });
  const none = h("p", { class: "drawer-none" }, "It has not run yet.");
  part.body.append(none, list, older);
  const paint = keyed(list, (run) => run.id, row);
  /** @type {Map<number, any>} */
  const known = new Map();
  let limit = STEP;
  let more = false;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let clock;

  const show = () => {
    const all = [...known.values()].sort((a, b) => b.id - a.id);
    paint(all.slice(0, limit));
    const left = all.length - limit;
    older.hidden = left <= 0 && !more;
    older.textContent = more ? "Show older runs" : `Show ${some(left, STEP * 5)} older runs`;
    none.hidden = all.length > 0;
    part.count(more ? `${all.length}+` : all.length);
    tick();
  };
  const showOlder = async () => {
    limit += STEP * 5;
    if (more) {
      older.disabled = true;
      try {
        let cursor = null;
        do {
          const reply = await page(drawer.id, cursor);
          for (const run of reply.runs) known.set(run.id, run);
          cursor = reply.next;
        } while (cursor && known.size < limit + 10_000);
        more = Boolean(cursor);
      } catch (problem) {
        failed(problem);
      }
      older.disabled = false;
    }
    show();
  };
  const tick = () => {
    for (const live of list.querySelectorAll("[data-since]")) live.textContent = duration(Math.max(0, now() - Number(live.dataset.since)));
  };
  return {
    element: part.element,
    update: (shown) => {
      const isFirst = known.size === 0;
      for (const run of shown.runs) known.set(run.id, run);
      if (isFirst) more = (shown.more ?? []).includes("runs");
      show();
      clock ??= setInterval(tick, 1000);
    },
    end: () => clearInterval(clock),
  };
}

/** @param {any} run */
function row(run) {
  const isLive = !run.ended_at;
  const word = (run.outcome ?? run.status ?? "").replaceAll("_", " ");
  const kind = isLive ? "live" : KINDS[run.outcome] ?? "none";
  const spent = run.spent;
  const exit = run.signal !== null && run.signal !== undefined ? `signal ${run.signal}` : run.exit_code !== null && run.exit_code !== undefined ? `exit ${run.exit_code}` : "";
  const tokens = spent ? spent.input_tokens + spent.output_tokens : 0;
  const took = isLive
    ? h("span", { class: "run-fact number", dataset: { since: run.started_at } })
    : h("span", { class: "run-fact number" }, duration(run.ended_at - run.started_at));
  return h("li", { class: "run", dataset: { kind } },
    details(h("summary", null,
        h("span", { class: "run-outcome" }, h("span", { class: "run-dot", "aria-hidden": "true" }), word),
        h("span", { class: "run-who" }, h("span", { class: "id" }, `#${run.id}`), run.profile ?? "", run.purpose && run.purpose !== "work" ? h("span", { class: "muted" }, run.purpose) : null),
        h("span", { class: "run-facts" },
          exit ? h("span", { class: "run-fact" }, exit) : null,
          spent?.cost_micros !== null && spent?.cost_micros !== undefined ? h("span", { class: "run-fact number" }, usd(spent.cost_micros)) : null,
          tokens ? h("span", { class: "run-fact number" }, `${count(tokens)} tokens`) : null,
          took)), () => detail(run)),
    h("a", { class: "button quiet small run-log", href: link(`/runs/${run.task_id}/${run.id}`), "aria-label": `Log of run ${run.id}` }, icon("terminal"), h("span", { class: "run-log-word" }, "Log")));
}

/** @param {any} run */
function detail(run) {
  const rows = [];
  const add = (label, value) => {
    if (value !== null && value !== undefined && value !== "") rows.push(h("div", { class: "drawer-row" }, h("dt", null, label), h("dd", null, value)));
  };
  const { spent, usage } = run;
  const isBad = KINDS[run.outcome] === "bad";
  add("Started", h("time", { title: stamp(run.started_at) }, at(run.started_at)));
  add("Ended", run.ended_at && h("time", { title: stamp(run.ended_at) }, at(run.ended_at)));
  add("Stopped by", run.stop_reason?.replaceAll("_", " "));
  add("Time limit", run.max_runtime_seconds && `${duration(run.max_runtime_seconds)} (${run.max_runtime_from ?? ""})`);
  add("Model", spent?.model);
  add("Tokens", spent && `${count(spent.input_tokens)} in (${count(spent.cached_tokens)} cached), ${count(spent.output_tokens)} out${spent.turns ? `, ${spent.turns} turns` : ""}`);
  add("Denied tools", spent?.denials || null);
  add("CPU", usage && `${(((usage.user_us ?? 0) + (usage.system_us ?? 0)) / 1e6).toFixed(2)} s`);
  add("Memory", usage?.max_rss_kib && `${bytes(usage.max_rss_kib * 1024)} at most`);
  add("Account", run.account);
  add("Branch", run.branch_name && h("code", null, run.branch_name));
  add("Directory", run.workspace_path && h("code", null, run.workspace_path));
  add("Process", run.worker_pid);
  const block = (label, text, kind = "") => (text ? [h("h4", null, label), h("pre", { class: kind, tabindex: "0", role: "group", "aria-label": label }, text)] : null);
  return h("div", { class: "run-detail" },
    isBad ? block("Error", run.error, "drawer-error") : block("Reason", run.error), block("Summary", run.summary), block("Last lines of standard error", run.stderr_tail),
    h("dl", { class: "drawer-rows" }, rows),
    run.metadata ? block("Metadata", JSON.stringify(run.metadata, null, 2)) : null,
    sandbox(run));
}
