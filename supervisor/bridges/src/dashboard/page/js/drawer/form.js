// A small form inside the drawer: a text or none, a button that acts, and the server's refusal below it.
import { h } from "../dom.js";
import { draft, keepDraft } from "./drafts.js";
import { refusal } from "./refusal.js";

/**
 * @typedef {object} Asked
 * @property {string} label of the button
 * @property {string} [ask] what the text is; none where no text is asked for
 * @property {string} [placeholder]
 * @property {boolean} [line] the text is one line
 * @property {boolean} [required]
 * @property {string} [about] what happens
 * @property {boolean} [destructive]
 * @property {{name: string, label: string}} [tick] a choice beside the text
 */

/**
 * Returns the form. `act` gets the text; the form stays with all that was typed until it has succeeded.
 * @param {string} task
 * @param {string} name of the draft
 * @param {Asked} asked
 * @param {(text: string, ticked: boolean) => Promise<unknown>} act
 * @param {() => void} [cancel]
 */
export function form(task, name, asked, act, cancel) {
  const refused = refusal();
  const input = asked.ask
    ? h(asked.line ? "input" : "textarea", {
      "aria-label": asked.ask, placeholder: asked.placeholder ?? asked.ask, rows: asked.line ? null : "2", class: "drawer-input",
      autocomplete: "off",
    })
    : null;
  const tick = asked.tick ? h("input", { type: "checkbox" }) : null;
  const button = h("button", { type: "submit", class: asked.destructive ? "button danger" : "button primary" }, asked.label);
  const element = h("form", { class: "drawer-form" },
    asked.about ? h("p", { class: "drawer-about" }, asked.about) : "",
    input ?? "",
    tick ? h("label", { class: "drawer-tick" }, tick, asked.tick?.label ?? "") : "",
    refused.element,
    h("div", { class: "drawer-actions" }, button, cancel ? h("button", { type: "button", class: "button", onclick: cancel }, "Cancel") : ""));
  const ready = () => { button.disabled = Boolean(asked.required && !input?.value.trim()); };
  if (input) {
    input.value = draft(task, name) ?? "";
    input.addEventListener("input", () => {
      keepDraft(task, name, input.value);
      ready();
    });
  }
  ready();
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    refused.clear();
    try {
      await act(input?.value.trim() ?? "", Boolean(tick?.checked));
      keepDraft(task, name, undefined);
      if (input) input.value = "";
    } catch (problem) {
      refused.show(problem);
    } finally {
      ready();
    }
  });
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      element.requestSubmit();
    } else if (event.key === "Escape" && cancel) {
      event.preventDefault();
      event.stopPropagation();
      cancel();
    }
  });
  return { element, focus: () => (input ?? button).focus(), refused };
}
