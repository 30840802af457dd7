// The status row: what may be done with a task in its status. It only offers; what is legal the server decides.
import { h } from "../dom.js";
import { toast } from "../toast.js";
import { form } from "./form.js";
import { need } from "./person.js";
import { whenChanged } from "./section.js";

/**
 * @typedef {object} Move
 * @property {string} label
 * @property {string} verb
 * @property {(id: string, text: string, ticked: boolean) => object} body
 * @property {import('./form.js').Asked} [asks] a form comes first
 * @property {boolean} [destructive]
 */

const one = (id) => ({ task_ids: [id] });
const because = (id, text) => (text ? { task_ids: [id], reason: text } : { task_ids: [id] });

/** @type {Record<string, Move>} */
const MOVES = {
  ready: { label: "→ Ready", verb: "promote", body: (id) => ({ task_id: id }) },
  start: { label: "Start now", verb: "promote", body: (id) => ({ task_id: id }) },
  force: {
    label: "→ Ready", verb: "promote", body: (id) => ({ task_id: id, force: true }),
    asks: { label: "Unlink and start", about: "This unlinks the parents that are not done, so that the task waits for them no more.", destructive: true },
  },
  triage: {
    label: "→ Triage", verb: "patch", body: (id) => ({ task_id: id, status: "triage" }),
  },
  withdraw: { label: "→ Ready", verb: "patch", body: (id) => ({ task_id: id, status: "ready" }) },
  specify: { label: "Specify", verb: "specify", body: (id) => ({ task_id: id }) },
  decompose: { label: "Divide", verb: "decompose", body: (id) => ({ task_id: id }) },
  schedule: {
    label: "Schedule", verb: "schedule", body: (id, text) => (text ? { task_id: id, at: text } : { task_id: id }),
    asks: { label: "Schedule", ask: "When", placeholder: "2h, tomorrow 9am, 2026-11-23 09:00. Empty: when it is unblocked", line: true },
  },
  hold: {
    label: "Hold", verb: "hold", body: (id, text) => ({ task_ids: [id], reason: text }),
    asks: { label: "Hold", ask: "Reason", about: "Nothing starts it until the hold is released.", line: true },
  },
  release: { label: "Release", verb: "release", body: one },
  block: {
    label: "Block", verb: "block", body: (id, text) => ({ task_id: id, reason: text || null }),
    asks: { label: "Block", ask: "Why it cannot go on", about: "Nothing starts it until it is unblocked." },
  },
  unblock: {
    label: "Unblock", verb: "unblock", body: because,
    asks: { label: "Unblock", ask: "What has changed (optional)", placeholder: "What has changed (optional). The worker reads it." },
  },
  retry: {
    label: "Retry", verb: "retry", body: because,
    asks: { label: "Retry", ask: "What has changed (optional)", placeholder: "What has changed (optional). The worker reads it." },
  },
  review: {
    label: "Request review", verb: "request-review", body: (id, text) => ({ task_ids: [id], summary: text || null }),
    asks: { label: "Request review", ask: "What was done" },
  },
  complete: {
    label: "Complete", verb: "complete", body: (id, text) => ({ task_ids: [id], summary: text || null }),
    asks: { label: "Complete", ask: "Summary", placeholder: "Summary: what was done, for people and later workers", about: "The task is then done, and its children go on." },
  },
  reclaim: {
    label: "→ Ready", verb: "reclaim", body: (id, text) => ({ task_id: id, reason: text || null }),
    asks: { label: "End the run", ask: "Reason (optional)", about: "This ends the run and returns the task to the queue.", destructive: true },
  },
  cancel: {
    label: "Cancel", verb: "cancel", body: because, destructive: true,
    asks: { label: "Cancel the run", ask: "Reason (optional)", about: "This ends the run, and the task is blocked until it is unblocked.", destructive: true },
  },
  stop: {
    label: "Cancel", verb: "cancel", body: because, destructive: true,
    asks: { label: "Cancel the wait", ask: "Reason (optional)", about: "The task does not wait for a run any more: it is blocked until it is unblocked.", destructive: true },
  },
  kill: {
    label: "Kill", verb: "kill", body: because, destructive: true,
    asks: { label: "Kill the run", ask: "Reason (optional)", about: "This ends the run at once, without time to save its work.", destructive: true },
  },
  reopen: {
    label: "Reopen", verb: "reopen", body: because,
    asks: { label: "Reopen", ask: "What to do again", about: "The task returns to the queue." },
  },
  archive: {
    label: "Archive", verb: "archive", destructive: true, body: (id, _text, ticked) => (ticked ? { task_ids: [id], detach: true } : { task_ids: [id] }),
    asks: { label: "Archive", about: "It leaves the board. A live run ends.", destructive: true, tick: { name: "detach", label: "Unlink open children first" } },
  },
  unarchive: { label: "Unarchive", verb: "unarchive", body: one },
  remove: {
    label: "Delete", verb: "archive", destructive: true, body: (id) => ({ rm: [id] }),
    asks: { label: "Delete for good", about: "The task, its comments, runs, logs and files are deleted. Nothing brings them back.", destructive: true },
  },
};

/** The moves of a status, the most likely one first. */
const OFFERED = {
  triage: ["ready", "specify", "decompose", "block", "complete", "archive"],
  todo: ["force", "schedule", "hold", "block", "triage", "complete", "stop", "archive"],
  scheduled: ["start", "schedule", "hold", "block", "triage", "complete", "stop", "archive"],
  ready: ["schedule", "hold", "block", "triage", "review", "complete", "stop", "archive"],
  running: ["reclaim", "cancel", "kill", "archive"],
  review: ["withdraw", "block", "triage", "complete", "archive"],
  blocked: ["unblock", "retry", "schedule", "review", "triage", "complete", "archive"],
  done: ["reopen", "triage", "archive"],
  archived: ["unarchive", "remove"],
};
const APPROVAL = ["triage", "archive"];

/** Returns the names of the moves that a task is offered. @param {any} shown */
export function offered(shown) {
  const { status, block_kind: kind } = shown.task;
  const moves = status === "blocked" && kind === "approval" ? APPROVAL : OFFERED[status] ?? [];
  // The part above the row has the retry of a task that gave up.
  const own = need(shown) === "gave_up" ? moves.filter((name) => name !== "retry") : moves;
  return shown.why?.code === "hold" ? ["release", ...own] : own;
}

/** Returns the status row. @param {import("./drawer.js").Desk} drawer */
export function moves(drawer) {
  const row = h("div", { class: "drawer-moves", role: "group", "aria-label": "Change the status" });
  const place = h("div", { class: "drawer-move" });
  let opened = "";

  const close = () => {
    const name = opened;
    opened = "";
    place.replaceChildren();
    mark();
    if (name) row.querySelector(`[data-move="${name}"]`)?.focus();
  };
  const mark = () => row.querySelectorAll("button").forEach((button) => {
    if (button.dataset.asks) button.setAttribute("aria-expanded", String(button.dataset.move === opened));
  });
  const act = async (name, text, ticked) => {
    const move = MOVES[name];
    const reply = await drawer.act(move.verb, move.body(drawer.id, text, ticked));
    const note = reply?.results?.[0]?.note ?? reply?.note;
    if (note) toast(note);
    if (name === "remove") drawer.close();
    close();
  };
  const open = (name, problem) => {
    opened = name;
    const move = MOVES[name];
    const children = (drawer.shown()?.children ?? []).length;
    const asks = { label: move.label, ...move.asks, tick: children ? move.asks?.tick : undefined };
    const made = form(drawer.id, `move ${name}`, asks, (text, ticked) => act(name, text, ticked), close);
    place.replaceChildren(made.element);
    if (problem) made.refused.show(problem);
    made.focus();
    mark();
    place.scrollIntoView({ block: "nearest" });
  };
  const press = async (name, button) => {
    if (opened === name) return close();
    if (MOVES[name].asks) return open(name, null);
    button.disabled = true;
    try {
      await act(name, "", false);
    } catch (problem) {
      open(name, problem);
    } finally {
      button.disabled = false;
    }
    return undefined;
  };
  const update = whenChanged(
    (shown) => offered(shown).filter((name) => drawer.may(MOVES[name].verb)),
    (names) => {
      const focused = document.activeElement?.dataset?.move;
      row.replaceChildren(...names.map((name) => h("button", {
        type: "button", class: MOVES[name].destructive ? "button drawer-careful" : "button", dataset: { move: name, asks: MOVES[name].asks ? "form" : null },
        "aria-expanded": MOVES[name].asks ? "false" : null,
        onclick: (event) => press(name, event.currentTarget),
      }, MOVES[name].label)));
      row.hidden = !names.length;
      if (opened && !names.includes(opened)) {
        // What was typed is kept as a draft, for when the move is offered again.
        opened = "";
        place.replaceChildren();
      }
      if (focused) (row.querySelector(`[data-move="${focused}"]`) ?? row.querySelector("button"))?.focus();
      mark();
    },
  );
  return { element: h("div", null, row, place), update, open };
}
