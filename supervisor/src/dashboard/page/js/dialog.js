// Dialogs: a confirmation, a question for a line of text, and a sheet that shows something.

import { h } from "./dom.js";

let serial = 0;

/**
 * @param {HTMLElement[]} content @param {HTMLElement[]} actions @param {string} title @param {boolean} [wide]
 * @returns {Promise<string>} the value of the button that closed it; empty for Escape
 */
function open(title, content, actions, wide = false) {
  serial += 1;
  const id = `dialog-${serial}`;
  const form = h("form", { method: "dialog" }, h("h2", { id }, title), content, h("div", { class: "actions" }, actions));
  const dialog = h("dialog", { "aria-labelledby": id, class: wide ? "wide" : null }, form);
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(""); });
    dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue); });
    dialog.showModal();
  });
}

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
  const said = await open(title, [text ? h("p", null, text) : null, h("div", { class: "field" }, h("label", { for: id }, label), input)], [cancel(), go]);
  return said === "yes" ? input.value : null;
}

/** Shows something until the person closes it. @param {{title: string, content: HTMLElement, wide?: boolean}} of */
export async function show({ title, content, wide = false }) {
  await open(title, [content], [h("button", { type: "submit", class: "button", value: "", autofocus: true }, "Close")], wide);
}
