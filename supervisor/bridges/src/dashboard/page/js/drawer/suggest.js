// Suggestions below an input: arrows choose, Enter takes, Escape closes them and nothing else.
import { h } from "../dom.js";

let made = 0;

/**
 * @typedef {object} Suggestion
 * @property {string} value
 * @property {string} label
 * @property {string} [about]
 * @property {string} [status]
 */

/**
 * Attaches suggestions to an input or a text area, and returns the list to place after it.
 * @param {HTMLInputElement | HTMLTextAreaElement} input
 * @param {object} how
 * @param {string} how.label of the list
 * @param {() => Promise<Suggestion[]> | Suggestion[] | null} how.find what fits what is typed; null: nothing is to be suggested
 * @param {(item: Suggestion) => void} how.take
 * @param {boolean} [how.first] the first one is chosen at once
 * @param {string} [how.none] what to say where nothing fits
 * @param {number} [how.delay] in milliseconds
 */
export function suggest(input, { label, find, take, first = false, none, delay = 0 }) {
  made += 1;
  const id = `suggest-${made}`;
  const list = h("ul", { class: "suggest", id, role: "listbox", "aria-label": label, hidden: true });
  const isLine = input instanceof HTMLInputElement;
  if (isLine) {
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-expanded", "false");
  }
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", id);
  input.setAttribute("autocomplete", "off");
  /** @type {Suggestion[]} */
  let items = [];
  let chosen = -1;
  let asked = 0;
  let timer = 0;

  const close = () => {
    asked += 1;
    clearTimeout(timer);
    list.hidden = true;
    items = [];
    mark(-1);
    if (isLine) input.setAttribute("aria-expanded", "false");
  };
  const mark = (at) => {
    chosen = at;
    [...list.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));
    const option = at < 0 ? null : list.children[at];
    if (option) {
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  };
  const pick = (at) => {
    const item = items[at];
    close();
    if (item) take(item);
  };
  const show = (found) => {
    items = found;
    list.replaceChildren(...items.map((item, at) => h("li", {
      role: "option", id: `${id}-${at}`, "aria-selected": "false",
      onmousedown: (event) => event.preventDefault(),
      onclick: () => pick(at),
    }, item.status ? h("span", { class: "status-dot", dataset: { status: item.status }, "aria-hidden": "true" }) : "",
    h("span", { class: "suggest-label" }, item.label), item.about ? h("span", { class: "suggest-about" }, item.about) : "")));
    if (!items.length && none) list.append(h("li", { class: "suggest-none", role: "option", "aria-disabled": "true", "aria-selected": "false" }, none));
    list.hidden = !list.children.length;
    if (isLine) input.setAttribute("aria-expanded", String(!list.hidden));
    mark(first && items.length ? 0 : -1);
    if (!list.hidden) list.scrollIntoView({ block: "nearest" });
  };
  const look = () => {
    clearTimeout(timer);
    asked += 1;
    const mine = asked;
    timer = setTimeout(async () => {
      const found = find();
      if (found === null) return close();
      try {
        const ready = await found;
        if (mine === asked && document.activeElement === input) show(ready);
      } catch {
        close();
      }
      return undefined;
    }, delay);
  };
  input.addEventListener("input", look);
  input.addEventListener("focus", () => { if (isLine) look(); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing || list.hidden) {
      if (isLine && list.hidden && event.key === "ArrowDown") look();
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && items.length) {
      mark((chosen + step + items.length) % items.length);
    } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0 && !event.ctrlKey && !event.metaKey) {
      pick(chosen);
    } else if (event.key === "Escape") {
      close();
    } else return;
    event.preventDefault();
    event.stopImmediatePropagation();
    // Before what the input itself does with the key, whichever was attached first.
  }, { capture: true });
  return { element: list, close };
}
