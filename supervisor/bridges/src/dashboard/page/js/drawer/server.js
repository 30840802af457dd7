// What the drawer asks of the API, a function for each.
import { call, verb } from "../api.js";

/** @typedef {import('./suggest.js').Suggestion} Suggestion */

const STATUSES = new Set(["triage", "todo", "scheduled", "ready", "running", "review", "blocked", "done", "archived"]);
/** How many suggestions a list shows. */
const SUGGESTED = 500;

/** Returns a task with all that belongs to it. @param {string} id @param {AbortSignal | undefined} signal */
export function show(id, signal) {
  return call("GET", `/tasks/${id}`, { signal });
}

/** Returns the comments before one. @param {string} id @param {number} comment */
export async function commentsBefore(id, comment) {
  const shown = await call("GET", `/tasks/${id}`, { query: { before_comment: comment } });
  return { comments: shown.comments, more: (shown.more ?? []).includes("comments") };
}

/** Returns the names that begin with a text, of assignees, tenants or policies. @param {string} of @param {string} begins */
export async function names(of, begins) {
  const reply = await verb("names", { of, begins });
  return reply.names.slice(0, SUGGESTED).map((row) => ({ value: row.name, label: row.name, about: row.about ?? "" }));
}

/**
 * Returns the tasks whose id begins with a text or whose title or body has it.
 * @param {string} text
 * @returns {Promise<Suggestion[]>}
 */
export async function tasks(text) {
  const isId = /^(t_)?[0-9a-f]{2,}$/i.test(text);
  const [listed, byId] = await Promise.all([
    verb("list", { search: text || null, limit: 12, page: true, sort: "created-desc" }),
    isId ? about(text.startsWith("t_") ? text : `t_${text}`) : [],
  ]);
  const found = new Map(byId.map((row) => [row.value, row]));
  for (const task of listed.tasks ?? listed) {
    found.set(task.id, { value: task.id, label: task.title, about: task.id, status: task.status });
  }
  return [...found.values()].slice(0, 12);
}

/** Returns what is known of the tasks whose ids begin so: the title and the status. @param {string} begins */
export async function about(begins) {
  const reply = await verb("names", { of: "task", begins });
  return reply.names.map((row) => {
    const [status, ...title] = (row.about ?? "").split("  ");
    const isStatus = STATUSES.has(status);
    return { value: row.name, label: isStatus ? title.join("  ") : row.about ?? row.name, about: row.name, status: isStatus ? status : undefined };
  });
}

/** Returns a page of runs, and the cursor of the next. @param {string} id @param {string | null} cursor */
export function runs(id, cursor) {
  return verb("runs", { task_id: id, page: true, limit: 1000, cursor });
}

/** Returns a page of the events of a task after one. @param {string} id @param {number} since */
export function events(id, since) {
  return call("GET", "/events", { query: { task: id, since, limit: 1000 } });
}

/** @type {Promise<Set<string>> | null} */
let callable = null;

/** Returns the names of the verbs that the session may call. */
export function verbs() {
  callable ??= call("GET", "/verbs").then(
    (rows) => new Set(rows.map((row) => row.name)),
    (problem) => {
      callable = null;
      throw problem;
    },
  );
  return callable;
}
