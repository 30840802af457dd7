// What a person does to a live worker: send it a message, hand its task to somebody else, kill it.

import { verb } from "../api.js";
import { toast } from "../toast.js";
import { ask } from "./ask.js";
import { startable } from "./roster.js";

/** @typedef {{task: string, title: string, profile?: string | null, board?: string}} Worker  `board`: where it is not that of the page. */

/** Asks the board of a worker. @param {string | undefined} board */
const on = (board) => (board ? { headers: { "X-Supervisor-Board": board } } : {});

/** Sends a message to the agent. @param {string} task @param {string} message @param {string} [board] */
export async function steer(task, message, board) {
  const sent = await verb("steer", { task_id: task, message }, { timeout: 45_000, ...on(board) });
  toast(sent.state === "delivered" ? "The agent has the message" : "The message is queued: the agent reads it between two steps");
}

/** Asks for a message and sends it. @param {Worker} worker */
export function message({ task, title, board }) {
  return ask({
    title: `Send a message to the agent of “${title}”`,
    fields: [{ name: "message", label: "Message", kind: "area", isRequired: true, hint: "The agent reads it between two steps of its work. Ctrl+Enter sends it." }],
    action: "Send",
    act: (values) => steer(task, String(values.message), board),
  });
}

/** Ends the worker and gives its task to another profile. @param {Worker} worker */
export async function handOff({ task, title, profile, board }) {
  const names = await startable(board);
  return ask({
    title: `Hand off “${title}”`,
    text: "The worker is ended first. What it has left in its workspace stays for the next one.",
    fields: [
      names.length > 0
        ? { name: "profile", label: "To", kind: "select", choose: "Choose a profile", isRequired: true, options: names.map((name) => ({ value: name, text: name === profile ? `${name} (as now)` : name })) }
        : { name: "profile", label: "To", isRequired: true },
      { name: "reason", label: "Reason", hint: "Kept with the run that ends." },
    ],
    action: "Hand off",
    isDangerous: true,
    act: async ({ profile: to, reason }) => {
      await verb("reassign", { task_id: task, profile: to, reclaim: true, reason: reason || null }, on(board));
      toast(`Handed off to ${to}`);
    },
  });
}

/** Kills the processes of the run at once. @param {Worker} worker */
export function kill({ task, title, board }) {
  return ask({
    title: `Kill the worker of “${title}”?`,
    text: "Its processes are killed at once, and its task is blocked until a person lets it go on.",
    fields: [{ name: "reason", label: "Reason", hint: "Kept as a comment." }],
    action: "Kill",
    isDangerous: true,
    act: async ({ reason }) => {
      await verb("kill", { task_ids: [task], reason: reason || null }, on(board));
      toast("Killed");
    },
  });
}
