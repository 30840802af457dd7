// The rows of runs over time: bars that are links, times above them, and what is known of the run under the pointer or the focus.

import { verb } from "../api.js";
import { h, put } from "../dom.js";
import { link } from "../route.js";
import { usd, count } from "../money.js";
import { at as clockAt, duration, stamp, tick } from "../time.js";
import { tone } from "../parts/state.js";
import { fit, widthOf } from "./labels.js";
import { groups, ticks } from "./rows.js";
import { wordOf } from "./runs.js";

/** More bars are not drawn: they could not be told apart. */
const MOST = 2000;
const NARROWEST = 4;
/** How many rows a profile may have so that its bars have words. */
const ROWS = 12;
/** The room between two times above the rows, in pixels. */
const APART = 16;

/** @typedef {import("./runs.js").Bar} Bar */

/** A run in words. @param {Bar} bar @param {number} now */
const described = (bar, now) =>
  `${bar.title}, run ${bar.run}, ${bar.who}, ${bar.isLive ? "running" : wordOf(bar.outcome)}, ${bar.from === null ? "began before" : stamp(bar.from)}, ${duration((bar.to ?? now) - (bar.from ?? bar.to ?? now))}`;

/** @param {{zoom: (factor: number, at: number) => void, pan: (share: number) => void}} on */
export function chart(on) {
  const scale = h("div", { class: "gantt-scale", "aria-hidden": "true" });
  const body = h("div", { class: "gantt-body" });
  const tip = h("div", { class: "gantt-tip", role: "tooltip", id: "gantt-tip", hidden: true });
  const element = h("div", { class: "gantt panel" }, scale, body, tip);
  /** @type {Map<string, Promise<any[]>>} */
  const details = new Map();
  let window = { from: 0, to: 1, now: 0 };
  /** @type {Map<Element, Bar>} */
  let bars = new Map();

  /** What is known of a run beside its time. @param {Bar} bar */
  function more(bar) {
    let asked = details.get(bar.task);
    if (!asked) {
      asked = verb("runs", { task_id: bar.task }).then((answer) => (Array.isArray(answer) ? answer : answer.runs), () => []);
      details.set(bar.task, asked);
      if (details.size > 200) details.delete(details.keys().next().value ?? "");
    }
    return asked.then((runs) => runs.find((run) => run.id === bar.run));
  }

  /** @param {Element} target */
  async function show(target) {
    const bar = bars.get(target);
    if (!bar) return;
    const lines = (/** @type {any} */ run) => [
      h("strong", null, bar.title),
      h("span", null, `run ${bar.run} · ${run?.profile ?? bar.who}${run && run.purpose !== "work" ? ` · ${run.purpose}` : ""}`),
      h("span", { class: "status", dataset: { status: tone(bar.isLive ? "running" : run?.outcome ?? bar.outcome ?? "") } }, bar.isLive ? "running" : wordOf(run?.outcome ?? bar.outcome)),
      h("span", { class: "number" }, `${bar.from === null ? "…" : clockAt(bar.from)} – ${bar.to === null ? "now" : clockAt(bar.to)} · ${bar.from === null ? "" : duration((bar.to ?? window.now) - bar.from)}`),
      run?.spent ? h("span", { class: "number" }, `${count(run.spent.input_tokens + run.spent.output_tokens)} tokens${run.spent.cost_micros ? ` · ${usd(run.spent.cost_micros)}` : ""}`) : null,
      run?.error ? h("span", { class: "gantt-error" }, run.error) : null,
    ];
    put(tip, lines(null));
    tip.hidden = false;
    place(target);
    const run = await more(bar);
    if (tip.hidden || tip.dataset.run !== String(bar.run)) return;
    put(tip, lines(run));
    place(target);
  }

  /** @param {Element} target */
  function place(target) {
    const [box, bounds] = [target.getBoundingClientRect(), element.getBoundingClientRect()];
    tip.dataset.run = String(bars.get(target)?.run);
    const left = Math.max(4, Math.min(box.left - bounds.left, bounds.width - tip.offsetWidth - 4));
    const below = box.bottom - bounds.top + 6;
    const isAbove = box.bottom + 6 + tip.offsetHeight > innerHeight && box.top - bounds.top > tip.offsetHeight;
    tip.style.transform = `translate(${left}px, ${isAbove ? box.top - bounds.top - tip.offsetHeight - 6 : below}px)`;
  }

  const hide = () => {
    tip.hidden = true;
  };
  body.addEventListener("pointerover", (event) => {
    const bar = /** @type {Element} */ (event.target).closest(".gantt-bar");
    if (bar) show(bar);
    else hide();
  });
  body.addEventListener("pointerleave", hide);
  body.addEventListener("focusin", (event) => show(/** @type {Element} */ (event.target)));
  body.addEventListener("focusout", hide);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !tip.hidden) {
      event.stopPropagation();
      hide();
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp" && event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const all = [...bars.keys()];
    const at = all.indexOf(/** @type {Element} */ (document.activeElement));
    if (at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = all[at + (event.key === "ArrowDown" || event.key === "ArrowRight" ? 1 : -1)];
    if (next instanceof HTMLElement) next.focus();
  });
  element.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const box = scale.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    if (event.ctrlKey) on.zoom(event.deltaY > 0 ? 1.25 : 0.8, share);
    else on.pan(Math.sign(event.deltaY || event.deltaX) * 0.1);
  }, { passive: false });

  return {
    element,
    /** @param {Bar[]} all @param {{from: number, to: number, now: number}} view @param {"profile" | "task"} by @returns {number} how many runs are not drawn */
    draw(all, view, by) {
      window = view;
      hide();
      element.dataset.by = by;
      const whole = view.to - view.from;
      // The width of a row beside its name, as the style has it.
      const width = Math.max(120, scale.clientWidth);
      const seen = all.filter((bar) => (bar.to ?? view.now) >= view.from && (bar.from ?? view.from) <= view.to);
      const drawn = seen.slice(-MOST);
      const place = (/** @type {number} */ time) => Math.max(0, Math.min(width, ((time - view.from) / whole) * width));
      put(scale, ticks(view.from, view.to, (step) => ((widthOf(tick(view.to, step)) + APART) / width) * whole).map(({ time, step }) => {
        const mark = h("span", { class: "gantt-tick number" }, tick(time, step));
        const left = place(time);
        // What would be cut at the end of the row is left out; its line stays.
        if (left + widthOf(mark.textContent ?? "") + APART / 2 > width) mark.textContent = "";
        mark.style.insetInlineStart = `${left}px`;
        return mark;
      }));
      bars = new Map();
      const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.run : undefined;
      const spot = (/** @type {Bar} */ bar) => {
        const left = Math.min(place(bar.from ?? view.from), width - NARROWEST);
        return { left, right: Math.max(left + NARROWEST, place(bar.to ?? view.now)) };
      };
      const item = (/** @type {import("./labels.js").Spot & {bar: Bar}} */ { bar, left, right, label }) => {
        const element = h("a", {
          class: ["gantt-bar", bar.isLive && "is-live", bar.from === null && "is-open"],
          href: link(`/runs/${bar.task}/${bar.run}`),
          "aria-label": described(bar, view.now),
          "aria-describedby": "gantt-tip",
          tabindex: bars.size === 0 ? "0" : "-1",
          dataset: { run: bar.run, status: tone(bar.isLive ? "running" : bar.outcome ?? "") },
        }, label ? h("span", { class: "gantt-label", dataset: { side: label.side }, style: { "max-inline-size": `${label.width}px` } }, label.text) : null);
        element.style.insetInlineStart = `${left}px`;
        element.style.inlineSize = `${right - left}px`;
        bars.set(element, bar);
        return element;
      };
      put(body, groups(drawn, by).map(({ name, bars: own }) => {
        const lanes = fit(own.map((bar) => ({ bar, ...spot(bar), text: by === "profile" ? bar.title : bar.who })), width, by === "profile" ? ROWS : 1);
        const row = h("section", { class: "gantt-group", "aria-label": name },
          h("h2", { class: "gantt-name", title: name }, h("span", null, name)),
          h("div", { class: "gantt-lanes" }, lanes.map((lane) => h("div", { class: "gantt-lane" }, lane.map(item)))));
        row.style.containIntrinsicBlockSize = `${lanes.length * 22 + 8}px`;
        return row;
      }));
      const again = [...bars.keys()].find((item) => /** @type {HTMLElement} */ (item).dataset.run === focused);
      if (focused && again instanceof HTMLElement) again.focus({ preventScroll: true });
      element.style.setProperty("--now", `${((view.now - view.from) / whole) * 100}%`);
      element.classList.toggle("has-now", view.now >= view.from && view.now <= view.to);
      return seen.length - drawn.length;
    },
  };
}
