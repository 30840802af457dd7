// Changes of tasks, one or many: they are confirmed, shown at once, sent, and taken back where the daemon refuses.

import { Problem, call, verb } from "../api.js";
import { ask, confirm, sheet } from "../dialog.js";
import { h } from "../dom.js";
import { mayNudge, nudge } from "../parts/nudge.js";
import { problem, toast } from "../toast.js";
import { COLUMN } from "./statuses.js";

/** @typedef {import("./store.js").Store} Store @typedef {import("./store.js").Card} Card */
/** What became of a task. @typedef {{id: string, ok: boolean, status?: string, error?: string, hint?: string, note?: string}} Result */

/** The tasks of one request that changes many. */
const AT_ONCE = 200;

/** @param {Card[]} cards */
export const named = (cards) => (cards.length === 1 ? `"${cards[0].title}"` : `${cards.length} tasks`);

/** @param {Card[]} cards */
function endsRuns(cards) {
  const live = cards.filter((card) => card.status === "running").length;
  if (!live) return "";
  return live === 1 ? "Its run is ended." : `${live} live runs are ended.`;
}

/**
 * Asks what a move needs. Returns null where the person cancels.
 * @param {Card[]} cards @param {string} to @returns {Promise<Record<string, string> | null>}
 */
async function details(cards, to) {
  const column = COLUMN[to];
  const text = cards[0] && cards.length === 1 && cards[0].status === "running" ? "Its run is ended." : endsRuns(cards);
  if (to === "blocked") {
    const reason = await ask({ title: `Block ${named(cards)}?`, text, label: "Reason (optional)", action: "Block", placeholder: "What has to happen first" });
    return reason === null ? null : { reason };
  }
  if (to === "scheduled") {
    const at = await ask({ title: `Schedule ${named(cards)}`, text, label: "When (empty: until it is unblocked)", action: "Schedule", placeholder: "2h, tomorrow 09:00, 2026-12-24" });
    return at === null ? null : { at };
  }
  if (to === "done" && cards.length === 1) {
    const result = await ask({ title: `Mark ${named(cards)} as done?`, text, label: "Result (optional)", action: "Mark as done", multiline: true, placeholder: "The outcome of the work" });
    return result === null ? null : { result };
  }
  const sure = column.drop === "confirm" || text
    ? await confirm({ title: to === "archived" ? `Archive ${named(cards)}?` : `Move ${named(cards)} to ${column.word}?`, text: [text, to === "archived" ? "Archived tasks are hidden. They can be brought back." : ""].filter(Boolean).join(" "), action: to === "archived" ? "Archive" : "Move", danger: to === "archived" || Boolean(text) })
    : true;
  return sure ? {} : null;
}

/** Calls a verb that takes many tasks. @param {string} name @param {object} body @param {Card[]} cards @returns {Promise<Result[]>} */
async function many(name, body, cards) {
  try {
    return (await verb(name, body)).results;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return cards.map((card) => ({ id: card.id, ok: false, error: error.detail, hint: error.hint }));
  }
}

/** Sends the same change for each task. @param {Card[]} cards @param {Record<string, any>} change @returns {Promise<Result[]>} */
async function patch(cards, change) {
  // An empty reason or result is none; an empty assignee is nobody.
  const kept = Object.fromEntries(Object.entries(change).filter(([name, value]) => name === "assignee" || value !== ""));
  /** @type {Result[]} */
  const results = [];
  for (let from = 0; from < cards.length; from += AT_ONCE) {
    const some = cards.slice(from, from + AT_ONCE);
    try {
      if (cards.length === 1) {
        await call("PATCH", `/tasks/${cards[0].id}`, { body: kept });
        results.push({ id: cards[0].id, ok: true });
      } else results.push(...(await call("POST", "/tasks/bulk", { body: { ids: some.map((card) => card.id), ...kept } })).results);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      results.push(...some.map((card) => ({ id: card.id, ok: false, error: error.detail, hint: error.hint })));
    }
  }
  return results;
}

/** @param {Card[]} cards @param {string} to @param {Record<string, string>} how */
async function send(cards, to, how) {
  const ids = cards.map((card) => card.id);
  const archived = cards.filter((card) => card.status === "archived");
  if (archived.length) {
    const back = await many("unarchive", { task_ids: archived.map((card) => card.id) }, archived);
    const now = new Map(back.filter((one) => one.ok).map((one) => [one.id, one.status ?? ""]));
    // Each gets back the status that it had; only what is not where it should be goes on.
    const there = back.filter((one) => !one.ok || one.status === to);
    const rest = cards.filter((card) => card.status !== "archived" || (now.has(card.id) && now.get(card.id) !== to)).map((card) => ({ ...card, status: now.get(card.id) ?? card.status }));
    return [...there, ...(rest.length ? await send(rest, to, how) : [])];
  }
  if (to === "review") return many("request-review", { task_ids: ids }, cards);
  if (to === "scheduled") return many("schedule", { ids, ...(how.at ? { at: how.at } : {}) }, cards);
  return patch(cards, { status: to, ...how });
}

/** Shows what was refused, task by task. @param {Result[]} results @param {Card[]} cards @param {string} what */
function report(results, cards, what) {
  const failed = results.filter((one) => !one.ok);
  if (!failed.length) return;
  if (results.length === 1) { toast(failed[0].error ?? "The change was refused", { kind: "error", hint: failed[0].hint ?? "" }); return; }
  const titles = new Map(cards.map((card) => [card.id, card.title]));
  const list = h("ul", { class: "failures" }, failed.map((one) => h("li", { dataset: { failed: one.id } },
    h("div", null, h("span", { class: "id" }, one.id), " ", h("span", { class: "cut", dir: "auto" }, titles.get(one.id) ?? "")),
    h("div", { class: "danger-text" }, one.error), one.hint ? h("div", { class: "muted" }, one.hint) : null)));
  sheet({ title: `${failed.length} of ${results.length} tasks ${what}`, content: [list], actions: [h("button", { type: "submit", class: "button", value: "", autofocus: true }, "Close")], wide: true });
}

/** The tasks of these ids that are there. @param {Store} store @param {string[]} ids */
const known = (store, ids) => ids.map((id) => store.cards.get(id)).filter(Boolean);

/**
 * Moves tasks to another status. Returns whether all went.
 * @param {Store} store @param {string[]} ids @param {string} to
 */
export async function move(store, ids, to) {
  const cards = known(store, ids).filter((card) => card.status !== to);
  if (!cards.length) return true;
  if (COLUMN[to].drop === "none") {
    toast("The daemon starts tasks itself", { kind: "info", hint: "A task runs once it is ready and a slot is free.", action: mayNudge ? { label: "Nudge", run: nudge } : undefined });
    return false;
  }
  const how = await details(cards, to);
  if (how === null) return false;
  const takeBack = store.pretend(cards.map((card) => card.id), to);
  try {
    const results = await send(cards, to, how);
    if (results.some((one) => !one.ok)) takeBack();
    report(results, cards, "were not moved");
    const moved = results.filter((one) => one.ok).length;
    if (moved && (to === "archived" || moved > 1)) toast(`${moved === 1 ? named(cards) : `${moved} tasks`}: ${COLUMN[to].word.toLowerCase()}`);
    return moved === results.length;
  } catch (error) {
    takeBack();
    problem(error);
    return false;
  } finally { store.patch(cards.map((card) => card.id)); }
}

/** @param {Store} store @param {string[]} ids @param {Record<string, any>} change @param {string} done @param {string} failed */
async function change(store, ids, change, done, failed) {
  const cards = known(store, ids);
  if (!cards.length) return;
  try {
    const results = await patch(cards, change);
    report(results, cards, failed);
    const changed = results.filter((one) => one.ok).length;
    if (changed) toast(`${changed === 1 && cards.length === 1 ? named(cards) : `${changed} tasks`}: ${done}`);
  } catch (error) { problem(error); } finally { store.patch(ids); }
}

/** Assigns tasks; an empty text is nobody. @param {Store} store @param {string[]} ids @param {string} assignee */
export const assign = (store, ids, assignee) => change(store, ids, { assignee }, assignee ? `assigned to ${assignee}` : "unassigned", "were not assigned");

/** @param {Store} store @param {string[]} ids @param {number} priority */
export const prioritize = (store, ids, priority) => change(store, ids, { priority }, `priority ${priority}`, "keep their priority");
