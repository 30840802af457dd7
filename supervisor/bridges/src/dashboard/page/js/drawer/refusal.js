// A refusal of the server, in its own words, beside what was asked for.
import { h } from "../dom.js";
import { withCode } from "./section.js";

/** Returns a place for refusals: empty until one is shown. */
export function refusal() {
  const element = h("div", { class: "drawer-refusal", role: "alert" });
  const clear = () => {
    element.replaceChildren();
    element.classList.remove("is-shown");
  };
  /** @param {any} problem @param {...Node} offers what else may be done */
  const show = (problem, ...offers) => {
    const { detail, hint } = words(problem);
    element.classList.add("is-shown");
    element.replaceChildren(
      h("p", null, ...withCode(detail)),
      hint ? h("p", { class: "drawer-hint" }, ...withCode(hint)) : "",
      offers.length ? h("div", { class: "drawer-actions" }, ...offers) : "",
    );
  };
  return { element, clear, show };
}

/** Returns what a problem says. @param {any} problem */
export function words(problem) {
  return {
    // Where in the JSON of the request it stands helps nobody here.
    detail: (problem?.detail || problem?.message || "The request failed.").replace(/^invalid body: /, "").replace(/ at line \d+ column \d+$/, ""),
    hint: (problem?.hint),
  };
}
