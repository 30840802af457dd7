// What a person says to a task that waits: answers, approvals, denials, changes, another try.

import { call, verb } from "../api.js";
import { ask, confirm, sheet } from "../dialog.js";
import { seenLines } from "../diff/hidden.js";
import { command, copy, h } from "../dom.js";
import { problem, toast } from "../toast.js";
import { attachCommand } from "../parts/attach.js";
import * as route from "../route.js";

/** @typedef {import("./store.js").Store} Store @typedef {import("./store.js").Card} Card */

/** @param {Store} store @param {Card} card @param {() => Promise<any>} step @param {string} done */
async function say(store, card, step, done) {
  try {
    await step();
    toast(done);
    return true;
  } catch (error) {
    problem(error);
    return false;
  } finally { store.patch([card.id]); }
}

/** Sends an answer in words: another question that came up meanwhile is not answered by a number. @param {Store} store @param {Card} card @param {string} answer */
export const answer = (store, card, answer) => say(store, card, () => verb("answer", { task_id: card.id, answer }), `Answered: ${answer}`);

/** Approves a task. A review is over with that, so it is asked first. @param {Store} store @param {Card} card */
export async function approve(store, card) {
  if (card.status === "review" && !(await confirm({ title: `Approve "${card.title}"?`, text: "The review is over, and the task is done.", action: "Approve" }))) return false;
  return say(store, card, () => verb("approve", { task_id: card.id }), `Approved "${card.title}"`);
}

/** @param {Store} store @param {Card} card */
export async function deny(store, card) {
  const reason = await ask({ title: `Deny "${card.title}"?`, label: "Reason (the next run reads it)", action: "Deny", danger: true, multiline: true });
  if (reason === null) return false;
  return say(store, card, () => verb("deny", { task_ids: [card.id], ...(reason ? { reason } : {}) }), `Denied "${card.title}"`);
}

/** @param {Store} store @param {Card} card */
export async function requestChanges(store, card) {
  const reason = await ask({ title: `Request changes to "${card.title}"`, label: "What has to change (the next run reads it)", action: "Request changes", multiline: true, required: true });
  if (reason === null) return false;
  return say(store, card, () => verb("request-changes", { task_id: card.id, reason }), `Requested changes to "${card.title}"`);
}

/** @param {Store} store @param {Card} card */
export const retry = (store, card) => say(store, card, () => verb("retry", { task_ids: [card.id] }), `Retrying "${card.title}"`);

/** Copies the command that attaches a terminal. @param {string} id */
export async function attach(id) {
  if (await copy(attachCommand(id))) toast("Copied. Run it in a terminal on the daemon's host:", { hint: attachCommand(id) });
  else sheet({ title: "Attach", content: [h("p", null, "Run this in a terminal on the daemon's host:"), command(attachCommand(id))], actions: [h("button", { type: "submit", class: "button", value: "" }, "Close")] });
}

/** How much of a log a peek shows. */
const LINES = 14;

/** Shows what is needed to decide about a task: what it is to do, what was last said, and the end of its log. @param {string} id */
export async function peek(id) {
  const place = h("div", { class: "peek", "aria-busy": "true" }, h("div", { class: "skeleton peek-wait" }));
  const attaches = h("button", { type: "button", class: "button quiet", hidden: true, onclick: () => attach(id) }, "Attach");
  const { dialog, closed } = sheet({ title: id, wide: true, content: [place], actions: [
    attaches,
    h("button", { type: "button", class: "button", onclick: () => { dialog.close(""); route.set({ task: id }); } }, "Open"),
    h("button", { type: "submit", class: "button primary", value: "", autofocus: true }, "Close")] });
  dialog.addEventListener("keydown", (event) => { if (event.key === " " && !event.target.closest("button")) { event.preventDefault(); dialog.close(""); } });
  try {
    const [shown, log] = await Promise.all([call("GET", `/tasks/${id}`), verb("log", { task_id: id, lines: LINES, readable: true }).catch(() => null)]);
    const { task, why, latest_summary: summary, comments } = shown;
    const part = (label, content) => (content ? h("section", null, h("h3", null, label), content) : null);
    const prose = (passage) => (passage ? h("div", { class: "peek-text", dir: "auto" }, seenLines(passage)) : null);
    const last = comments.at(-1);
    dialog.querySelector("h2").textContent = task.title;
    attaches.hidden = task.status !== "running";
    const isApproval = Boolean(task.question?.approval) || why?.code === "approval" || task.block_kind === "approval";
    place.replaceChildren(...[
      h("p", { class: "peek-facts" }, h("span", { class: "status", dataset: { status: task.status } }, task.status), h("span", { class: "id" }, task.id), task.assignee ? h("span", { class: "muted" }, task.assignee) : null),
      part(isApproval ? "Approval" : task.question ? "Question" : "Waits", prose(task.question?.text ?? why?.text)),
      part("Results so far", prose((task.question?.results ?? []).map((one) => `${one.title}: ${one.summary ?? "no summary"}`).join("\n"))),
      part("Task", prose(task.body)),
      part("Summary", prose(summary)),
      part("Last comment", last ? prose(`${last.author}: ${last.body}`) : null),
      part("End of the log", log?.text ? h("pre", { class: "peek-log", tabindex: "0" }, log.text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "").trimEnd()) : null),
    ].filter(Boolean));
    place.removeAttribute("aria-busy");
  } catch (error) { dialog.close(""); problem(error); }
  await closed;
}
