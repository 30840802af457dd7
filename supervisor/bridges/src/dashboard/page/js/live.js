// Follows the event log over one stream and hands its events on in batches. After a lost connection it goes on where it was.

import { Problem, call, request, signedOut, lost } from "./api.js";

/**
 * @typedef {{id: number, task_id: string | null, run_id: number | null, tenant: string | null, kind: string, payload: any, created_at: number, actor: string}} LiveEvent
 * @typedef {"connecting" | "live" | "reconnecting" | "lost"} LiveState
 */

/** The first event of a burst is handed on at once, the rest of it together. */
const BETWEEN = 50;
/** The stream sends a comment each 15 s: after this long without a byte it is dead. */
const SILENCE = 40_000;
const LONGEST = 5000;
/** A hidden page gives its connection back: browsers allow few to one host. */
const HIDDEN = 60_000;
const MOST = 5000;

const listeners = { events: new Set(), state: new Set(), gap: new Set() };
/** @type {LiveState} */
let state = "connecting";
let since = -1;
let generation = 0;
let tries = 0;
/** @type {AbortController | null} */
let connection = null;
let wake = () => {};
let queue = [];
let handing = 0;
let handedAt = 0;

/** @template T @param {Set<T>} set @param {T} listener */
function listen(set, listener) {
  set.add(listener);
  return () => set.delete(listener);
}

/** Calls a function with each batch of events. @param {(events: LiveEvent[]) => void} listener @returns {() => void} a function that ends it */
export const on = (listener) => listen(listeners.events, listener);
/** Calls a function with the state of the connection, now and after each change. @param {(state: LiveState) => void} listener */
export const onState = (listener) => { listener(state); return listen(listeners.state, listener); };
/** Calls a function where events are missing, and when a lost connection is back: all is read again. @param {() => void} listener */
export const onGap = (listener) => listen(listeners.gap, listener);

/** @param {LiveState} next */
function become(next) {
  if (next === state) return;
  state = next;
  for (const listener of [...listeners.state]) listener(state);
}

function hand() {
  handing = 0;
  handedAt = performance.now();
  const events = queue;
  queue = [];
  if (events.length) for (const listener of [...listeners.events]) listener(events);
}

/** @param {LiveEvent} event */
function take(event) {
  if (event.id <= since) return;
  since = event.id;
  queue.push(event);
  if (queue.length > MOST) { queue = []; gap(); return; }
  if (!handing) handing = setTimeout(hand, Math.max(0, handedAt + BETWEEN - performance.now()));
}

function gap() {
  lost.any = false;
  for (const listener of [...listeners.gap]) listener();
}

/** @param {string} name @param {string} data */
function message(name, data) {
  const value = data ? JSON.parse(data) : null;
  if (name === "hello") {
    // A log that is shorter than what was seen is another log.
    if (value && value.last_event < since) { since = value.last_event; gap(); }
  } else if (name === "folded") gap();
  else if (name === "event" && value) take(value);
  // The dashboard may listen no more: to look for it again would say that the daemon is gone.
  else if (name === "signed_out") { generation += 1; become("lost"); signedOut(); }
}

/** @param {AbortSignal} signal */
async function stream(signal) {
  const response = await request("GET", "/stream", { query: { since }, signal, timeout: 0 });
  const isBack = tries > 0;
  tries = 0;
  become("live");
  // No event says what a page failed to read meanwhile.
  if (isBack || lost.any) gap();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let name = "message";
  let data = "";
  for (;;) {
    let timer = 0;
    const silence = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("silence")), SILENCE); });
    const { done, value } = await Promise.race([reader.read(), silence]).finally(() => clearTimeout(timer));
    if (done) return;
    // What had no answer is read again, too, where the connection was not lost.
    if (lost.any) gap();
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") { if (data || name !== "message") message(name, data); name = "message"; data = ""; }
      else if (line.startsWith("event:")) name = line.slice(6).trim();
      else if (line.startsWith("data:")) data += (data ? "\n" : "") + line.slice(5).trimStart();
    }
  }
}

/** @param {number} milliseconds */
const pause = (milliseconds) => new Promise((resolve) => { const timer = setTimeout(resolve, milliseconds); wake = () => { clearTimeout(timer); resolve(); }; });

/** @param {number} mine */
async function follow(mine) {
  while (mine === generation) {
    connection = new AbortController();
    try {
      await stream(connection.signal);
    } catch (error) {
      if (mine !== generation) return;
      if (error instanceof Problem && error.status === 401) { become("lost"); return; }
    }
    connection.abort();
    if (mine !== generation) return;
    tries += 1;
    become(tries > 3 ? "lost" : "reconnecting");
    await pause(Math.min(LONGEST, 250 * 2 ** tries) * (0.75 + Math.random() / 2));
  }
}

/** Tries again at once. */
export const retry = () => wake();

/**
 * Follows the log of the board from its end. What a page reads after the returned promise is settled misses no event.
 * @returns {Promise<number>} the id of the newest event
 */
export async function restart() {
  generation += 1;
  const mine = generation;
  connection?.abort();
  queue = [];
  tries = 0;
  since = -1;
  become("connecting");
  const page = await call("GET", "/events", { query: { since: Number.MAX_SAFE_INTEGER, limit: 1 } });
  if (mine === generation) {
    since = page.last_event;
    follow(mine);
  }
  return page.last_event;
}

let hiddenTimer = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) {
    hiddenTimer = setTimeout(() => { generation += 1; connection?.abort(); become("connecting"); }, HIDDEN);
  } else if (state === "connecting" && since >= 0) {
    generation += 1;
    follow(generation);
  } else wake();
});
addEventListener("online", () => wake());
