// One live worker as a row: its state, task and last note, what it uses, the time it has left, and what can be done to it.

import { h, icon, text } from "../dom.js";
import { here, link } from "../route.js";
import { handOff, kill, message } from "../parts/acts.js";
import { meter } from "../parts/meter.js";
import { health } from "../parts/health.js";
import { restate, state } from "../parts/state.js";
import { bytesOr, countOr, durationOr, usdOr } from "../parts/words.js";
import { sparkline } from "../chart/sparkline.js";
import { problem } from "../toast.js";

/**
 * A worker as `status` has it, with its processor time since the last look.
 * @typedef {{board: string, task: string, title: string, run: number, purpose: string, profile: string | null, tenant: string | null, phase: string,
 *   pid: number | null, age_seconds: number, left_seconds: number | null, note: string | null, last_note?: string, sandbox: string | null, sandbox_lacks: boolean, health: string,
 *   last_heartbeat_at: number | null, usage: {cpu_us: number, memory_bytes: number, processes: number} | null,
 *   spent?: {input_tokens: number, output_tokens: number, cost_micros: number | null, model?: string | null}, cpu: number | null, shownBoard: string, takesMessages: boolean,
 *   sameSandbox: boolean}} Worker `sameSandbox`: whether the page says of all workers together what their sandbox lacks
 */

/** The state of a worker, in a word. @param {Worker} worker */
const phase = ({ phase: name, purpose }) => (name === "running" && purpose === "check" ? "checking" : name);

const NOT_STARTED = new Set(["starting", "ending", "settling"]);

/** What names a worker among those of all boards. @param {Worker} worker */
export const keyOf = ({ board, run }) => `${board}/${run}`;
/** The board of a worker, where it is not that of the page. @param {Worker} worker */
export const otherBoard = ({ board, shownBoard }) => (board === shownBoard ? undefined : board);
/** The page of its log. @param {Worker} worker */
const logOf = (worker) => link(`/runs/${worker.task}/${worker.run}`, otherBoard(worker) ? { board: worker.board } : {});
/** Its task beside the page. @param {Worker} worker */
export const taskOf = (worker) => here({ task: worker.task, ...(otherBoard(worker) ? { board: worker.board } : {}) });

/** A value under its name: the name is seen where the columns have no heads. @param {string} name @param {string} title */
function value(name, title) {
  const content = h("span", { class: "worker-value number" });
  return { content, element: h("div", { class: `worker-cell worker-${name}` }, h("span", { class: "worker-label" }, title), content) };
}

/** @param {Worker} first @returns {import("../parts/keyed.js").Row<Worker>} */
export function row(first) {
  let worker = first;
  const status = state(phase(first));
  const title = h("a", { class: "worker-title", href: logOf(first) });
  const details = h("a", { class: "id", href: taskOf(first), "aria-label": `Open task ${first.task}` }, first.task);
  const board = h("span", { class: "chip", hidden: true }, h("span", { class: "cut" }, first.board));
  const note = h("p", { class: "worker-note cut" });
  const profile = h("span", { class: "cut" });
  const tenant = h("span", { class: "chip" }, h("span", { class: "cut" }));
  const [cpu, memory, tokens, cost, left] = [
    value("cpu", "CPU"), value("memory", "Memory"), value("tokens", "Tokens"), value("cost", "Cost"), value("left", "Time left"),
  ];
  const line = sparkline("Processor time of the last two minutes");
  cpu.element.append(line.element);
  const bar = meter("Time left");
  left.element.append(bar);
  const sandbox = h("span", { class: "worker-sandbox" }, "partial sandbox");
  const wellness = health();
  const act = (/** @type {(worker: any) => Promise<unknown>} */ run) => () => run(worker).catch(problem);
  const button = (/** @type {string} */ label, /** @type {string} */ key, /** @type {() => void} */ run) =>
    h("button", { type: "button", class: "button quiet small", onclick: run, "aria-label": `${label}: ${first.title}`, title: `${label} (${key})` }, label);
  const write = button("Message", "s", act(message));
  const acts = h(
    "div",
    { class: "worker-acts" },
    write,
    button("Hand off", "o", act(handOff)),
    button("Kill", "K", act(kill)),
  );
  const element = h(
    "li",
    { class: "worker", dataset: { task: first.task, run: first.run } },
    h("div", { class: "worker-cell worker-state" }, status, wellness.element, sandbox),
    h("div", { class: "worker-cell worker-task" }, h("div", { class: "worker-name" }, title, details), note),
    h("div", { class: "worker-cell worker-who" }, h("span", { class: "worker-profile" }, icon("person"), profile), tenant, board),
    cpu.element, memory.element, tokens.element, cost.element, left.element, acts,
  );
  return {
    element,
    update(next) {
      worker = next;
      write.hidden = !next.takesMessages;
      restate(status, phase(next));
      text(title, next.title);
      title.title = next.title;
      const noteText = next.note ?? next.last_note ?? (NOT_STARTED.has(next.phase) ? "" : "no note yet");
      text(note, noteText);
      note.title = noteText;
      note.classList.toggle("is-empty", !next.note && !next.last_note);
      note.classList.toggle("is-held", Boolean(next.note));
      text(profile, next.profile ?? "–");
      tenant.hidden = !next.tenant;
      text(/** @type {Element} */ (tenant.firstElementChild), next.tenant ?? "");
      board.hidden = !otherBoard(next);
      board.title = `Board ${next.board}`;
      wellness.set(next);
      sandbox.hidden = !next.sandbox_lacks || next.sameSandbox;
      sandbox.title = next.sandbox ?? "";
      text(cpu.content, next.cpu === null ? "–" : `${Math.round(next.cpu)}%`);
      if (next.cpu !== null) line.add(next.cpu);
      text(memory.content, bytesOr(next.usage?.memory_bytes));
      const used = next.spent ? next.spent.input_tokens + next.spent.output_tokens : null;
      text(tokens.content, countOr(used));
      tokens.element.title = next.spent ? `${next.spent.input_tokens.toLocaleString("en-US")} in, ${next.spent.output_tokens.toLocaleString("en-US")} out${next.spent.model ? `, ${next.spent.model}` : ""}` : "The agent reports no tokens";
      text(cost.content, usdOr(next.spent?.cost_micros));
      text(left.content, durationOr(next.left_seconds));
      const whole = next.left_seconds === null ? null : next.left_seconds + next.age_seconds;
      const share = whole ? /** @type {number} */ (next.left_seconds) / whole : null;
      bar.set(share, next.left_seconds === null ? "no limit" : `${durationOr(next.left_seconds)} of ${durationOr(whole)} left`, share !== null && share < 0.1 ? "bad" : share !== null && share < 0.25 ? "warn" : "plain");
    },
  };
}
