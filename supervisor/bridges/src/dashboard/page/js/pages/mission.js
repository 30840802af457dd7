// The page of one mission: its graph or list, how far it is, what it has used, and what of it waits for a person.

import { verb } from "../api.js";
import { h, put, text } from "../dom.js";
import { here, link, set } from "../route.js";
import { pageKeys } from "../parts/pagekeys.js";
import { problem } from "../toast.js";
import { graph } from "../graph/graph.js";
import { taskList } from "../graph/list.js";
import { cancel, pause, plan, resume, review } from "../missions/acts.js";
import { limits, progress } from "../missions/limits.js";
import { needs } from "../missions/needs.js";
import { waiting } from "../parts/waiting.js";
import { restate, state } from "../parts/state.js";

/** @param {HTMLElement} place @param {string} id */
export function open(place, id) {
  const title = h("h1", null, "Mission");
  const status = state("active", "…");
  const task = h("a", { class: "id", href: here({ task: id }) }, id);
  const acts = h("div", { class: "mission-acts" });
  const why = h("p", { class: "mission-paused", hidden: true });
  const bar = h("div");
  const used = limits();
  const asked = needs(() => read().catch(problem));
  const href = (/** @type {string} */ of) => here({ task: of });
  const drawn = graph(href);
  const list = taskList(href);
  const results = h("section", { class: "work-section", "aria-label": "Results", hidden: true });
  const more = h("p", { class: "muted", hidden: true }, "There are more tasks than are shown: the board has all.");
  const view = h("div", { class: "segments", role: "group", "aria-label": "View" },
    ["graph", "list"].map((name) => h("button", { type: "button", class: "button small", dataset: { view: name }, onclick: () => set({ view: name === "graph" ? null : name }, { replace: true }) }, name === "graph" ? "Graph" : "List")));
  const page = h("div", { class: "page mission-page" },
    h("div", { class: "page-head" }, h("a", { href: link("/missions"), class: "muted" }, "Missions"), h("span", { class: "faint", "aria-hidden": "true" }, "/"), title, status, task, h("span", { class: "push" }), acts),
    why, bar, used.element, asked.element,
    h("section", { class: "work-section", "aria-labelledby": "tasks-title" }, h("div", { class: "section-head" }, h("h2", { id: "tasks-title" }, "Tasks"), view), drawn.element, list.element, more), results);
  const reveal = waiting(page);
  put(place, page);

  /** @type {any} */
  let mission = null;
  let isClosed = false;
  let number = 0;

  const act = (/** @type {(mission: any) => Promise<unknown>} */ run) => () => Promise.resolve(run(mission)).then(() => read()).catch(problem);
  const button = (/** @type {string} */ label, /** @type {(mission: any) => Promise<unknown>} */ run, kind = "") => h("button", { type: "button", class: `button ${kind}`, onclick: act(run) }, label);

  async function read() {
    number += 1;
    const mine = number;
    const answer = await verb("mission-show", { mission: id });
    if (isClosed || mine !== number) return;
    mission = answer;
    // A notice that it could not be read is in its place.
    if (!page.isConnected) put(place, page);
    draw();
    reveal();
  }

  function draw() {
    text(title, mission.title);
    document.title = `${mission.title} · mission · supervisor`;
    restate(status, mission.state);
    const isOver = mission.state === "done" || mission.state === "cancelled";
    if (acts.dataset.state !== mission.state) {
      acts.dataset.state = mission.state;
      put(acts, isOver ? null : [
        button("Plan", plan), button("Review", review),
        mission.state === "paused" ? button("Resume", resume, "primary") : button("Pause", pause),
        button("Cancel", cancel),
      ]);
    }
    why.hidden = !mission.paused;
    text(why, `Paused: ${mission.paused ?? ""}`);
    put(bar, h("div", { class: "mission-progress" }, h("span", { class: "number" }, `${mission.done} of ${mission.tasks} done`), progress(mission.by_status, mission.done, mission.tasks)));
    used.update(mission.use);
    asked.update(mission);
    drawn.update(mission.tree);
    list.update(mission.tree);
    more.hidden = !mission.more;
    const told = mission.tree.filter((/** @type {any} */ one) => one.notes || (one.artifacts ?? []).length > 0);
    results.hidden = told.length === 0;
    put(results, h("h2", null, "Results"), h("ul", { class: "mission-results panel" }, told.map((/** @type {any} */ one) =>
      h("li", null, h("a", { href: href(one.id) }, one.title), one.notes ? h("p", { class: "mission-notes" }, one.notes) : null,
        (one.artifacts ?? []).length > 0 ? h("span", { class: "muted" }, one.artifacts.map((/** @type {any} */ file) => file.filename).join(", ")) : null))));
  }

  const group = "Mission";
  const isPaused = () => mission?.state === "paused";
  const stopKeys = pageKeys(
    { keys: "v", label: "Graph or list", group, run: () => set({ view: list.element.hidden ? "list" : null }, { replace: true }) },
    { keys: "p", label: "Pause or resume", group, when: () => mission !== null, run: () => void act(isPaused() ? resume : pause)() },
    { keys: "e", label: "Open its first task", group, run: () => task.click() },
  );
  read().catch((error) => {
    problem(error);
    put(place, h("section", { class: "notice" }, h("h1", null, "The mission cannot be shown"), h("p", null, error.message), h("a", { class: "button", href: link("/missions") }, "All missions")));
  });
  return {
    read,
    /** @param {import("../route.js").State} now */
    update(now) {
      // A narrow page has room for the list alone.
      const isList = now.query.view === "list" || (now.query.view === undefined && innerWidth < 700);
      list.element.hidden = !isList;
      drawn.element.hidden = isList;
      for (const each of view.children) each.setAttribute("aria-pressed", String((/** @type {HTMLElement} */ (each).dataset.view === "list") === isList));
      task.setAttribute("href", here({ task: id }));
      drawn.refresh();
      if (mission) list.update(mission.tree);
    },
    unmount() {
      isClosed = true;
      stopKeys();
    },
  };
}
