// The state of a task, a run, a mission or a check: always a coloured dot and a word.

import { statusWord, text } from "../dom.js";
import { written } from "./words.js";

/** Which status has the colour of a word. A status has its own. @type {Record<string, string>} */
const LIKE = {
  starting: "running", checking: "running", ending: "running", settling: "blocked", unkillable: "blocked", unknown: "blocked",
  completed: "done", approved: "done", check_passed: "done", review_requested: "review", submitted: "review",
  crashed: "blocked", timed_out: "blocked", out_of_memory: "blocked", spawn_failed: "blocked", check_failed: "blocked", unreported: "blocked",
  protocol_violation: "blocked", stalled: "blocked", gave_up: "blocked", failed: "blocked", rate_limited: "scheduled", changes_requested: "scheduled",
  reclaimed: "archived", preempted: "archived", cancelled: "archived", lost: "archived", skipped: "archived",
  check_pending: "review", block_loop_detected: "blocked", dependency_wait: "scheduled", goal_turn: "scheduled",
  queued: "scheduled", written: "scheduled", delivered: "done", not_delivered: "blocked",
  active: "running", waiting: "scheduled", paused: "scheduled",
  ok: "done", healthy: "done", degraded: "warning", critical: "error", not_running: "error", note: "todo",
};

/** The status whose colour a word has. @param {string} word */
export const tone = (word) => LIKE[word] ?? word;

/** A dot and a word. @param {string} word @param {string} [label] */
export const state = (word, label = written(word)) => statusWord(tone(word), label);

/** How grave something is, as a sign and its word: an error, a warning, a note, or that all is well. @param {string} word */
export function severity(word) {
  const element = state(word);
  element.classList.add("severity");
  return element;
}

/** Changes a dot and a word in place. @param {HTMLElement} element @param {string} word @param {string} [label] */
export function restate(element, word, label = written(word)) {
  if (element.dataset.status !== tone(word)) element.dataset.status = tone(word);
  text(element, label);
}
