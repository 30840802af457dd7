// The page of live workers: what runs, what it uses and says, and the keys to step in.

import { verb } from "../api.js";
import { h, put, text } from "../dom.js";
import { pageKeys } from "../parts/pagekeys.js";
import * as live from "../live.js";
import { go, here, link, set, state, tenant as chosenTenant } from "../route.js";
import { setClock } from "../time.js";
import { problem, toast } from "../toast.js";
import { handOff, kill, message } from "../parts/acts.js";
import { mayNudge, nudge } from "../parts/nudge.js";
import { withCode } from "../drawer/section.js";
import { takesMessages } from "../parts/roster.js";
import { keyed } from "../parts/keyed.js";
import { reason } from "../parts/reason.js";
import { repeat } from "../parts/repeat.js";
import { waiting as unshown } from "../parts/waiting.js";
import { counted } from "../parts/words.js";
import { keyOf, otherBoard, row, taskOf } from "../workers/worker.js";
import { summary } from "../workers/summary.js";

/** The pause between two looks at what workers use, in milliseconds. */
const PAUSE = 2000;
const ORDERS = { age: "Running longest", left: "Ending soonest", cpu: "Most processor time", memory: "Most memory", beat: "Quiet longest", assignee: "Assignee", title: "Title" };

/** @typedef {import("../workers/worker.js").Worker} Worker */

/** The processor time of each run at the last look. */
class Processors {
  constructor() {
    /** @type {Map<string, {cpu_us: number, at: number}>} */
    this.seen = new Map();
  }

  /** Percent of one processor since the last look; null at the first. @param {Worker} worker @returns {number | null} */
  share(worker) {
    const { usage } = worker;
    if (!usage) return null;
    const at = performance.now();
    const before = this.seen.get(keyOf(worker));
    this.seen.set(keyOf(worker), { cpu_us: usage.cpu_us, at });
    return before && at > before.at ? Math.max(0, (usage.cpu_us - before.cpu_us) / ((at - before.at) * 10)) : null;
  }

  /** @param {Set<string>} live */
  forget(live) {
    for (const key of this.seen.keys()) if (!live.has(key)) this.seen.delete(key);
  }
}

/** What a task waits for, without what the page has in other places: the task itself, and commands beside buttons. @param {import("../parts/reason.js").Waiting} why */
const words = (why) => (why.code === "question" ? why.text.replace(/^\w+: /, "").replace(/;? `supervisor answer [^`]*`$/, "") : reason(why, null).replace(/^needs_input: /i, "Asks: "));

/** Tasks that wait, and what for. @param {HTMLElement} list @param {any} status */
function showWaiting(list, status) {
  put(list, status.waiting.map((/** @type {any} */ task) =>
    h("li", { class: "waiting", dataset: { task: task.task } },
      h("a", { href: here({ task: task.task }), class: "waiting-title" }, task.title),
      h("span", { class: "muted" }, ...withCode(words(task.why))))),
  status.waiting_more > 0 ? h("li", { class: "waiting" }, h("a", { href: link("/board") }, `${counted(status.waiting_more, "more task")} on the board`)) : null);
}

/** The layers of the sandbox of all workers, where some are missing and the same ones for each; else null. @param {Worker[]} workers */
const sharedSandbox = (workers) => (workers[0]?.sandbox && workers.every((one) => one.sandbox_lacks && one.sandbox === workers[0].sandbox) ? workers[0].sandbox : null);

/** @param {HTMLElement} main */
export function mount(main) {
  const glance = summary();
  const heading = h("span", { class: "page-count number" });
  const order = h("select", { class: "select", "aria-label": "Order", onchange: () => set({ sort: order.value === "age" ? null : order.value }) },
    Object.entries(ORDERS).map(([value, label]) => h("option", { value }, label)));
  const list = h("ul", { class: "workers", "aria-label": "Live workers" });
  const sandboxes = h("p", { class: "workers-sandbox", hidden: true });
  const heads = h("div", { class: "worker worker-heads", "aria-hidden": "true" },
    ["State", "Task and last note", "Profile", "CPU", "Memory", "Tokens", "Cost", "Time left", ""].map((head) => h("span", null, head)));
  const empty = h("div", { class: "empty", hidden: true });
  const waiting = h("ul", { class: "waitings" });
  const waits = h("section", { class: "work-section", "aria-labelledby": "waiting-title", hidden: true }, h("h2", { id: "waiting-title" }, "Waiting"), waiting);
  const workers = h("section", { class: "work-section", "aria-labelledby": "workers-title" },
    h("div", { class: "section-head" }, h("h2", { id: "workers-title" }, "Workers", heading), order), sandboxes, heads, list, empty);
  const page = h("div", { class: "page work-page" }, h("h1", { class: "unseen" }, "Work"), glance.element, workers, waits);
  const reveal = unshown(page);
  put(main, page);

  const rows = keyed(list, keyOf, row);
  const processors = new Processors();
  /** @type {Worker[]} */
  let shown = [];
  let chosen = "";
  let failed = false;

  const choose = (/** @type {number} */ at, isFocused = true) => {
    const worker = shown[Math.max(0, Math.min(at, shown.length - 1))];
    chosen = worker ? keyOf(worker) : "";
    for (const [key, { element }] of rows.rows) {
      element.classList.toggle("is-chosen", key === chosen);
      if (key === chosen && isFocused) {
        element.scrollIntoView({ block: "nearest" });
        /** @type {HTMLElement} */ (element.querySelector(".worker-title")).focus({ preventScroll: true });
      }
    }
  };
  const at = () => shown.findIndex((worker) => keyOf(worker) === chosen);
  const current = () => shown[at()];

  const polled = repeat(async () => {
    try {
      const tenant = chosenTenant();
      const [status, holds] = await Promise.all([
        verb("status", { sort: state().query.sort ?? "age", ...(tenant ? { tenant } : {}) }),
        verb("holds"),
      ]);
      failed = false;
      setClock(status.now);
      const sameSandbox = sharedSandbox(status.workers);
      text(sandboxes, `The sandbox of each worker: ${sameSandbox}`);
      sandboxes.hidden = !sameSandbox;
      shown = await Promise.all(status.workers.map(async (/** @type {Worker} */ worker) => ({ ...worker, cpu: processors.share(worker), shownBoard: status.board, takesMessages: await takesMessages(worker.profile), sameSandbox: Boolean(sameSandbox) })));
      processors.forget(new Set(shown.map(keyOf)));
      glance.update(status, Array.isArray(holds) ? holds : []);
      rows.set(shown);
      choose(at(), false);
      text(heading, String(shown.length));
      heads.hidden = shown.length === 0;
      empty.hidden = shown.length > 0;
      if (shown.length === 0) {
        const ready = status.counts.ready ?? 0;
        put(empty, h("p", { class: "empty-title" }, "Nothing runs now"), h("p", { class: "muted" }, ready > 0 ? `${counted(ready, "task is", "tasks are")} ready; below is what they wait for.` : "A task that is ready and has an assignee starts by itself."), h("a", { class: "button", href: link("/board") }, "Open the board"));
      }
      showWaiting(waiting, status);
      waits.hidden = status.waiting.length === 0;
    } catch (error) {
      // The connection of the page says that it is lost; one message is enough.
      if (!failed) problem(error);
      failed = true;
    }
    reveal();
  }, PAUSE);

  const stopLive = live.on(() => polled.now());
  const stopGap = live.onGap(() => polled.now());
  const isHere = () => shown.length > 0;
  const on = (/** @type {(worker: any) => unknown} */ act) => () => {
    const worker = current();
    if (!worker) return false;
    Promise.resolve(act({ ...worker, board: otherBoard(worker) })).catch(problem);
    return true;
  };
  const group = "Workers";
  const stopKeys = pageKeys(
    { keys: "j", label: "Next worker", group, when: isHere, run: () => choose(at() + 1) },
    { keys: "k", label: "Previous worker", group, when: isHere, run: () => choose(at() - 1) },
    { keys: "Enter", label: "Follow its log", group, run: on((worker) => go(`/runs/${worker.task}/${worker.run}`, worker.board ? { board: worker.board } : {})) },
    { keys: "e", label: "Open its task", group, run: on((worker) => set({ task: worker.task, ...(worker.board ? { board: worker.board } : {}) })) },
    { keys: "s", label: "Send a message", group, run: on((worker) => (worker.takesMessages ? message(worker) : toast(`The lane of ${worker.profile} takes no messages`, { kind: "info" }))) },
    { keys: "o", label: "Hand off", group, run: on(handOff) },
    { keys: "K", label: "Kill", group, run: on(kill) },
    { keys: "n", label: "Nudge the daemon", group, get hidden() { return !mayNudge; }, when: () => mayNudge, run: () => void nudge() },
  );
  return {
    update(/** @type {import("../route.js").State} */ now) {
      order.value = now.query.sort ?? "age";
      for (const [key, { element }] of rows.rows) {
        const own = shown.find((worker) => keyOf(worker) === key);
        if (own) /** @type {HTMLAnchorElement} */ (element.querySelector("a.id")).href = taskOf(own);
      }
      polled.now();
    },
    unmount() {
      polled.stop();
      stopLive();
      stopGap();
      stopKeys();
    },
  };
}
