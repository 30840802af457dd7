// What a person does to a mission: pause, resume, plan, review, cancel, or create one.

import { verb } from "../api.js";
import { go } from "../route.js";
import { toast } from "../toast.js";
import { ask } from "../parts/ask.js";

/** @typedef {{id: string, title: string, state: string}} Mission */

const reason = { name: "reason", label: "Reason" };

/** @param {Mission} mission */
export const pause = ({ id, title }) =>
  ask({
    title: `Pause “${title}”`,
    text: "Nothing of it starts until it is resumed. What runs goes on, unless you end it.",
    fields: [reason, { name: "now", label: "End its runs as well; their tasks are ready again", kind: "check" }],
    action: "Pause",
    act: async ({ reason: why, now }) => {
      await verb("mission-pause", { mission: id, reason: why || null, now });
      toast("Paused");
      return true;
    },
  });

/** @param {Mission} mission */
export async function resume({ id }) {
  await verb("mission-resume", { mission: id });
  toast("Resumed");
}

/** @param {Mission} mission */
export const cancel = ({ id, title }) =>
  ask({
    title: `Cancel “${title}”?`,
    text: "Its runs are ended, and its tasks that are not done are archived.",
    fields: [{ ...reason, hint: "Kept as a comment on each task." }],
    action: "Cancel the mission",
    isDangerous: true,
    act: async ({ reason: why }) => {
      await verb("mission-cancel", { mission: id, reason: why || null });
      toast("Cancelled");
      return true;
    },
  });

/** @param {Mission} mission */
export async function plan({ id }) {
  await verb("mission-plan", { task_id: id });
  toast("A profile plans the tasks of this mission");
}

/** @param {Mission} mission */
export async function review({ id }) {
  await verb("mission-review", { task_id: id });
  toast("A profile reviews how this mission goes");
}

/** Asks for a goal, and makes a mission of it. */
export const create = () =>
  ask({
    title: "New mission",
    text: "A goal, and limits for all tasks that are made below it.",
    fields: [
      { name: "title", label: "Goal", isRequired: true },
      { name: "body", label: "What is wanted", kind: "area" },
      { name: "max_tasks", label: "Maximum tasks", hint: "Empty: the default of the configuration." },
      { name: "max_cost", label: "Maximum cost (USD)", hint: "Empty: the default of the configuration." },
      { name: "plan", label: "Have a profile plan its tasks", kind: "check", value: true },
    ],
    action: "Create",
    act: async ({ title, body, max_tasks: tasks, max_cost: cost, plan: isPlanned }) => {
      const made = await verb("mission-create", {
        title,
        ...(body ? { body } : {}),
        ...(tasks ? { max_tasks: Number(tasks) } : {}),
        ...(cost ? { max_cost_micros: Math.round(Number(cost) * 1e6) } : {}),
      });
      const id = made.id ?? made.task?.id;
      if (isPlanned) await verb("mission-plan", { task_id: id });
      go(`/missions/${id}`);
      return true;
    },
  });
