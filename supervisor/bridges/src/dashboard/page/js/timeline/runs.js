// The runs of a time, from the events that begin and end them.

import { call, verb } from "../api.js";
import { written } from "../parts/words.js";

/**
 * @typedef {{run: number, task: string, title: string, who: string, from: number | null, to: number | null, outcome: string | null, isLive: boolean}} Bar
 *   Times in epoch seconds. `from` is null where the run began before what was read, `to` while it goes on.
 * @typedef {{id: number, task_id: string | null, run_id: number | null, kind: string, created_at: number}} Event
 */

/** The events that end a run. What is not among them says something of a run that goes on. */
const ENDS = [
  "completed", "blocked", "block_loop_detected", "dependency_wait", "review_requested", "check_pending", "check_passed", "check_failed", "changes_requested",
  "approved", "reclaimed", "crashed", "timed_out", "goal_turn", "protocol_violation", "cancelled", "preempted", "stalled", "out_of_memory", "rate_limited",
  "lost", "spawn_failed",
];
const WORDS = { check_pending: "handed over to its check", block_loop_detected: "blocked again and again", dependency_wait: "waits for other tasks", goal_turn: "turn over", protocol_violation: "no verdict", spawn_failed: "did not start" };

/** How a run ended, in words. @param {string | null | undefined} outcome */
export const wordOf = (outcome) => (outcome ? WORDS[outcome] ?? written(outcome) : "ended");

/** What one reading takes at most. */
const PAGE = 10_000;
const PAGES = 4;
const TASK_PAGES = 5;
/** How many tasks are asked for by their ids. */
const AT_ONCE = 100;

/** The id of the last event before a time, by halving. @param {number} time @param {number} last @param {AbortSignal} signal */
async function before(time, last, signal) {
  let [low, high] = [0, last];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const { events } = await verb("events", { since: middle, limit: 1 }, { signal });
    if (events.length > 0 && events[0].created_at < time) low = Math.max(middle + 1, events[0].id);
    else high = middle;
  }
  return low;
}

/** The events of a time. @param {number} from @param {string | undefined} tenant @param {AbortSignal} signal */
async function read(from, tenant, signal) {
  const { last_event: last } = await verb("events", { since: Number.MAX_SAFE_INTEGER, limit: 1 }, { signal });
  let since = await before(from, last, signal);
  /** @type {Event[]} */
  const events = [];
  for (let page = 0; page < PAGES; page += 1) {
    const answer = await verb("events", { since, limit: PAGE, kinds: ["claimed", ...ENDS], ...(tenant ? { tenant } : {}) }, { signal });
    events.push(...answer.events);
    if (answer.events.length === 0 || answer.cursor === since) return { events, isCut: false };
    since = answer.cursor;
    if (since >= last) return { events, isCut: false };
  }
  return { events, isCut: true };
}

/** The titles and assignees of the tasks that have changed since a time. @param {number} from @param {string | undefined} tenant @param {AbortSignal} signal */
async function tasks(from, tenant, signal) {
  const known = new Map();
  let cursor = null;
  for (let page = 0; page < TASK_PAGES; page += 1) {
    const answer = await verb("list", { since: Math.floor(from), archived: true, page: true, limit: 1000, ...(tenant ? { tenant } : {}), ...(cursor ? { cursor } : {}) }, { signal });
    for (const task of answer.tasks) known.set(task.id, task);
    cursor = answer.next;
    if (!cursor) break;
  }
  return known;
}

/**
 * The bar of a run, made where there is none. @param {Map<number, Bar>} bars @param {number} run @param {string} task @param {{title?: string, assignee?: string | null}} [details]
 */
function barOf(bars, run, task, details) {
  const found = bars.get(run);
  if (found) return found;
  const made = { run, task, title: details?.title ?? task, who: details?.assignee ?? "nobody", from: null, to: null, outcome: null, isLive: false };
  bars.set(run, made);
  return made;
}

/** Takes an event that begins or ends the run of a bar. @param {Bar} bar @param {Event} event */
function take(bar, event) {
  if (event.kind === "claimed") bar.from = event.created_at;
  // What comes after the end only says more of it.
  else if (ENDS.includes(event.kind) && bar.outcome === null) Object.assign(bar, { to: event.created_at, outcome: event.kind, isLive: false });
}

/** Takes what `status` says of the live runs. @param {Map<number, Bar>} bars @param {any} status */
function takeLive(bars, status) {
  for (const worker of status.workers) {
    if (worker.board !== status.board) continue;
    const own = barOf(bars, worker.run, worker.task);
    Object.assign(own, { from: worker.started_at, title: worker.title, who: worker.profile ?? own.who, isLive: true, to: null, outcome: null });
  }
}

/** The runs that are shown, the first one first. @param {Map<number, Bar>} bars @returns {Bar[]} */
export const inOrder = (bars) => [...bars.values()].filter((one) => one.isLive || one.outcome !== null).sort((a, b) => (a.from ?? 0) - (b.from ?? 0) || a.run - b.run);

const liveNow = (/** @type {string | undefined} */ tenant, /** @type {AbortSignal} */ signal) => verb("status", tenant ? { tenant } : {}, { signal });

/**
 * Reads the runs since a time.
 * @param {number} from @param {string | undefined} tenant @param {AbortSignal} signal
 * @returns {Promise<{bars: Map<number, Bar>, isCut: boolean, now: number}>}
 */
export async function runsSince(from, tenant, signal) {
  const [{ events, isCut }, known, status] = await Promise.all([read(from, tenant, signal), tasks(from, tenant, signal), liveNow(tenant, signal)]);
  /** @type {Map<number, Bar>} */
  const bars = new Map();
  for (const event of events) {
    if (event.run_id !== null && event.task_id !== null) take(barOf(bars, event.run_id, event.task_id, known.get(event.task_id)), event);
  }
  takeLive(bars, status);
  return { bars, isCut, now: status.now };
}

/**
 * Brings bars up to date with events that have just come: a run that ends by the event alone, one that begins with one request for what runs now,
 * another title with one for its task.
 * @param {Map<number, Bar>} bars @param {Event[]} events @param {string | undefined} tenant @param {AbortSignal} signal
 * @param {(now: number) => void} draw  Called for what the events say, and once more for what was read.
 */
export async function follow(bars, events, tenant, signal, draw) {
  const ofRuns = events.filter((event) => event.run_id !== null && event.task_id !== null && (event.kind === "claimed" || ENDS.includes(event.kind)));
  const known = ofRuns.filter((event) => bars.has(event.run_id));
  for (const event of known) take(bars.get(event.run_id), event);
  if (known.length > 0) draw(events.at(-1).created_at);
  const began = ofRuns.filter((event) => !bars.has(event.run_id));
  const shown = new Set([...bars.values()].map((bar) => bar.task));
  const renamed = new Set(events.filter((event) => event.kind === "edited" && shown.has(event.task_id)).map((event) => event.task_id));
  const ids = [...new Set([...renamed, ...began.map((event) => event.task_id)])].slice(0, AT_ONCE);
  if (ids.length === 0) return;
  const [status, cards] = await Promise.all([
    began.length > 0 ? liveNow(tenant, signal) : null,
    call("GET", "/board", { query: { ids: ids.join(",") }, signal }),
  ]);
  const tasks = new Map(cards.columns.flatMap((/** @type {any} */ column) => column.tasks).map((/** @type {any} */ task) => [task.id, task]));
  const isWanted = (/** @type {any} */ task) => task && (!tenant || task.tenant === tenant);
  for (const event of began) if (isWanted(tasks.get(event.task_id))) take(barOf(bars, event.run_id, event.task_id, tasks.get(event.task_id)), event);
  if (status) takeLive(bars, status);
  for (const bar of bars.values()) if (renamed.has(bar.task)) bar.title = tasks.get(bar.task)?.title ?? bar.title;
  draw(cards.now);
}
