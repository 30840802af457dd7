// What of a mission waits for a person: questions with their answers as buttons, and the way to everything else.

import { verb } from "../api.js";
import { h, put } from "../dom.js";
import { here, link } from "../route.js";
import { seen, seenLines } from "../diff/hidden.js";
import { problem, toast } from "../toast.js";

/** @param {() => void} done  Called after an answer. */
export function needs(done) {
  const list = h("ul", { class: "asks-list" });
  const element = h("section", { class: "asks panel", "aria-labelledby": "asks-title", hidden: true }, h("h2", { id: "asks-title" }, "Waits for a person"), list);
  let shape = "";

  /** @param {string} task @param {string} answerText @param {HTMLElement} item */
  async function answer(task, answerText, item) {
    item.inert = true;
    try {
      await verb("answer", { task_id: task, answer: answerText });
      toast("Answered");
      done();
    } catch (error) {
      problem(error);
    }
    item.inert = false;
  }

  /** @param {{task: string, title: string, status: string, question: any}} need */
  function row({ task, title, status, question }) {
    const choices = question.choices ?? [];
    const box = /** @type {HTMLInputElement} */ (h("input", { class: "input", "aria-label": `Answer: ${question.text}`, placeholder: "Another answer …", autocomplete: "off" }));
    const form = h("form", { class: "asks-form" }, box, h("button", { type: "submit", class: "button" }, "Answer"));
    const item = h("li", null,
      h("div", { class: "asks-text" }, h("p", { class: "asks-question" }, seenLines(question.text)), title === question.text ? null : h("a", { class: "muted", href: here({ task }) }, title)),
      (question.results ?? []).map((/** @type {any} */ result) => h("p", { class: "muted cut" }, `${result.title}: ${result.summary ?? "no summary"}`)),
      h("div", { class: "asks-acts" },
        choices.map((/** @type {string} */ choice, /** @type {number} */ at) => h("button", { type: "button", class: "button", onclick: () => answer(task, String(at + 1), item) }, seen(choice))),
        question.free_text ? form : null,
        status === "review" ? h("a", { class: "button primary", href: link(`/review/${task}`) }, "Review the changes") : null,
        choices.length === 0 && !question.free_text ? h("a", { class: status === "review" ? "button" : "button primary", href: here({ task }) }, "Open the task") : null));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (box.value.trim() !== "") answer(task, box.value.trim(), item);
    });
    return item;
  }

  return {
    element,
    /** @param {any} mission */
    update(mission) {
      const own = mission.question ? [{ task: mission.id, title: mission.title, status: "", question: mission.question }] : [];
      const tasks = mission.tree.filter((/** @type {any} */ task) => task.needs).map((/** @type {any} */ task) => ({ task: task.id, title: task.title, status: task.status, question: task.needs }));
      const all = [...own, ...tasks];
      element.hidden = all.length === 0;
      const next = JSON.stringify(all);
      // What is being typed stays.
      if (next === shape) return;
      shape = next;
      put(list, all.map(row));
    },
  };
}
