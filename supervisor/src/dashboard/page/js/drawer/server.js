// What the drawer asks of the API, a function for each.
import { call, verb } from "../api.js";

/** @typedef {import('./suggest.js').Suggestion} Suggestion */

const STATUSES = new Set(["triage", "todo", "scheduled", "ready", "running", "review", "blocked", "done", "archived"]);
/** How many suggestions a list shows. */
const SUGGESTED = 40;

/** Returns a task with all that belongs to it. */
export function show(/** @type {string} */ id, /** @type {AbortSignal | undefined} */ signal) {
  return call("GET", `/tasks/${id}`, { signal });
}

/** Returns the comments before one. */
export async function commentsBefore(/** @type {string} */ id, /** @type {number} */ comment) {
  const shown = await call("GET", `/tasks/${id}`, { query: { before_comment: comment } });
  return { comments: shown.comments, more: (shown.more ?? []).includes("comments") };
}

/** Returns the names that begin with a text, of assignees, tenants or policies. */
export async function names(/** @type {string} */ of, /** @type {string} */ begins) {
  const reply = await verb("names", { of, begins });
  return reply.names.slice(0, SUGGESTED).map((/** @type {any} */ row) => ({ value: row.name, label: row.name, about: row.about ?? "" }));
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
  const found = new Map(byId.map((/** @type {Suggestion} */ row) => [row.value, row]));
  for (const task of listed.tasks ?? listed) {
    found.set(task.id, { value: task.id, label: task.title, about: task.id, status: task.status });
  }
  return [...found.values()].slice(0, 12);
}

/** Returns what is known of the tasks whose ids begin so: the title and the status. */
export async function about(/** @type {string} */ begins) {
  const reply = await verb("names", { of: "task", begins });
  return reply.names.map((/** @type {any} */ row) => {
    const [status, ...title] = (row.about ?? "").split("  ");
    const isStatus = STATUSES.has(status);
    return { value: row.name, label: isStatus ? title.join("  ") : row.about ?? row.name, about: row.name, status: isStatus ? status : undefined };
  });
}

/** Returns a page of runs, and the cursor of the next. */
export function runs(/** @type {string} */ id, /** @type {string | null} */ cursor) {
  return verb("runs", { task_id: id, page: true, limit: 1000, cursor });
}

/** Returns a page of the events of a task after one. */
export function events(/** @type {string} */ id, /** @type {number} */ since) {
  return call("GET", "/events", { query: { task: id, since, limit: 1000 } });
}

/** @type {Promise<Set<string>> | null} */
let callable = null;

/** Returns the names of the verbs that the session may call. */
export function verbs() {
  callable ??= call("GET", "/verbs").then(
    (rows) => new Set(rows.map((/** @type {any} */ row) => row.name)),
    (problem) => {
      callable = null;
      throw problem;
    },
  );
  return callable;
}
