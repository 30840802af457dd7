// A bar that shows how much of something is used or left, with a name for screen readers.

import { h } from "../dom.js";

/** @param {string} label @returns {HTMLElement & {set: (share: number | null, text: string, tone?: string) => void}} */
export function meter(label) {
  const fill = h("span", { class: "meter-fill" });
  const element = h("span", { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "0" }, fill);
  return Object.assign(element, {
    /** @param {number | null} share @param {string} text @param {string} [tone] */
    set(share, text, tone = "plain") {
      const percent = share === null ? 0 : Math.round(Math.max(0, Math.min(1, share)) * 100);
      fill.style.inlineSize = `${percent}%`;
      element.className = `meter meter-${tone}`;
      element.setAttribute("aria-valuenow", String(percent));
      element.setAttribute("aria-valuetext", text);
      element.title = text;
    },
  });
}

/** The tone of a share that should not get full. @param {number} share */
export const filling = (share) => (share >= 0.95 ? "bad" : share >= 0.8 ? "warn" : "plain");
