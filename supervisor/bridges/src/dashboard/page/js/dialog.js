// Dialogs: a confirmation, a question for a line of text, and a sheet that shows something.

import { h } from "./dom.js";

let serial = 0;

/**
 * Opens a dialog with a title, something in it, and buttons.
 * @param {{title: string, content: import("./dom.js").Child[], actions: HTMLElement[], wide?: boolean}} of
 * @returns {{dialog: HTMLDialogElement, closed: Promise<string>}} `closed`: the value of the button that closed it; empty for Escape
 */
export function sheet({ title, content, actions, wide = false }) {
  serial += 1;
  const id = `dialog-${serial}`;
  const form = h("form", { method: "dialog" }, h("h2", { id }, title), content, actions.length ? h("div", { class: "actions" }, actions) : null);
  const dialog = h("dialog", { "aria-labelledby": id, class: wide ? "wide" : null }, form);
  document.body.append(dialog);
  const task = document.activeElement?.closest("[data-task]")?.getAttribute("data-task");
  const closed = new Promise((resolve) => {
    // A press that begins on the backdrop closes it; one that ends there after selecting text does not.
    dialog.addEventListener("pointerdown", (event) => {
      const box = dialog.getBoundingClientRect();
      const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
      if (event.target === dialog && !inside) dialog.close("");
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      // What had the focus may have been drawn anew meanwhile: then the browser does not find it.
      if (task && document.activeElement === document.body) document.querySelector(`[data-task="${CSS.escape(task)}"] a`)?.focus({ preventScroll: true });
      resolve(dialog.returnValue);
    });
  });
  dialog.showModal();
  return { dialog, closed };
}

/** @param {string} title @param {import("./dom.js").Child[]} content @param {HTMLElement[]} actions @param {boolean} [wide] */
const open = (title, content, actions, wide) => sheet({ title, content, actions, wide }).closed;

const cancel = () => h("button", { type: "submit", class: "button", value: "", formnovalidate: true }, "Cancel");

/**
 * Asks whether to go on.
 * @param {{title: string, text?: string, action?: string, danger?: boolean}} of `action`: the word of the button
 * @returns {Promise<boolean>}
 */
export async function confirm({ title, text, action = "OK", danger = false }) {
  const go = h("button", { type: "submit", class: `button ${danger ? "danger" : "primary"}`, value: "yes", autofocus: true }, action);
  return await open(title, text ? [h("p", null, text)] : [], [cancel(), go]) === "yes";
}

/**
 * Asks for a text. Returns null where the person cancels.
 * @param {{title: string, text?: string, label: string, value?: string, action?: string, danger?: boolean, multiline?: boolean, required?: boolean, placeholder?: string}} of
 * @returns {Promise<string | null>}
 */
export async function ask({ title, text, label, value = "", action = "OK", danger = false, multiline = false, required = false, placeholder }) {
  const id = `field-${serial + 1}`;
  const input = h(multiline ? "textarea" : "input", { id, class: multiline ? "textarea" : "input", value, required, placeholder, autofocus: true, autocomplete: "off" });
  const go = h("button", { type: "submit", class: `button ${danger ? "danger" : "primary"}`, value: "yes" }, action);
  if (multiline) input.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) go.click(); });
  else input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); go.click(); } });
  const choice = await open(title, [text ? h("p", null, text) : null, h("div", { class: "field" }, h("label", { for: id }, label), input)], [cancel(), go]);
  return choice === "yes" ? input.value : null;
}

/** Shows something until the person closes it. @param {{title: string, content: HTMLElement, wide?: boolean}} of */
export async function show({ title, content, wide = false }) {
  await open(title, [content], [h("button", { type: "submit", class: "button", value: "", autofocus: true }, "Close")], wide);
}
