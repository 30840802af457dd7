// What the parts of the drawer share: a part is painted again only when what it shows has changed.
import { h, withCode } from "../dom.js";
import { ago, stamp } from "../time.js";

/**
 * @typedef {object} Part
 * @property {HTMLElement} element
 * @property {(shown: any) => void} update
 */

/**
 * Returns a section with a heading.
 * @param {string} title
 * @param {{actions?: Node[], count?: boolean}} [extra] what stands beside the heading
 */
export function section(title, { actions = [] } = {}) {
  const count = h("span", { class: "drawer-count" });
  const body = h("div", { class: "drawer-section-body" });
  const heading = h("h3", null, title, count);
  const element = h("section", { class: "drawer-section", "aria-label": title },
    h("div", { class: "drawer-section-head" }, heading, ...actions), body);
  return { element, body, count: (n) => { count.textContent = n ? String(n) : ""; } };
}

/**
 * Returns a function that calls `paint` only when `pick` returns something else than the last time.
 * @template T
 * @param {(shown: any) => T} pick
 * @param {(picked: T, shown: any) => void} paint
 */
export function whenChanged(pick, paint) {
  let last;
  return (shown) => {
    const picked = pick(shown);
    const now = JSON.stringify(picked) ?? "none";
    if (now === last) return;
    last = now;
    paint(picked, shown);
  };
}

/**
 * Returns a function that brings the children of an element to a list, and keeps those that have not changed: their focus, their
 * open details and their place stay.
 * @template T
 * @param {HTMLElement} parent
 * @param {(item: T) => string | number} keyOf
 * @param {(item: T) => HTMLElement} make
 */
export function keyed(parent, keyOf, make) {
  /** @type {Map<string, {element: HTMLElement, text: string}>} */
  let kept = new Map();
  return (items) => {
    const next = new Map();
    let before = null;
    for (const item of items) {
      const key = String(keyOf(item));
      const text = JSON.stringify(item);
      const old = kept.get(key);
      const element = old && old.text === text ? old.element : replaced(old?.element, make(item));
      next.set(key, { element, text });
      const place = before ? before.nextSibling : parent.firstChild;
      if (place !== element) parent.insertBefore(element, place);
      before = element;
    }
    while (before ? before.nextSibling : parent.firstChild) (before ? before.nextSibling : parent.firstChild).remove();
    kept = next;
  };
}

/** What was open stays open in what takes its place. @param {HTMLElement | undefined} old @param {HTMLElement} made */
function replaced(old, made) {
  if (old) {
    const open = [...old.querySelectorAll("details")].map((details) => details.open);
    made.querySelectorAll("details").forEach((details, at) => { details.open = open[at] ?? details.open; });
    if (old instanceof HTMLDetailsElement && made instanceof HTMLDetailsElement) made.open = old.open;
    if (old.contains(document.activeElement)) queueMicrotask(() => made.querySelector("summary, button, a")?.focus());
    old.remove();
  }
  return made;
}

export { withCode };

/** Returns how many of those that are left a button shows: "40 of 180", "7". @param {number} left @param {number} most */
export function some(left, most) {
  return left > most ? `${most} of ${left}` : String(left);
}

/** Returns how long ago something was; `age` keeps it right. @param {number} at */
export function since(at) {
  return h("time", { datetime: new Date(at * 1000).toISOString(), title: stamp(at), dataset: { at } }, ago(at));
}

/** Brings the ages in an element up to date. @param {HTMLElement} element */
export function age(element) {
  for (const time of element.querySelectorAll("time[data-at]")) {
    const now = ago(Number(time.dataset.at));
    if (time.textContent !== now) time.textContent = now;
  }
}

/** A text of more characters or lines is folded. */
const LONG = { characters: 2500, lines: 40 };

/** Returns what shows a text; where the text is long, folded, with a button that shows all of it. @param {HTMLElement} element @param {string} text */
export function folded(element, text) {
  if (text.length < LONG.characters && text.split("\n").length < LONG.lines) return element;
  const button = h("button", { type: "button", class: "drawer-older", "aria-expanded": "false", onclick: () => {
    const isOpen = around.classList.toggle("is-open");
    button.setAttribute("aria-expanded", String(isOpen));
    button.textContent = isOpen ? "Show less" : "Show all";
  } }, "Show all");
  const around = h("div", { class: "fold" }, h("div", { class: "fold-text" }, element), button);
  return around;
}

/** Returns details that are made when they are first opened. @param {HTMLElement} summary @param {() => HTMLElement} make */
export function details(summary, make) {
  const element = h("details", null, summary);
  element.addEventListener("toggle", () => {
    if (element.open && element.childElementCount === 1) element.append(make());
  });
  return element;
}
