// The choices that the board offers for a task: statuses, assignees, priorities, parents.

import { verb } from "../api.js";
import { tasks } from "../drawer/server.js";
import { pick } from "./picker.js";
import { COLUMNS } from "./statuses.js";

/** @param {string} of @param {string} begins */
async function names(of, begins) {
  return (await verb("names", { of, begins })).names;
}

/** Asks for a status. @param {string} title */
export const status = (title) => pick({ title, placeholder: "Status", items: COLUMNS.filter((column) => column.drop !== "none").map((column) => ({ value: column.status, label: column.word, status: column.status })) });

/** Asks for an assignee. Returns an empty text for nobody. @param {string} title */
export async function assignee(title) {
  const all = await names("assignee", "");
  return pick({ title, placeholder: "Profile or lane", items: [{ value: "", label: "(unassign)" }, ...all.map((one) => ({ value: one.name, label: one.name }))], other: (typed) => ({ value: typed, label: typed, hint: "another worker" }) });
}

/** Asks for a priority. @param {string} title */
export async function priority(title) {
  const words = { 10: "urgent", 5: "high", 1: "above the usual", 0: "usual", "-5": "low" };
  const chosen = await pick({ title, placeholder: "A whole number; higher priorities start first", items: ["10", "5", "1", "0", "-5"].map((value) => ({ value, label: value, hint: words[value] })), other: (typed) => (/^-?\d{1,9}$/.test(typed) ? { value: String(Number(typed)), label: String(Number(typed)) } : null) });
  return chosen === null ? null : Number(chosen);
}

/**
 * Asks for a task among all of them, by the beginning of its id or a word. Returns its id and its title.
 * @param {string} title @param {Set<string>} [without] @returns {Promise<{id: string, title: string} | null>}
 */
export async function task(title, without = new Set()) {
  /** @type {Map<string, string>} */
  const titles = new Map();
  const id = await pick({ title, placeholder: "Id or words of the title", items: async (typed) => {
    const found = (await tasks(typed)).filter((row) => !without.has(row.value));
    for (const row of found) titles.set(row.value, row.label);
    return found.map(({ about, ...row }) => ({ ...row, hint: about }));
  } });
  return id === null ? null : { id, title: titles.get(id) ?? id };
}
