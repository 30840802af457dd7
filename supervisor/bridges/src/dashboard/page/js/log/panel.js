// The log of one run as a panel: its window, its source and its bar with search, pause, and the ways to both ends.

import { h, icon, put, text } from "../dom.js";
import { bytes } from "../money.js";
import { problem } from "../toast.js";
import { counted } from "../parts/words.js";
import { Search } from "./search.js";
import { LogSource } from "./source.js";
import { LogStore } from "./store.js";
import { LogView } from "./view.js";

/** More is loaded when the upper or lower edge is as near as this, in lines. */
const NEAR = 200;

/**
 * @param {string} task
 * @param {number | null} run
 * @param {{ended?: () => void}} [on]
 */
export function logPanel(task, run, on = {}) {
  const store = new LogStore();
  let isFollowed = true;
  let isLoadingAll = false;
  let isStopped = false;
  /** Whether the daemon has said what the log holds. */
  let isKnown = false;

  const countLine = h("span", { class: "log-state number" });
  const note = h("div", { class: "log-note", role: "status", hidden: true });
  const follow = h("button", { type: "button", class: "button small", "aria-pressed": "true", onclick: () => setFollowed(!isFollowed) });
  const box = /** @type {HTMLInputElement} */ (h("input", { class: "input log-search", type: "search", placeholder: "Search", "aria-label": "Search in the log", autocomplete: "off", spellcheck: "false" }));
  const found = h("span", { class: "log-found number", role: "status" });
  const all = h("button", { type: "button", class: "button quiet small", hidden: true, onclick: () => (isLoadingAll ? (isLoadingAll = false) : loadAll()) });
  const small = (/** @type {string} */ label, /** @type {any} */ sign, /** @type {() => void} */ run) => h("button", { type: "button", class: "icon-button small", "aria-label": label, title: label, onclick: run }, sign);
  const raw = h("button", { type: "button", class: "button quiet small", hidden: true, "aria-pressed": "false", title: "The lines as the agent writes them", onclick: toggleRaw }, "Raw");
  const view = new LogView(store, { scrolled, resized: () => (isFollowed ? view.toEnd() : view.draw()) });
  const search = new Search(store, showFound);
  const source = new LogSource(task, run, store, {
    grew({ dropped }) {
      if (dropped > 0) {
        view.shift(-dropped);
        search.again();
      }
      if (isFollowed && source.isAtTail) view.toEnd();
      else view.draw();
      search.more();
      describe();
    },
    earlier(lines) {
      view.shift(lines);
      search.again();
      describe();
    },
    form(isReadable) {
      raw.hidden = !isReadable;
    },
    anew() {
      isKnown = true;
      view.forget();
      if (source.isAtTail) view.toEnd();
      else view.moveTo(0);
      search.again();
      describe();
    },
    lost(error) {
      note.hidden = error === null;
      if (error !== null) text(note, `The log cannot be followed at the moment: ${error.message}. It resumes automatically.`);
    },
    ended() {
      describe();
      on.ended?.();
    },
  });
  const bar = h(
    "div",
    { class: "log-bar", role: "toolbar", "aria-label": "Log" },
    h("div", { class: "log-find" }, box, small("Match before (Shift+Enter)", icon("left"), () => step(-1)), small("Next match (Enter)", icon("right"), () => step(1)), found, all),
    countLine,
    h("div", { class: "log-ends" }, raw,
      h("button", { type: "button", class: "button quiet small", onclick: toStart, title: "To the start (g g)" }, "Start"),
      h("button", { type: "button", class: "button quiet small", onclick: toEnd, title: "To the end (G)" }, "End"),
      follow),
  );
  const empty = h("p", { class: "log-empty muted", hidden: true }, "Nothing has been written yet.");
  const element = h("section", { class: "log panel", "aria-label": "Log" }, bar, note, h("div", { class: "log-body" }, view.element, empty));

  function describe() {
    const { start, end, size } = store;
    const whole = start === 0 && end >= size;
    if (isKnown) text(countLine, whole ? `${counted(store.count, "line")} · ${bytes(size)}` : `${bytes(end - start)} of ${bytes(size)} loaded`);
    put(follow, source.isEnded ? "Ended" : isFollowed ? "Pause" : "Follow");
    /** @type {HTMLButtonElement} */ (follow).disabled = source.isEnded;
    follow.setAttribute("aria-pressed", String(isFollowed));
    element.classList.toggle("is-followed", isFollowed && !source.isEnded);
    empty.hidden = store.count > 0 || !isKnown;
    text(empty, source.isEnded ? "The run has no output." : "Nothing has been written yet.");
    showFound();
  }

  function scrolled() {
    if (isFollowed && !view.isAtEnd) setFollowed(false);
    else if (!isFollowed && view.isAtEnd && source.isAtTail && !source.isEnded) setFollowed(true);
    if (view.first < NEAR) source.earlier().catch(problem);
    if (!source.isAtTail && view.first + view.element.clientHeight / view.height > store.count - NEAR) source.later().catch(problem);
  }

  function toggleRaw() {
    source.isReadable = !source.isReadable;
    raw.setAttribute("aria-pressed", String(!source.isReadable));
    source.toTail({ always: true }).catch(problem);
  }

  /** @param {boolean} value */
  function setFollowed(value) {
    isFollowed = value;
    if (value) toEnd();
    describe();
  }

  function toEnd() {
    source.toTail().then(() => view.toEnd()).catch(problem);
  }

  function toStart() {
    isFollowed = false;
    source.fromStart().then(() => view.moveTo(0)).catch(problem);
    describe();
  }

  /** Loads all that is before what is loaded, for the search. */
  async function loadAll() {
    isLoadingAll = true;
    isFollowed = false;
    try {
      while (isLoadingAll && !isStopped && store.start > 0) await source.earlier();
      while (isLoadingAll && !isStopped && !source.isAtTail) await source.later();
    } catch (error) {
      problem(error);
    }
    isLoadingAll = false;
    describe();
  }

  function showFound() {
    const { needle, lines, total, current, isDone } = search;
    const isPartial = store.start > 0 || store.end < store.size;
    if (needle === "") text(found, "");
    else if (total === 0) text(found, search.timer ? "searching …" : isPartial ? "none here" : "none");
    else text(found, `${current >= 0 ? `line ${(current + 1).toLocaleString("en-US")} of ` : ""}${lines.length.toLocaleString("en-US")}${isDone ? "" : "+"} (${counted(total, "match", "matches")})`);
    all.hidden = needle === "" || !(isPartial || isLoadingAll);
    text(all, isLoadingAll ? `${Math.round((100 * (store.end - store.start)) / Math.max(1, store.size))}% – stop` : `Search all ${bytes(store.size)}`);
    const line = current >= 0 ? lines[current] : null;
    if (view.found.needle !== needle || view.found.line !== line) view.mark({ needle, line });
  }

  /** @param {1 | -1} by */
  function step(by) {
    if (search.needle === "") return box.focus();
    const line = search.step(by, view.first);
    if (line === null) return;
    isFollowed = false;
    describe();
    view.reveal(line);
  }

  let typed = 0;
  box.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => search.begin(box.value), 120);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      if (search.needle !== box.value) search.begin(box.value);
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      box.value = "";
      search.begin("");
      view.element.focus();
    }
  });
  describe();
  source.follow().catch((error) => {
    if (!isStopped) text(countLine, error.message);
  });
  return {
    element,
    find: () => box.focus(),
    step,
    toStart,
    toEnd: () => setFollowed(true),
    pause: () => (source.isEnded ? undefined : setFollowed(!isFollowed)),
    unmount() {
      isStopped = true;
      clearTimeout(typed);
      source.stop();
      search.stop();
      view.unmount();
    },
  };
}
