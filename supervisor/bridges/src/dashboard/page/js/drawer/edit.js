// A value that is edited where it stands. What edits it is loaded when it is first wanted.
import { h } from "../dom.js";
import { later } from "../parts/later.js";
import { draft } from "./drafts.js";

/**
 * @typedef {object} Editable
 * @property {string} label
 * @property {string} name of the draft
 * @property {string} task
 * @property {(value: string) => (Node | string)} [display]
 * @property {(text: string) => Promise<unknown>} save
 * @property {'line' | 'number' | 'lines' | 'text'} [kind] lines: one value that wraps; text: Enter is a new line, Ctrl+Enter saves
 * @property {string} [empty] what stands for no value
 * @property {string} [help] below the input
 * @property {(begins: string) => Promise<import('./suggest.js').Suggestion[]>} [suggestions]
 * @property {(problem: any, again: (act: () => Promise<unknown>) => void) => Node[]} [offers] what else may be done after a refusal
 * @property {boolean} [rich] the value has links of its own: no click on it edits it
 * @property {string} [button] the class of the button that shows the value
 */

/**
 * Returns an element that shows a value and edits it in place.
 * @param {Editable} of
 */
export function editable(of) {
  const { label, name, task, kind = "line", display = (value) => value } = of;
  let empty = of.empty ?? "none";
  const element = h("div", { class: `editable is-${kind}` });
  let value = "";
  /** What edits the value now. @type {ReturnType<typeof import("./editor.js").editor> | null} */
  let editing = null;

  const show = () => {
    const kept = draft(task, name) !== undefined;
    if (of.rich) {
      element.replaceChildren(
        kept ? h("button", { type: "button", class: "button small drawer-draft", onclick: edit }, "Continue the draft") : "",
        value === "" ? h("button", { type: "button", class: "editable-value", "aria-label": `${label}: ${empty}`, onclick: edit }, h("span", { class: "drawer-none" }, empty))
          : h("div", null, display(value)));
      return;
    }
    const shown = value === "" ? h("span", { class: "drawer-none" }, empty) : display(value);
    element.replaceChildren(h("button", {
      type: "button", class: of.button ?? "editable-value", "aria-label": `${label}: ${value || empty}. Edit`, title: `Edit: ${label}`, onclick: edit,
    }, shown, kept ? h("span", { class: "drawer-draft" }, "draft") : ""));
  };

  const close = () => {
    const focus = element.contains(document.activeElement);
    editing = null;
    show();
    if (focus) element.querySelector("button")?.focus();
  };

  const edit = async () => {
    const { editor } = await later(import("./editor.js"));
    editing = editor(of, element, { value: () => value, saved: (text) => { value = text; }, close });
    editing.focus();
  };

  show();
  return {
    element,
    edit,
    /** Shows another value; what is being typed stays. */
    update: (next, none) => {
      const text = next === null || next === undefined ? "" : String(next);
      if (text === value && (none ?? empty) === empty) return;
      empty = none ?? empty;
      value = text;
      if (editing) editing.changed();
      else show();
    },
  };
}
