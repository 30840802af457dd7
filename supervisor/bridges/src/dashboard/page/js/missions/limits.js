// What a mission has used of its limits, and how far its tasks are.

import { h, put, text } from "../dom.js";
import { duration } from "../time.js";
import { usd } from "../money.js";
import { filling, meter } from "../parts/meter.js";

const ORDER = ["done", "running", "review", "ready", "scheduled", "todo", "triage", "blocked", "archived"];

/** A bar of the tasks of a mission by their status. @param {Record<string, number>} counts @param {number} done @param {number} tasks */
export function progress(counts, done, tasks) {
  const known = ORDER.filter((status) => status !== "archived" && counts[status]);
  const words = known.map((status) => `${counts[status]} ${status}`).join(", ");
  return h("div", { class: "mission-bar", role: "img", "aria-label": `${done} of ${tasks} done: ${words}`, title: words },
    known.map((status) => {
      const part = h("span", { dataset: { status } });
      part.style.flexGrow = String(counts[status]);
      return part;
    }));
}

const LIMITS = /** @type {const} */ ([
  ["tasks", "Tasks", String],
  ["runtime_seconds", "Run time", duration],
  ["cost_micros", "Cost", usd],
]);

/** Meters of the limits. @returns {{element: HTMLElement, update: (use: any) => void}} */
export function limits() {
  const rows = LIMITS.map(([key, title, write]) => {
    const bar = meter(title);
    const value = h("span", { class: "number" });
    return { key, write, bar, value, element: h("div", { class: "limit" }, h("span", { class: "limit-name" }, title), value, bar) };
  });
  const depth = h("span", { class: "number" });
  const element = h("div", { class: "limits" }, rows.map((row) => row.element), h("div", { class: "limit" }, h("span", { class: "limit-name" }, "Depth"), depth));
  return {
    element,
    update(use) {
      for (const { key, write, bar, value } of rows) {
        const { used, limit } = use[key];
        const share = limit > 0 ? used / limit : 0;
        text(value, `${write(used)} of ${write(limit)}`);
        bar.set(share, value.textContent ?? "", filling(share));
      }
      put(depth, `at most ${use.max_depth}`);
    },
  };
}
