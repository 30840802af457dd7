// A comment on a line: the field in which it is written, and the note that it becomes.

import { h } from "../dom.js";

/**
 * Puts the field below a line.
 * @param {HTMLElement} row
 * @param {{path: string, line: number, text: string, save: (text: string) => void}} of
 */
export function editor(row, { path, line, text, save }) {
  const open = row.nextElementSibling;
  if (open?.classList.contains("diff-comment")) open.remove();
  const field = /** @type {HTMLTextAreaElement} */ (h("textarea", { class: "textarea", rows: "3", "aria-label": `Comment on ${path}, line ${line}`, placeholder: "What has to change here? The next run reads it." }));
  field.value = text;
  const done = (/** @type {string} */ said) => {
    form.remove();
    save(said);
    row.focus({ preventScroll: true });
  };
  const form = h("form", { class: "diff-comment is-open" }, field,
    h("div", { class: "actions" },
      text === "" ? null : h("button", { type: "button", class: "button quiet small push-start", onclick: () => done("") }, "Delete"),
      h("button", { type: "button", class: "button small", onclick: () => done(text) }, "Cancel"),
      h("button", { type: "submit", class: "button primary small" }, "Keep the comment")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    done(field.value);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) done(field.value);
    else if (event.key === "Escape") {
      event.stopPropagation();
      done(text);
    }
  });
  row.after(form);
  field.focus();
}

/** Puts the note below a line. @param {HTMLElement} row @param {{text: string, edit: () => void}} of */
export function note(row, { text, edit }) {
  const below = row.nextElementSibling;
  if (below?.classList.contains("diff-comment")) below.remove();
  if (text === "") return;
  row.after(h("div", { class: "diff-comment" }, h("p", null, text), h("button", { type: "button", class: "button quiet small", onclick: edit }, "Edit")));
}
