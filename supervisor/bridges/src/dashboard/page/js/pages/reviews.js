// The page of all tasks in review: what waits for a decision, and who makes it.

import { verb } from "../api.js";
import { h, icon, put, text } from "../dom.js";
import * as live from "../live.js";
import { here, link, tenant as chosenTenant } from "../route.js";
import { pageKeys } from "../parts/pagekeys.js";
import { capital } from "../parts/reason.js";
import { soon } from "../parts/soon.js";
import { waiting } from "../parts/waiting.js";
import { ago, stamp } from "../time.js";
import { problem } from "../toast.js";

const MOST = 200;

/** Whether a task waits for a person: neither a worker nor a check decides. @param {any} task */
const asksPerson = (task) => !task.reviewer && task.why?.code !== "check";

/** @param {any} task */
const row = (task) => h("li", { class: "review", dataset: { task: task.id } },
  h("div", { class: "review-task" },
    h("a", { class: "review-name", href: link(`/review/${task.id}`), dir: "auto" }, task.title),
    h("p", { class: "muted", dir: "auto" }, [asksPerson(task) ? "Waits for you to approve it or to request changes" : capital(task.why?.text ?? "waits for a review"), task.assignee ? `by ${task.assignee}` : "", task.tenant ? `tenant ${task.tenant}` : ""].filter(Boolean).join(" · "))),
  h("span", { class: "muted number", title: `Changed ${stamp(task.updated_at)}` }, ago(task.updated_at)),
  h("a", { class: "id", href: here({ task: task.id }), title: "Open the task" }, task.id),
  h("a", { class: asksPerson(task) ? "button primary" : "button", href: link(`/review/${task.id}`), "aria-label": `Open the changes of ${task.title}` }, "Open the changes", icon("right")));

/** @param {HTMLElement} main */
export function mount(main) {
  const count = h("span", { class: "page-count number" });
  const list = h("ul", { class: "reviews panel", "aria-label": "Tasks in review" });
  const more = h("p", { class: "muted", hidden: true }, `The first ${MOST} are shown.`);
  const empty = h("div", { class: "empty", hidden: true }, h("p", { class: "empty-title" }, "Nothing waits for a review"),
    h("p", { class: "muted" }, "A task comes here when its worker hands in work with ", h("code", null, "supervisor request-review"), ", or when its check or reviewer has to look at it."),
    h("a", { class: "button", href: link("/board") }, "Open the board"));
  const page = h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", null, "Review", count)), list, empty, more);
  const reveal = waiting(page);
  put(main, page);
  let isClosed = false;
  async function read() {
    const tenant = chosenTenant();
    const answer = await verb("list", { status: ["review"], why: true, page: true, limit: MOST, ...(tenant ? { tenant } : {}) });
    if (isClosed) return;
    const tasks = [...answer.tasks].sort((a, b) => Number(asksPerson(b)) - Number(asksPerson(a)) || b.priority - a.priority || a.updated_at - b.updated_at);
    text(count, tasks.length ? String(tasks.length) : "");
    // What has the focus is drawn again in its place.
    const focused = document.activeElement?.closest(".review")?.getAttribute("data-task");
    put(list, tasks.map(row));
    if (focused) /** @type {HTMLElement | null} */ (list.querySelector(`[data-task="${CSS.escape(focused)}"] .button`))?.focus({ preventScroll: true });
    list.hidden = tasks.length === 0;
    empty.hidden = tasks.length > 0;
    more.hidden = !answer.next;
  }
  const step = (/** @type {number} */ by) => {
    const names = /** @type {HTMLElement[]} */ ([...list.querySelectorAll(".review-name")]);
    const at = names.findIndex((name) => name.closest(".review")?.contains(document.activeElement));
    names[Math.max(0, Math.min(names.length - 1, at + by))]?.focus();
    return names.length > 0;
  };
  const again = soon(() => read().catch(problem));
  const stopLive = live.on((events) => { if (events.some((event) => event.task_id)) again.ask(); });
  const stopGap = live.onGap(again.ask);
  const group = "Review";
  const stopKeys = pageKeys(
    { keys: "j", label: "Next task", group, run: () => step(1) },
    { keys: "k", label: "Previous task", group, run: () => step(-1) },
  );
  return {
    update() {
      read().catch(problem).finally(reveal);
    },
    unmount() {
      isClosed = true;
      again.stop();
      stopLive();
      stopGap();
      stopKeys();
    },
  };
}
