// The page of one run: its log as it grows, what it has used, a box to steer it, and the other runs of its task.

import { Problem, verb } from "../api.js";
import { h, put, text } from "../dom.js";
import { pageKeys } from "../parts/pagekeys.js";
import * as live from "../live.js";
import { here, link } from "../route.js";
import { now, stamp } from "../time.js";
import { problem } from "../toast.js";
import { handOff, kill, steer } from "../parts/acts.js";
import { takesMessages } from "../parts/roster.js";
import { waiting } from "../parts/waiting.js";
import { soon } from "../parts/soon.js";
import { restate, state } from "../parts/state.js";
import { countOr, durationOr, usdOr } from "../parts/words.js";
import { sentMessages } from "../log/messages.js";
import { plainText } from "../log/ansi.js";
import { logPanel } from "../log/panel.js";

/** How a run ended, or how it stands, as a word. @param {any} run */
const standing = (run) => run.outcome ?? (run.purpose === "check" && run.status === "running" ? "checking" : run.status);

/** What is known of a run in short pieces, each with its name. @param {any} run @param {any} details */
function facts(run, details) {
  const took = (run.ended_at ?? now()) - run.started_at;
  const left = !run.ended_at && details.time_limit?.until ? details.time_limit.until - now() : null;
  return [
    ["Profile", run.profile ?? "–"],
    run.purpose === "work" ? null : ["For", run.purpose],
    ["Started", stamp(run.started_at)],
    [run.ended_at ? "Took" : "Runs for", durationOr(took)],
    left === null ? null : ["Time left", durationOr(left)],
    run.exit_code === null ? null : ["Exit", String(run.exit_code)],
    run.signal === null ? null : ["Signal", String(run.signal)],
    run.spent ? ["Tokens", countOr(run.spent.input_tokens + run.spent.output_tokens)] : null,
    run.spent?.cost_micros ? ["Cost", usdOr(run.spent.cost_micros)] : null,
    run.worker_pid && !run.ended_at ? ["Pid", String(run.worker_pid)] : null,
  ].filter((fact) => fact !== null);
}

/** @param {HTMLElement} main */
export function mount(main) {
  const title = h("h1", null, "Run");
  const status = state("starting", "…");
  status.hidden = true;
  const id = h("a", { class: "id", hidden: true });
  const review = h("a", { class: "button small", hidden: true }, "Changes");
  const acts = h("span", { class: "run-acts", hidden: true });
  const factList = h("dl", { class: "facts" });
  const trouble = h("p", { class: "run-error", tabindex: "0", hidden: true });
  const others = h("nav", { class: "run-tabs", "aria-label": "Runs of the task" });
  const place = h("div", { class: "run-log" });
  const box = /** @type {HTMLTextAreaElement} */ (h("textarea", { class: "textarea", rows: "1", "aria-label": "Message to the agent", placeholder: "Message to the agent …" }));
  const send = h("button", { type: "submit", class: "button primary" }, "Send");
  const steering = h("form", { class: "steer", hidden: true }, box, send);
  const sent = sentMessages();
  const page = h("div", { class: "page run-page" }, h("div", { class: "page-head" }, title, status, id, h("span", { class: "push" }), review, acts), factList, trouble, others, place, sent.element, steering);
  const reveal = waiting(page);
  put(main, page);

  /** @type {{task: string, run: number | null} | null} */
  let shown = null;
  /** @type {ReturnType<typeof logPanel> | null} */
  let panel = null;
  /** @type {any} */
  let details = null;
  let takes = true;
  let timer = 0;
  let asked = 0;

  const worker = () => ({ task: details.task.id, title: details.task.title, profile: details.task.assignee });
  const button = (/** @type {string} */ label, /** @type {(worker: any) => Promise<unknown>} */ act) => h("button", { type: "button", class: "button small", onclick: () => act(worker()).then(read, problem) }, label);
  put(acts, button("Hand off", handOff), button("Kill", kill));

  async function read() {
    const mine = shown;
    if (!mine) return;
    asked += 1;
    const number = asked;
    const answer = await verb("show", { task_id: mine.task });
    if (shown !== mine || number !== asked) return;
    takes = await takesMessages(answer.runs.findLast((/** @type {any} */ run) => !run.ended_at)?.profile);
    if (shown !== mine || number !== asked) return;
    details = answer;
    draw();
    reveal();
  }

  function draw() {
    if (!details || !shown) return;
    const runs = details.runs;
    const wanted = shown.run;
    const run = runs.find((/** @type {any} */ one) => one.id === wanted) ?? (wanted === null ? runs.at(-1) : null);
    text(title, details.task.title);
    document.title = `${details.task.title} · run · supervisor`;
    text(id, details.task.id);
    id.hidden = false;
    status.hidden = false;
    id.setAttribute("href", here({ task: details.task.id }));
    review.hidden = !details.task.workspace_kind || details.task.workspace_kind === "scratch";
    review.setAttribute("href", link(`/review/${details.task.id}`, run ? { run: run.id } : {}));
    if (!run) {
      restate(status, details.task.status);
      put(factList, h("dd", { class: "muted" }, runs.length === 0 ? "Nobody has worked on this task yet." : `This task has no run ${wanted}.`));
      return;
    }
    restate(status, standing(run));
    put(factList, facts(run, details).map(([name, content]) => h("div", null, h("dt", null, name), h("dd", { class: "number" }, content))));
    const error = run.outcome === "completed" ? run.summary : run.error ?? run.summary;
    trouble.hidden = !error;
    trouble.classList.toggle("is-good", run.outcome === "completed");
    text(trouble, plainText(error ?? ""));
    const isLive = !run.ended_at;
    acts.hidden = !isLive;
    steering.hidden = !isLive || run.purpose === "check" || !takes;
    sent.update(details.messages ?? [], run.id);
    others.hidden = runs.length < 2;
    const next = JSON.stringify([details.task.id, run.id, runs.map((/** @type {any} */ one) => [one.id, standing(one)])]);
    // The focus stays where it is while nothing has changed.
    if (others.dataset.shape === next) return;
    others.dataset.shape = next;
    put(others, [...runs].reverse().map((/** @type {any} */ one) =>
      h("a", { href: link(`/runs/${details.task.id}/${one.id}`), class: "run-tab", "aria-current": one.id === run.id ? "page" : null }, state(standing(one)), h("span", { class: "id" }, `run ${one.id}`), one.purpose === "work" ? null : h("span", { class: "muted" }, one.purpose))));
  }

  /** @param {import("../route.js").State} at */
  function update(at) {
    const [task, number] = at.params;
    const run = number && /^\d+$/.test(number) ? Number(number) : null;
    if (shown && shown.task === task && shown.run === run) return draw();
    panel?.unmount();
    shown = { task, run };
    // A reading that another one overtakes shows nothing, so only what was drawn, or a failure, ends the wait.
    const failed = (/** @type {unknown} */ error) => {
      reveal();
      // What the page has of the run is of no use without its task.
      if (error instanceof Problem && error.code === "not_found") return void put(place, h("div", { class: "empty" }, h("p", { class: "empty-title" }, "There is no such run"), h("p", { class: "muted" }, error.detail)));
      problem(error);
    };
    panel = logPanel(task, run, { ended: () => read().catch(failed) });
    put(place, panel.element);
    read().catch(failed);
  }

  steering.addEventListener("submit", async (event) => {
    event.preventDefault();
    const message = box.value.trim();
    if (message === "" || !shown) return;
    /** @type {HTMLButtonElement} */ (send).disabled = true;
    try {
      await steer(shown.task, message);
      box.value = "";
    } catch (error) {
      problem(error);
    }
    /** @type {HTMLButtonElement} */ (send).disabled = false;
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      /** @type {HTMLFormElement} */ (steering).requestSubmit();
    }
  });
  const again = soon(() => read().catch(problem));
  const stopLive = live.on((events) => {
    if (shown && events.some((event) => event.task_id === shown?.task)) again.ask();
  });
  const stopGap = live.onGap(again.ask);
  timer = setInterval(() => {
    if (document.visibilityState === "visible" && acts.hidden === false) draw();
  }, 5000);
  const group = "Run";
  const stopKeys = pageKeys(
    { keys: "/", label: "Search in the log", group, run: () => panel?.find() },
    { keys: "n", label: "Next match", group, run: () => panel?.step(1) },
    { keys: "N", label: "Previous match", group, run: () => panel?.step(-1) },
    { keys: "g g", label: "To the start of the log", group, run: () => panel?.toStart() },
    { keys: "G", label: "To the end, and follow", group, run: () => panel?.toEnd() },
    { keys: "p", label: "Pause or follow", group, run: () => panel?.pause() },
    { keys: "s", label: "Write to the agent", group, get hidden() { return steering.hidden; }, when: () => !steering.hidden, run: () => box.focus() },
    { keys: "e", label: "Open the task", group, run: () => id.click() },
  );
  return {
    update,
    unmount() {
      clearInterval(timer);
      again.stop();
      panel?.unmount();
      stopLive();
      stopGap();
      stopKeys();
      shown = null;
    },
  };
}
