// One table of keys for the whole page. `?` shows it.

import { problem } from "./toast.js";

/**
 * @typedef {{keys: string, label: string, group?: string, run: (event: KeyboardEvent) => void | boolean, when?: () => boolean, hidden?: boolean}} Binding
 *   `keys`: one key as `KeyboardEvent.key` has it ("j", "Enter", "ArrowDown", "?"), with "Shift+" or "Ctrl+" before it where needed,
 *   or two keys in a row ("g b"). `run` returns false where the key is not its own after all.
 */

/** @type {Binding[]} */
const table = [];
let first = "";
let firstAt = 0;
/** How many modules are being loaded that what is typed is meant for. */
let loading = 0;

/**
 * Adds keys, which go before those that are there. Returns a function that removes them.
 * @param {...Binding} bindings
 */
export function add(...bindings) {
  table.unshift(...bindings);
  return () => { for (const binding of bindings) table.splice(table.indexOf(binding), 1); };
}

/** Whether a key typed here is text. @param {EventTarget | null} target */
export function typing(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])"));
}

/** Has the keys rest until a promise is settled, and returns what it becomes. @template T @param {Promise<T>} wanted @returns {Promise<T>} */
export async function rest(wanted) {
  loading += 1;
  try {
    return await wanted;
  } finally {
    loading -= 1;
  }
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.defaultPrevented || event.isComposing || event.altKey || event.metaKey) return;
  if (document.querySelector("dialog[open]")) return;
  if (typing(event.target) && event.key !== "Escape") return;
  if (loading && event.key.length === 1 && !event.ctrlKey) { event.preventDefault(); return; }
  // A control that is focused keeps the keys that work it.
  const works = { Enter: "button, a[href], summary, input", " ": "button, summary, input" }[event.key];
  if (works && event.target instanceof Element && event.target.matches(works)) return;
  const name = `${event.ctrlKey ? "Ctrl+" : ""}${event.shiftKey && event.key.length > 1 ? "Shift+" : ""}${event.key}`;
  const pair = performance.now() - firstAt < 1000 ? `${first} ${name}` : "";
  for (const keys of [pair, name]) {
    for (const binding of table) {
      if (keys === "" || binding.keys !== keys || (binding.when && !binding.when())) continue;
      if (binding.run(event) === false) continue;
      first = "";
      event.preventDefault();
      return;
    }
  }
  first = name;
  firstAt = performance.now();
}

/** Shows the keys that work on this page, and what colours mean. */
export const help = () => void rest(import("./keyhelp.js")).then((all) => all.help(table), problem);

/** Listens for keys. */
export function start() {
  document.addEventListener("keydown", pressed);
  add({ keys: "?", label: "Show this list", run: help });
}
