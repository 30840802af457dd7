// The graph of a mission: its tasks as links in layers, lines between them, and the arrow keys to go along the lines.

import { h, put, svg } from "../dom.js";
import { state } from "../parts/state.js";
import { edges, places } from "./layers.js";

const WIDTH = 208;
const HEIGHT = 58;
const ACROSS = 56;
const DOWN = 14;
const EDGE = 12;
const SCALES = [0.35, 0.5, 0.65, 0.8, 1, 1.25];

/** @param {(id: string) => string} href  Where a task is opened. */
export function graph(href) {
  const lines = svg("svg", { class: "graph-lines", "aria-hidden": "true" });
  const nodes = h("ol", { class: "graph-nodes", "aria-label": "Tasks, each after what it waits for" });
  const canvas = h("div", { class: "graph-canvas" }, lines, nodes);
  const space = h("div", { class: "graph-space" }, canvas);
  const scroll = h("div", { class: "graph-scroll", tabindex: "-1" }, space);
  const zoom = (/** @type {string} */ label, /** @type {string} */ sign, /** @type {() => void} */ run) => h("button", { type: "button", class: "button small", "aria-label": label, title: label, onclick: run }, sign);
  const element = h("div", { class: "graph panel" }, scroll,
    h("div", { class: "graph-zoom" }, zoom("Smaller", "−", () => step(-1)), zoom("Fit all of it", "Fit", fit), zoom("Larger", "+", () => step(1))));
  let scale = 1;
  let size = { width: 0, height: 0 };
  let shape = "";
  /** @type {import("./layers.js").Edge[]} */
  let drawn = [];
  /** @type {Map<string, HTMLElement>} */
  const links = new Map();

  /** @param {number} value */
  function setScale(value) {
    scale = value;
    canvas.style.transform = `scale(${value})`;
    space.style.inlineSize = `${size.width * value}px`;
    space.style.blockSize = `${size.height * value}px`;
  }

  function fit() {
    setScale(Math.max(SCALES[0], Math.min(1, (scroll.clientWidth - 2) / size.width)));
  }

  /** @param {1 | -1} by */
  function step(by) {
    const at = SCALES.findIndex((each) => each >= scale - 0.01);
    setScale(SCALES[Math.max(0, Math.min(SCALES.length - 1, (at < 0 ? SCALES.length - 1 : at) + by))]);
  }

  /** @param {import("./layers.js").Task} task */
  function node(task) {
    const link = h("a", { class: "graph-node", href: href(task.id), dataset: { task: task.id, status: task.status }, title: task.title, tabindex: "-1" },
      h("span", { class: "graph-title" }, task.title),
      h("span", { class: "graph-under" }, state(task.status), h("span", { class: "cut" }, task.needs ? "needs a person" : task.assignee ?? "")));
    link.classList.toggle("needs-person", Boolean(task.needs));
    links.set(task.id, link);
    return link;
  }

  /** @param {import("./layers.js").Task[]} tasks */
  function update(tasks) {
    const next = JSON.stringify(tasks.map((task) => [task.id, task.title, task.status, task.assignee, task.after, task.under, Boolean(task.needs)]));
    if (next === shape) return;
    const isFirst = shape === "";
    shape = next;
    const focused = document.activeElement instanceof HTMLElement && nodes.contains(document.activeElement) ? document.activeElement.dataset.task : null;
    drawn = edges(tasks);
    const { tasks: where, bends } = places(tasks, drawn);
    const all = [...where.values(), ...bends.flat()];
    const top = all.reduce((least, place) => Math.min(least, place.row), 0);
    const bottom = all.reduce((most, place) => Math.max(most, place.row), 0);
    const left = (/** @type {number} */ layer) => EDGE + layer * (WIDTH + ACROSS);
    const down = (/** @type {number} */ row) => EDGE + (row - top) * (HEIGHT + DOWN);
    const x = (/** @type {string} */ id) => left(where.get(id)?.layer ?? 0);
    const y = (/** @type {string} */ id) => down(where.get(id)?.row ?? 0);
    size = { width: left(all.reduce((most, place) => Math.max(most, place.layer), 0)) + WIDTH + EDGE, height: down(bottom) + HEIGHT + EDGE };
    canvas.style.inlineSize = `${size.width}px`;
    canvas.style.blockSize = `${size.height}px`;
    lines.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    const states = new Map(tasks.map((task) => [task.id, task.status]));
    put(lines, drawn.map(({ from, to, kind }, at) => {
      const middle = HEIGHT / 2;
      let d = `M${x(from) + WIDTH} ${y(from) + middle}`;
      let [x1, y1] = [x(from) + WIDTH, y(from) + middle];
      const curve = (/** @type {number} */ x2, /** @type {number} */ y2) => {
        const bend = Math.max(24, (x2 - x1) / 2);
        d += ` C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
        [x1, y1] = [x2, y2];
      };
      for (const { layer, row } of bends[at]) {
        curve(left(layer), down(row) + middle);
        d += ` H${left(layer) + WIDTH}`;
        x1 = left(layer) + WIDTH;
      }
      curve(x(to), y(to) + middle);
      return svg("path", { d, class: `graph-line is-${kind}${states.get(from) === "done" ? " is-done" : ""}` });
    }));
    links.clear();
    const inOrder = [...tasks].sort((a, b) => x(a.id) - x(b.id) || y(a.id) - y(b.id));
    put(nodes, inOrder.map((task) => {
      const item = h("li", { class: "graph-item" }, node(task));
      item.style.transform = `translate(${x(task.id)}px, ${y(task.id)}px)`;
      return item;
    }));
    const first = links.get(focused ?? "") ?? nodes.querySelector("a");
    first?.setAttribute("tabindex", "0");
    if (focused) links.get(focused)?.focus({ preventScroll: true });
    if (isFirst) requestAnimationFrame(fit);
    else setScale(scale);
  }

  /** The task beside a task in a direction. @param {string} id @param {string} key */
  function beside(id, key) {
    if (key === "ArrowRight") return drawn.find((edge) => edge.from === id)?.to;
    if (key === "ArrowLeft") return drawn.find((edge) => edge.to === id)?.from;
    const items = [...links.keys()];
    return items[items.indexOf(id) + (key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : Number.NaN)];
  }

  nodes.addEventListener("keydown", (event) => {
    const id = /** @type {HTMLElement} */ (event.target).dataset?.task;
    const next = id && beside(id, event.key);
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    links.get(next)?.focus();
  });
  nodes.addEventListener("focusin", (event) => {
    for (const link of links.values()) link.setAttribute("tabindex", link === event.target ? "0" : "-1");
    const id = /** @type {HTMLElement} */ (event.target).dataset.task;
    [...lines.children].forEach((line, at) => line.classList.toggle("is-near", drawn[at].from === id || drawn[at].to === id));
  });
  return { element, update, refresh: () => links.forEach((link, id) => link.setAttribute("href", href(id))) };
}
