// The tasks of a mission as a list: the same as its graph, in words.

import { h, put } from "../dom.js";
import { state } from "../parts/state.js";

/** @param {(id: string) => string} href */
export function taskList(href) {
  const element = h("ol", { class: "mission-tasks panel" });
  return {
    element,
    /** @param {import("./layers.js").Task[]} tasks */
    update(tasks) {
      const known = new Map(tasks.map((task) => [task.id, task]));
      put(element, tasks.map((task) => {
        const waits = task.after.map((id) => known.get(id)).filter((other) => other && other.status !== "done");
        return h("li", { class: "mission-task", dataset: { task: task.id } }, state(task.status),
          h("div", { class: "mission-task-text" }, h("a", { href: href(task.id) }, task.title),
            task.needs ? h("span", { class: "mission-needs" }, `needs a person: ${task.needs.text}`) : null,
            waits.length > 0 ? h("span", { class: "muted" }, `after ${waits.map((other) => other?.title).join(", ")}`) : null,
            task.summary ? h("span", { class: "muted cut" }, task.summary) : null),
          h("span", { class: "muted cut" }, task.assignee ?? "nobody"));
      }));
    },
  };
}
