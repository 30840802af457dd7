// A comment on a line: the field in which it is written, and the note that it becomes.

import { h } from "../dom.js";

/** What stands below a line. @param {HTMLElement} row */
function below(row) {
  const found = [];
  for (let next = row.nextElementSibling; next?.classList.contains("diff-comment"); next = next.nextElementSibling) found.push(next);
  return found;
}

/**
 * Puts the field below a line, in the place of the note there that it changes.
 * @param {HTMLElement} row
 * @param {{name: string, side: string, text: string, save: (text: string) => void}} of
 */
export function editor(row, { name, side, text, save }) {
  for (const each of below(row)) if (each.classList.contains("is-open") || /** @type {HTMLElement} */ (each).dataset.side === side) each.remove();
  const field = /** @type {HTMLTextAreaElement} */ (h("textarea", { class: "textarea", rows: "3", "aria-label": `Comment on ${name}`, placeholder: "What has to change here? The next run reads it." }));
  field.value = text;
  const done = (/** @type {string} */ commentText) => {
    form.remove();
    save(commentText);
    row.focus({ preventScroll: true });
  };
  const form = h("form", { class: "diff-comment is-open", dataset: { side } },
    side === "old" ? h("p", { class: "muted" }, "On the removed line") : null, field,
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

/** Puts a note below a line, after those that are there. @param {HTMLElement} row @param {{side: string, text: string, edit: () => void}} of */
export function note(row, { side, text, edit }) {
  (below(row).at(-1) ?? row).after(h("div", { class: "diff-comment", dataset: { side } }, side === "old" ? h("span", { class: "chip" }, "removed line") : null, h("p", null, text), h("button", { type: "button", class: "button quiet small", onclick: edit }, "Edit")));
}
