// A small line of the latest values of something, with its newest value as text for screen readers.

import { svg } from "../dom.js";

const WIDTH = 64;
const HEIGHT = 16;
const KEPT = 60;

/** @param {string} label @param {{most?: number}} [options]  `most`: the least height of the scale. */
export function sparkline(label, { most = 100 } = {}) {
  /** @type {number[]} */
  const values = [];
  const line = svg("polyline", { fill: "none", stroke: "currentColor", "stroke-width": "1.25", "stroke-linejoin": "round", "vector-effect": "non-scaling-stroke" });
  const element = svg("svg", { class: "sparkline", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, preserveAspectRatio: "none", role: "img", "aria-label": label }, line);
  return {
    element,
    /** @param {number} value */
    add(value) {
      values.push(value);
      if (values.length > KEPT) values.shift();
      const highest = Math.max(most, ...values);
      const step = WIDTH / (KEPT - 1);
      const from = WIDTH - (values.length - 1) * step;
      line.setAttribute("points", values.map((each, at) => `${(from + at * step).toFixed(1)},${(HEIGHT - 1 - (each / highest) * (HEIGHT - 2)).toFixed(1)}`).join(" "));
    },
  };
}
