// The columns of the board, and what a card says of its task's wait.

import { capital, inShort } from "../parts/reason.js";
import { duration, now, short } from "../time.js";

/**
 * A column. `drop`: what it takes to move a task there: "move" asks nothing, "confirm" asks first, "reason" and "time" ask for a text,
 * "none" is where only the daemon moves tasks. `create`: whether a task can be made there. `wide`: whether it is wide even while it is empty.
 * @typedef {{status: string, word: string, drop: "move" | "confirm" | "reason" | "time" | "review" | "none", create: boolean, wide?: boolean, empty: string}} Column
 */

/** @type {Column[]} */
export const COLUMNS = [
  { status: "triage", word: "Triage", drop: "move", create: true, empty: "Ideas that need a specification" },
  { status: "todo", word: "Todo", drop: "move", create: true, empty: "Tasks that wait for other tasks" },
  { status: "scheduled", word: "Scheduled", drop: "time", create: true, empty: "Tasks that start at a time" },
  { status: "ready", word: "Ready", drop: "move", create: true, wide: true, empty: "Tasks that may start" },
  { status: "running", word: "Running", drop: "none", create: false, wide: true, empty: "Tasks with a live worker" },
  { status: "review", word: "Review", drop: "review", create: false, empty: "Work that waits for a review" },
  { status: "blocked", word: "Blocked", drop: "reason", create: true, empty: "Tasks that wait for a person" },
  { status: "done", word: "Done", drop: "confirm", create: false, wide: true, empty: "Finished tasks" },
  { status: "archived", word: "Archived", drop: "confirm", create: false, empty: "Hidden tasks" },
];

/** @type {Record<string, Column>} */
export const COLUMN = Object.fromEntries(COLUMNS.map((column) => [column.status, column]));

/** The words about the workers of tasks that somebody should look at, by task. @type {Map<string, string>} */
export const worrying = new Map();

/** Whether a task waits for something that is broken. @param {import("./store.js").Card} card */
export const isBroken = (card) => card.waits?.code === "environment" && card.status !== "running";

/** @param {import("./store.js").Card} card */
function words(card) {
  const code = card.waits?.code;
  if (card.question) return card.question.text;
  if (code === "unassigned") return "Has no assignee";
  if (code === "triage") return "";
  const until = card.waits?.until ?? (card.status === "scheduled" ? card.not_before : null);
  const isLater = until && until > now();
  if (isBroken(card)) return inShort(card.waits) + (isLater ? ` · retries in ${short(until - now())}` : "");
  if (isLater) return card.status === "scheduled" ? `Starts in ${duration(until - now())}` : `Retries in ${duration(until - now())}`;
  const blocked = card.status === "blocked" && card.block_kind !== "gave_up" ? card.block_reason : null;
  return blocked ? capital(blocked) : card.waits ? inShort(card.waits) : "";
}

/** Returns why a task waits or how long it runs, in one line; empty where there is nothing to say. @param {import("./store.js").Card} card */
export function waiting(card) {
  if (card.status === "running") return [card.started_at ? `Running for ${short(now() - card.started_at)}` : "Running", worrying.get(card.id)].filter(Boolean).join(" · ");
  if (card.status === "done" || card.status === "archived") return "";
  return words(card);
}

/**
 * Returns what a person is needed for; null where nobody is. Ideas in triage have a column of their own.
 * @param {import("./store.js").Card} card @returns {"question" | "approval" | "review" | "gave_up" | "blocked" | null}
 */
export function needed(card) {
  if (!card.needs_person || card.status === "triage") return null;
  if (card.status === "review") return "review";
  const code = card.waits?.code;
  if (card.question?.approval || code === "approval" || card.block_kind === "approval") return "approval";
  if (card.question || code === "question") return "question";
  if (code === "gave_up" || card.block_kind === "gave_up") return "gave_up";
  return "blocked";
}
