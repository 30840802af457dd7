// What edits a value where it stands: Enter saves, Escape cancels, and a refusal leaves what was typed.
import { h } from "../dom.js";
import { draft, keepDraft } from "./drafts.js";
import { refusal } from "./refusal.js";
import { suggest } from "./suggest.js";

/**
 * Puts the input and its buttons into the element of a value.
 * @param {import("./edit.js").Editable} of
 * @param {HTMLElement} element
 * @param {object} shown
 * @param {() => string} shown.value as it is now
 * @param {(text: string) => void} shown.saved
 * @param {() => void} shown.close shows the value again
 */
export function editor(of, element, { value, saved, close }) {
  const { label, name, task, save, kind = "line" } = of;
  const isArea = kind === "lines" || kind === "text";
  const began = value();
  const refused = refusal();
  let saving = false;
  const field = /** @type {HTMLInputElement | HTMLTextAreaElement} */ (h(isArea ? "textarea" : "input", {
    class: "drawer-input", "aria-label": label, rows: kind === "text" ? "8" : isArea ? "1" : null, spellcheck: kind === "number" ? "false" : null,
    inputmode: kind === "number" ? "numeric" : null, autocomplete: "off",
  }));
  field.value = draft(task, name) ?? began;
  const changed = h("p", { class: "drawer-hint", hidden: true, role: "status" }, "It has been changed since you began. Saving replaces that change.");

  const grow = () => {
    if (!isArea) return;
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight + 2}px`;
  };
  const apply = async (act) => {
    if (saving) return;
    saving = true;
    element.classList.add("is-saving");
    refused.clear();
    try {
      await act();
      keepDraft(task, name, undefined);
      close();
    } catch (problem) {
      refused.show(problem, ...(of.offers?.(problem, apply) ?? []));
      field.focus();
    } finally {
      saving = false;
      element.classList.remove("is-saving");
    }
  };
  const submit = () => {
    const text = kind === "text" ? field.value : field.value.trim();
    if (text === began && value() === began) return cancel();
    return apply(async () => {
      await save(text);
      saved(text);
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
    ? suggest(field, {
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
      if (field.isConnected && !saving && field.value === began && !element.contains(document.activeElement)) close();
    }, 150);
  });
  element.replaceChildren(h("div", { class: "editable-input" }, field, list?.element ?? ""), changed, refused.element,
    h("div", { class: "drawer-actions" },
      h("button", { type: "button", class: "button primary", onclick: submit }, "Save"),
      h("button", { type: "button", class: "button", onclick: cancel }, "Cancel"),
      kind === "text" && draft(task, name) !== undefined
        ? h("button", { type: "button", class: "button", onclick: () => { keepDraft(task, name, undefined); close(); } }, "Discard draft") : "",
      of.help ? h("span", { class: "drawer-hint" }, of.help) : ""));
  return {
    focus: () => {
      field.focus();
      if (kind === "line" || kind === "number") field.select();
      grow();
    },
    /** Says that the value is another one now. */
    changed: () => {
      if (!saving) changed.hidden = false;
    },
  };
}
