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
      const rank = { error: 0, warning: 1, ok: 2 };
      const sorted = [...report.checks].sort((a, b) => rank[a.verdict] - rank[b.verdict]);
      const number = (/** @type {string} */ verdict) => sorted.filter((check) => check.verdict === verdict).length;
      const bad = ["error", "warning"].filter((verdict) => number(verdict) > 0).map((verdict) => counted(number(verdict), verdict)).join(", ") || "no warnings";
      put(countLine, `– ${bad}, checked ${ago(now())}`);
      put(list, sorted.map((check) =>
        h("li", { class: "row" }, severity(check.verdict), h("div", { class: "row-text" }, h("span", { class: "row-title" }, check.check), h("span", { class: "muted" }, check.detail), check.hint ? h("span", { class: "row-hint" }, check.hint) : null))));
    } catch (error) {
      put(list, h("li", { class: "row" }, state("unknown", "unknown"), h("div", { class: "row-text" }, h("span", null, "The checks could not be made"), h("span", { class: "muted" }, /** @type {Error} */ (error).message))));
    }
    again.removeAttribute("disabled");
  }
  return { element, read };
}
