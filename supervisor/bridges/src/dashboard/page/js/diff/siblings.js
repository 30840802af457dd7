// The tasks that did the same work beside a task: its siblings in a fleet or a swarm, to compare with.

import { verb } from "../api.js";

/** So many parents and siblings are looked at. */
const PARENTS = 3;
const MOST = 24;

/** @param {any} details  What `show` says of the task. @returns {Promise<{id: string, title: string}[]>} */
export async function siblings(details) {
  const own = details.task.id;
  const around = await Promise.all([
    ...details.children.slice(0, PARENTS).map((/** @type {string} */ id) => verb("show", { task_id: id }).then((child) => child.parents)),
    ...details.parents.slice(0, PARENTS).map((/** @type {string} */ id) => verb("show", { task_id: id }).then((parent) => parent.children)),
  ].map((asked) => asked.catch(() => [])));
  const ids = [...new Set(around.flat())].filter((id) => id !== own).slice(0, MOST);
  const found = await Promise.all(ids.map((id) => verb("show", { task_id: id }).then(({ task }) => task, () => null)));
  return found.filter((task) => task && task.workspace_kind !== "scratch").map(({ id, title }) => ({ id, title }));
}
