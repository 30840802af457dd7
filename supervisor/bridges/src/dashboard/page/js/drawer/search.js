// The search for a task to link: a field with the tasks that fit what is typed.
import { h } from "../dom.js";
import { tasks } from "./server.js";
import { suggest } from "./suggest.js";

/**
 * Returns the field.
 * @param {string} label
 * @param {object} how
 * @param {(task: string) => boolean} how.isOffered
 * @param {(row: import("./suggest.js").Suggestion) => Promise<boolean>} how.take  Returns whether it was taken; else the field stays.
 * @param {() => void} how.close
 */
export function search(label, { isOffered, take, close }) {
  const input = h("input", { class: "input", type: "text", placeholder: "Title, text or id", "aria-label": label, spellcheck: "false" });
  const list = suggest(input, {
    label: "Tasks", delay: 150, first: true, none: "No task fits",
    find: async () => (await tasks(input.value.trim())).filter((row) => isOffered(row.value)),
    take: async (row) => {
      input.value = row.label;
      if (!(await take(row))) input.focus();
    },
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    close();
  });
  return { element: h("div", { class: "editable-input" }, input, list.element), focus: () => input.focus() };
}
