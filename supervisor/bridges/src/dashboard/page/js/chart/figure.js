// A figure with its course: the newest value in large, and the values since the page was opened as a line below.

import { h, svg, text } from "../dom.js";

const WIDTH = 240;
const HEIGHT = 44;
const KEPT = 180;
/** So many values fill the width at least: the line begins at the left and gets denser. */
const LEAST = 10;

/**
 * @param {string} title
 * @param {(value: number) => string} write
 * @param {{most?: number}} [options]  `most`: the least height of the scale.
 */
export function figure(title, write, { most = 1 } = {}) {
  /** @type {number[]} */
  const values = [];
  const line = svg("polyline", { class: "figure-line", "vector-effect": "non-scaling-stroke" });
  const area = svg("polygon", { class: "figure-area" });
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "figure-drawing", role: "img", "aria-label": `${title}: no value yet` }, area, line);
  const value = h("span", { class: "figure-value number" }, "–");
  const range = h("span", { class: "figure-range number" });
  const element = h("section", { class: "figure panel" }, h("h3", null, title), h("div", { class: "figure-head" }, value, range), drawing);
  return {
    element,
    /** @param {number} next */
    add(next) {
      values.push(next);
      if (values.length > KEPT) values.shift();
      const highest = Math.max(most, ...values);
      const step = WIDTH / (Math.max(LEAST, values.length) - 1);
      const points = values.map((each, at) => `${(at * step).toFixed(1)},${(HEIGHT - 1 - (each / highest) * (HEIGHT - 4)).toFixed(1)}`);
      line.setAttribute("points", points.join(" "));
      area.setAttribute("points", `0,${HEIGHT} ${points.join(" ")} ${((values.length - 1) * step).toFixed(1)},${HEIGHT}`);
      text(value, write(next));
      text(range, `most ${write(Math.max(...values))}`);
      drawing.setAttribute("aria-label", `${title}: now ${write(next)}, at least ${write(Math.min(...values))}, at most ${write(Math.max(...values))}`);
    },
  };
}

/** Bars of days. @param {{label: string, value: number, text: string}[]} days @param {string} title */
export function dayBars(days, title) {
  const highest = Math.max(1, ...days.map((day) => day.value));
  return h("ol", { class: "day-bars", "aria-label": title }, days.map((day) => {
    const bar = h("span", { class: "day-bar", "aria-hidden": "true" });
    bar.style.blockSize = `${Math.max(day.value > 0 ? 2 : 0, (day.value / highest) * 100)}%`;
    return h("li", { title: `${day.label}: ${day.text}` }, h("span", { class: "day-space" }, bar), h("span", { class: "day-label number", "aria-hidden": "true" }, day.label.slice(-2)), h("span", { class: "unseen" }, `${day.label}: ${day.text}`));
  }));
}
