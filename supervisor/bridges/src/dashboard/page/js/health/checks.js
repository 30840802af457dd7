// The checks of `doctor`: what this host can enforce, and whether the root, its boards and its files are sound.

import { verb } from "../api.js";
import { h, put } from "../dom.js";
import { severity, state } from "../parts/state.js";
import { counted } from "../parts/words.js";
import { ago, now } from "../time.js";

export function checks() {
  const list = h("ul", { class: "reports panel" });
  const countLine = h("span", { class: "page-count" });
  const again = h("button", { type: "button", class: "button small", onclick: () => read() }, "Check again");
  const element = h("section", { class: "work-section health-checks", "aria-labelledby": "checks-title" },
    h("div", { class: "section-head" }, h("h2", { id: "checks-title" }, "Host checks", countLine), again), list);
  put(list, h("li", { class: "row" }, h("div", { class: "skeleton row-skeleton" })), h("li", { class: "row" }, h("div", { class: "skeleton row-skeleton" })));

  async function read() {
    again.setAttribute("disabled", "");
    try {
      const report = await verb("doctor", {}, { timeout: 120_000 });
      const rank = { critical: 0, error: 1, warning: 2, ok: 3 };
      const sorted = [...report.checks].sort((a, b) => rank[a.severity] - rank[b.severity]);
      const number = (/** @type {string} */ word) => sorted.filter((check) => check.severity === word).length;
      const bad = ["critical", "error", "warning"].filter((word) => number(word) > 0).map((word) => (word === "critical" ? `${number(word)} critical` : counted(number(word), word))).join(", ") || "no warnings";
      put(countLine, `– ${bad}, checked ${ago(now())}`);
      put(list, sorted.map((check) =>
        h("li", { class: "row" }, severity(check.severity), h("div", { class: "row-text" }, h("span", { class: "row-title" }, check.subject), h("span", { class: "muted" }, [check.title, check.detail].filter(Boolean).join("; ")), check.actions.map((/** @type {any} */ action) => h("span", { class: "row-hint" }, [action.label, action.payload.command].filter(Boolean).join(": ")))))));
    } catch (error) {
      put(list, h("li", { class: "row" }, state("unknown", "unknown"), h("div", { class: "row-text" }, h("span", null, "The checks could not be made"), h("span", { class: "muted" }, /** @type {Error} */ (error).message))));
    }
    again.removeAttribute("disabled");
  }
  return { element, read };
}
