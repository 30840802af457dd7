// The output of a run's check: its end, with its colours, and the way to all of it.

import { verb } from "../api.js";
import { h, put } from "../dom.js";
import { link } from "../route.js";
import { spans } from "../log/ansi.js";
import { groundOf, paint } from "../log/colours.js";
import { state } from "../parts/state.js";
import { durationOr } from "../parts/words.js";

/** What is shown of the output. */
const TAIL = 32 << 10;
const LINES = 200;

/** @param {any} task @param {any} run  The run of the check. */
export function checkOutput(task, run) {
  const place = h("pre", { class: "check-output", tabindex: "0", "aria-label": "Output of the check" });
  const isGood = run.outcome === "check_passed";
  const details = /** @type {HTMLDetailsElement} */ (h("details", { class: "panel check-panel" },
    h("summary", null, h("span", { class: "check-name" }, "Check"), state(run.outcome ?? "checking"), h("code", { class: "cut" }, task.check ?? ""),
      h("span", { class: "muted number" }, durationOr((run.ended_at ?? run.started_at) - run.started_at)), run.exit_code ? h("span", { class: "muted" }, `exit ${run.exit_code}`) : null),
    place,
    h("p", { class: "check-more" }, h("a", { href: link(`/runs/${task.id}/${run.id}`) }, "All of its output"))));
  let isRead = false;
  async function read() {
    if (isRead) return;
    isRead = true;
    try {
      const piece = await verb("log", { task_id: task.id, run: run.id, tail: TAIL });
      const ground = groundOf(place);
      const written = piece.text.replace(/\n$/, "").split("\n").slice(-LINES);
      put(place, written.flatMap((/** @type {string} */ line) => [...spans(line).map((span) => {
        const element = h("span", null, span.text);
        if (span.style) paint(element, span.style, ground);
        return element;
      }), "\n"]));
      if (piece.text === "") put(place, h("span", { class: "muted" }, "It has written nothing."));
    } catch (error) {
      isRead = false;
      put(place, h("span", { class: "muted" }, /** @type {Error} */ (error).message));
    }
  }
  details.addEventListener("toggle", () => details.open && read());
  details.open = !isGood;
  return details;
}
