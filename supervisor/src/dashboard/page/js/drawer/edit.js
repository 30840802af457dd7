// A value that is edited where it stands: Enter saves, Escape cancels, and a refusal leaves what was typed.
import { h } from "../dom.js";
import { draft, keepDraft } from "./drafts.js";
import { refusal } from "./refusal.js";
import { suggest } from "./suggest.js";

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
  const { label, name, task, save, kind = "line", display = (value) => value } = of;
  let empty = of.empty ?? "none";
  const element = h("div", { class: `editable is-${kind}` });
  const isArea = kind === "lines" || kind === "text";
  let value = "";
  let open = false;
  let saving = false;
  /** @type {HTMLInputElement | HTMLTextAreaElement | null} */
  let input = null;
  /** @type {HTMLElement | null} */
  let changed = null;

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
    open = false;
    input = null;
    show();
    if (focus) element.querySelector("button")?.focus();
  };

  const edit = () => {
    open = true;
    const began = value;
    const said = refusal();
    input = h(isArea ? "textarea" : "input", {
      class: "drawer-input", "aria-label": label, rows: kind === "text" ? "8" : isArea ? "1" : null, spellcheck: kind === "number" ? "false" : null,
      inputmode: kind === "number" ? "numeric" : null, autocomplete: "off",
    });
    const field = input;
    field.value = draft(task, name) ?? value;
    const grow = () => {
      if (!isArea) return;
      field.style.height = "auto";
      field.style.height = `${field.scrollHeight + 2}px`;
    };
    changed = h("p", { class: "drawer-hint", hidden: true, role: "status" }, "It has been changed since you began. Saving replaces that change.");
    const apply = async (act) => {
      if (saving) return;
      saving = true;
      element.classList.add("is-saving");
      said.clear();
      try {
        await act();
        keepDraft(task, name, undefined);
        close();
      } catch (problem) {
        said.show(problem, ...(of.offers?.(problem, apply) ?? []));
        field.focus();
      } finally {
        saving = false;
        element.classList.remove("is-saving");
      }
    };
    const submit = () => {
      const text = kind === "text" ? field.value : field.value.trim();
      if (text === began && value === began) return cancel();
      return apply(async () => {
        await save(text);
        value = text;
      });
    };
    const cancel = () => {
      if (kind !== "text") keepDraft(task, name, undefined);
      close();
    };
    field.addEventListener("input", () => {
      keepDraft(task, name, field.value === began ? undefined : field.value);
      grow();
    });
    const list = of.suggestions
      ? suggest((field), {
        label: `${label}: suggestions`, delay: 60,
        find: () => of.suggestions?.(field.value === began ? "" : field.value.trim()) ?? null,
        take: (item) => {
          field.value = item.value;
          submit();
        },
      })
      : null;
    field.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Enter" && (kind !== "text" || event.ctrlKey || event.metaKey) && !event.shiftKey) submit();
      else if (event.key === "Escape") cancel();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    field.addEventListener("blur", () => {
      // A field that was only looked at closes; what was typed stays open.
      setTimeout(() => {
        if (open && input === field && !saving && field.value === began && !element.contains(document.activeElement)) close();
      }, 150);
    });
    const help = of.help ? h("span", { class: "drawer-hint" }, of.help) : "";
    element.replaceChildren(h("div", { class: "editable-input" }, field, list?.element ?? ""), changed, said.element,
      h("div", { class: "drawer-actions" },
        h("button", { type: "button", class: "button primary", onclick: submit }, "Save"),
        h("button", { type: "button", class: "button", onclick: cancel }, "Cancel"),
        kind === "text" && draft(task, name) !== undefined
          ? h("button", { type: "button", class: "button", onclick: () => { keepDraft(task, name, undefined); close(); } }, "Discard draft") : "",
        help));
    field.focus();
    if (kind === "line" || kind === "number") field.select();
    grow();
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
      if (!open) show();
      else if (changed && !saving) changed.hidden = false;
    },
  };
}
