// The page of the timeline: which runs ran when, by profile or by task, over a time that is chosen.

import { h, put, text } from "../dom.js";
import { pageKeys } from "../parts/pagekeys.js";
import * as live from "../live.js";
import { link, set, state as route, tenant as chosenTenant } from "../route.js";
import { at as clockAt, duration, stamp } from "../time.js";
import { problem } from "../toast.js";
import { state } from "../parts/state.js";
import { soon } from "../parts/soon.js";
import { waiting } from "../parts/waiting.js";
import { counted } from "../parts/words.js";
import { chart } from "../timeline/chart.js";
import { follow, inOrder, runsSince, wordOf } from "../timeline/runs.js";

const SPANS = { 300: "5 minutes", 900: "15 minutes", 3600: "1 hour", 21600: "6 hours", 86400: "24 hours", 604800: "7 days", 2592000: "30 days" };
const SHORTEST = 60;
/** In how much time runs are looked for at first, until there are some. */
const FIRST = [3600, 86_400, 604_800];
const LONGEST = 90 * 86_400;
const LISTED = 500;
/** More events than these at once are not followed one by one: all is read again. */
const MOST = 1000;

/** @param {HTMLElement} main */
export function mount(main) {
  const span = /** @type {HTMLSelectElement} */ (h("select", { class: "select", "aria-label": "Time shown", onchange: () => show(Number(span.value), null) }, Object.entries(SPANS).map(([value, label]) => h("option", { value }, label))));
  const by = /** @type {HTMLSelectElement} */ (h("select", { class: "select", "aria-label": "Rows", onchange: () => set({ by: by.value === "profile" ? null : by.value }) }, h("option", { value: "profile" }, "By profile"), h("option", { value: "task" }, "By task")));
  const small = (/** @type {string} */ label, /** @type {string} */ sign, /** @type {() => void} */ run) => h("button", { type: "button", class: "button small", "aria-label": label, title: label, onclick: run }, sign);
  const nowButton = h("button", { type: "button", class: "button small", onclick: () => show(length(), null) }, "Now");
  const view = h("div", { class: "segments", role: "group", "aria-label": "View" }, ["chart", "list"].map((name) => h("button", { type: "button", class: "button small", dataset: { view: name }, onclick: () => set({ view: name === "chart" ? null : name }, { replace: true }) }, name === "chart" ? "Chart" : "List")));
  const period = h("span", { class: "muted number" });
  const note = h("p", { class: "muted", role: "status" });
  const gantt = chart({ zoom, pan });
  const rows = h("tbody");
  const table = h("div", { class: "panel table-scroll", tabindex: "0", role: "region", "aria-label": "Runs", hidden: true }, h("table", { class: "table" }, h("thead", null, h("tr", null, ["Began", "Task", "Outcome", "Took", "Profile", "Run"].map((head) => h("th", { scope: "col" }, head)))), rows));
  const empty = h("div", { class: "empty", hidden: true }, h("p", { class: "empty-title" }, "Nothing ran in this time"), h("p", { class: "muted" }, "Each run of a task is a bar here. Choose a longer time, or go back."), h("a", { class: "button", href: link("/board") }, "Open the board"));
  const legend = h("div", { class: "legend", "aria-label": "Colours" }, ["running", "done", "review", "blocked", "scheduled", "archived"].map((name) => state(name, { running: "running", done: "completed", review: "handed to review", blocked: "failed or blocked", scheduled: "goes on later", archived: "stopped by a person" }[name])));
  const page = h("div", { class: "page timeline-page" },
    h("div", { class: "page-head" }, h("h1", null, "Timeline"), period, h("span", { class: "push" }), by, span,
      h("div", { class: "timeline-moves" }, small("Earlier (h)", "←", () => pan(-0.5)), small("Later (l)", "→", () => pan(0.5)), small("Zoom in (+)", "+", () => zoom(0.5, 0.5)), small("Zoom out (-)", "−", () => zoom(2, 0.5)), nowButton), view),
    // Above the bars: below them it would move with each run that begins.
    legend, gantt.element, table, empty, note);
  const reveal = waiting(page);
  put(main, page);

  /** @type {{bars: Map<number, import("../timeline/runs.js").Bar>, isCut: boolean, now: number, since: number, tenant: string | undefined} | null} */
  let known = null;
  let aborter = new AbortController();
  /** What has come since all was read. @type {import("../timeline/runs.js").Event[]} */
  let queue = [];
  let readings = 0;
  /** Whether some of it could not be followed: then all is read. */
  let isStale = false;
  let isClosed = false;

  /** The time that is shown while none is chosen: what the runs take, once they are known. */
  let fitted = FIRST[0];
  const chosen = () => {
    const wanted = Number(route().query.span);
    return wanted >= SHORTEST && wanted <= LONGEST ? wanted : null;
  };
  const length = () => chosen() ?? fitted;
  const now = () => known?.now ?? Date.now() / 1000;
  /** The time that is shown: up to now, unless another end is in the URL. */
  function bounds() {
    const end = Number(route().query.end);
    const to = end > 0 ? end : now() + length() * 0.02;
    return { from: to - length(), to, now: now() };
  }

  /** Shows no more time than the runs that are known take. */
  function fit() {
    const { bars, now: at, since } = /** @type {NonNullable<typeof known>} */ (known);
    const took = at - Math.min(...[...bars.values()].map((bar) => bar.from ?? since));
    if (bars.size > 0) fitted = Object.keys(SPANS).map(Number).find((seconds) => seconds >= fitted || seconds * 0.95 >= took) ?? fitted;
    else [fitted] = FIRST;
    spell();
  }

  /** Names the time that is shown in the list of times. */
  function spell() {
    const seconds = String(length());
    if (!(seconds in SPANS)) {
      span.querySelector("[data-own]")?.remove();
      span.prepend(h("option", { value: seconds, dataset: { own: "" } }, duration(length())));
    }
    span.value = seconds;
  }

  /** @param {number} seconds @param {number | null} end */
  function show(seconds, end) {
    const wanted = Math.round(Math.max(SHORTEST, Math.min(LONGEST, seconds)));
    set({ span: wanted, end: end === null || end >= now() ? null : Math.round(end) }, { replace: true });
  }

  /** @param {number} factor @param {number} share  Where the time stays, from 0 at the left to 1. */
  function zoom(factor, share) {
    const { from, to } = bounds();
    const next = Math.max(SHORTEST, Math.min(LONGEST, (to - from) * factor));
    const fixed = from + (to - from) * share;
    const end = fixed + next * (1 - share);
    show(next, route().query.end || share < 0.95 ? (end > now() ? null : end) : null);
  }

  /** @param {number} share */
  function pan(share) {
    const { from, to } = bounds();
    show(to - from, to + (to - from) * share);
  }

  async function read() {
    aborter.abort();
    aborter = new AbortController();
    const { signal } = aborter;
    const tenant = chosenTenant();
    const isFirst = known === null && chosen() === null && !route().query.end;
    readings += 1;
    try {
      let since = bounds().from;
      let found = await runsSince(since, tenant, signal);
      for (const seconds of isFirst ? FIRST.slice(1) : []) {
        if (found.bars.size > 0) break;
        fitted = seconds;
        since = found.now - seconds;
        found = await runsSince(since, tenant, signal);
      }
      if (isClosed || signal.aborted) return;
      known = { ...found, since, tenant };
      if (isFirst) fit();
      isStale = false;
      draw();
    } finally {
      readings -= 1;
      if (queue.length > 0) news.ask();
    }
  }

  /** Takes what has come. While all is read, it waits: that may be older. */
  async function catchUp() {
    if (!known || readings > 0) return;
    const events = queue;
    queue = [];
    const mine = known;
    try {
      if (isStale || events.length > MOST) await read();
      else await follow(mine.bars, events, mine.tenant, aborter.signal, (at) => {
        if (isClosed || known !== mine) return;
        mine.now = Math.max(mine.now, at);
        draw();
      });
    } catch (error) {
      if (error.name === "AbortError") return;
      isStale = true;
      throw error;
    }
  }
  const news = soon(() => catchUp().catch(problem));
  const readAll = soon(() => read().catch(problem));

  function draw() {
    if (!known) return;
    const seen = bounds();
    const isList = route().query.view === "list";
    const bars = inOrder(known.bars);
    const inside = bars.filter((bar) => (bar.to ?? seen.now) >= seen.from && (bar.from ?? seen.from) <= seen.to).reverse();
    gantt.element.hidden = isList || inside.length === 0;
    const rest = gantt.element.hidden ? 0 : gantt.draw(bars, seen, route().query.by === "task" ? "task" : "profile");
    table.hidden = !isList || inside.length === 0;
    empty.hidden = inside.length > 0;
    legend.hidden = inside.length === 0;
    text(period, `${clockAt(seen.from)} – ${clockAt(Math.min(seen.to, seen.now))}, ${counted(inside.length, "run")}`);
    text(note, [known.isCut ? "There is more in this time than is read: zoom in to see the end of it." : "", rest > 0 ? `${counted(rest, "run")} at the start are not drawn: zoom in.` : ""].filter(Boolean).join(" "));
    if (isList) {
      put(rows, inside.slice(0, LISTED).map((bar) => h("tr", null,
        h("td", { class: "number", title: bar.from === null ? null : stamp(bar.from) }, bar.from === null ? "before" : clockAt(bar.from)), h("td", null, h("a", { href: link(`/runs/${bar.task}/${bar.run}`) }, bar.title)),
        h("td", null, state(bar.isLive ? "running" : bar.outcome ?? "archived", bar.isLive ? "running" : wordOf(bar.outcome))), h("td", { class: "number" }, bar.from === null ? "–" : duration((bar.to ?? seen.now) - bar.from)),
        h("td", null, bar.who), h("td", { class: "number" }, String(bar.run)))));
      if (inside.length > LISTED) text(note, `The latest ${LISTED} of ${inside.length} runs are listed.`);
    }
  }

  const stopLive = live.on((events) => {
    queue.push(...events.filter((event) => event.run_id !== null || event.kind === "edited"));
    if (queue.length > 0) news.ask();
  });
  const stopGap = live.onGap(readAll.ask);
  const clock = setInterval(() => {
    // Bars of live runs grow, and the time moves on.
    if (known && document.visibilityState === "visible" && !route().query.end && !gantt.element.matches(":hover, :focus-within")) {
      known.now += 5;
      draw();
    }
  }, 5000);
  const resized = new ResizeObserver(() => draw());
  resized.observe(main);
  const group = "Timeline";
  const stopKeys = pageKeys(
    { keys: "h", label: "Earlier", group, run: () => pan(-0.5) },
    { keys: "l", label: "Later", group, run: () => pan(0.5) },
    { keys: "+", label: "Zoom in", group, run: () => zoom(0.5, 0.5) },
    { keys: "-", label: "Zoom out", group, run: () => zoom(2, 0.5) },
    { keys: "0", label: "Now", group, run: () => show(length(), null) },
    { keys: "v", label: "Chart or list", group, run: () => set({ view: route().query.view === "list" ? null : "list" }, { replace: true }) },
    { keys: "p", label: "By profile or by task", group, run: () => set({ by: route().query.by === "task" ? null : "task" }) },
  );
  return {
    update(/** @type {import("../route.js").State} */ current) {
      by.value = current.query.by === "task" ? "task" : "profile";
      spell();
      for (const each of view.children) each.setAttribute("aria-pressed", String((/** @type {HTMLElement} */ (each).dataset.view ?? "chart") === (current.query.view ?? "chart")));
      draw();
      if (!known || known.tenant !== chosenTenant(current) || bounds().from < known.since - 1) read().then(reveal, (error) => {
        if (error.name === "AbortError") return;
        reveal();
        problem(error);
      });
    },
    unmount() {
      isClosed = true;
      aborter.abort();
      news.stop();
      readAll.stop();
      clearInterval(clock);
      resized.disconnect();
      stopLive();
      stopGap();
      stopKeys();
    },
  };
}
