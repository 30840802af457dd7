// Holds and open breakers: what they are on, why, until when, and the button that releases them.

import { verb } from "../api.js";
import { command, h, put, withCode } from "../dom.js";
import { here } from "../route.js";
import { toast } from "../toast.js";
import { ask } from "../parts/ask.js";
import { until, written } from "../parts/words.js";
import { commandOf, heldName, inWords } from "../workers/summary.js";

/** The arguments of `release` that end the holds on something. @param {any} hold */
function arguments_(hold) {
  if (hold.scope === "task") return { task_ids: [hold.name] };
  if (hold.scope === "host") return hold.name === "host" ? { host: true } : { host_of: hold.name.slice(5) };
  return { [hold.scope]: hold.name };
}

/** @param {any} hold @param {() => void} done */
const release = (hold, done) =>
  ask({
    title: `Release ${heldName(hold)}?`,
    text: hold.kind === "breaker" ? "It is tried again at once." : "Its tasks may start at once. Other holds on them stay.",
    fields: [{ name: "reason", label: "Reason" }],
    action: "Release",
    act: async ({ reason }) => {
      await verb("release", { ...arguments_(hold), reason: reason || null });
      toast("Released");
      done();
      return true;
    },
  });

/** @param {() => void} done */
const place = (done) =>
  ask({
    title: "Hold tasks",
    text: "What is held does not start. What runs goes on.",
    fields: [
      { name: "scope", label: "What", kind: "select", options: ["profile", "tenant", "account", "mission", "task"].map((value) => ({ value, text: value })) },
      { name: "name", label: "Its name or id", isRequired: true },
      { name: "until", label: "Until", hint: "2h, tomorrow 9am, 2026-11-23 09:00; empty: until it is released" },
      { name: "reason", label: "Reason" },
    ],
    action: "Hold",
    act: async ({ scope, name, until: end, reason }) => {
      await verb("hold", { ...(scope === "task" ? { task_ids: [name] } : { [String(scope)]: name }), ...(end ? { until: end } : {}), reason });
      toast("Held");
      done();
      return true;
    },
  });

/** @param {() => void} done  Called after a change. */
export function holdList(done) {
  const list = h("ul", { class: "reports panel", hidden: true });
  // Not before the daemon has said so.
  const none = h("p", { class: "muted", hidden: true }, "Nothing is held.");
  const button = h("button", { type: "button", class: "button small", onclick: () => place(done) }, "Hold …");
  const element = h("section", { class: "work-section", "aria-labelledby": "holds-title" },
    h("div", { class: "section-head" }, h("h2", { id: "holds-title" }, "Holds and breakers"), button), none, list);
  let mayRelease = true;
  let shape = "";
  return {
    element,
    /** @param {{hold: boolean, release: boolean}} may */
    allow(may) {
      button.hidden = !may.hold;
      mayRelease = may.release;
      shape = "";
    },
    /** @param {any[]} holds @param {any[]} broken */
    update(holds, broken) {
      none.hidden = holds.length + broken.length > 0;
      list.hidden = !none.hidden;
      const next = JSON.stringify([holds, broken]);
      if (next === shape) return;
      shape = next;
      // What is broken is a hold as well once its breaker is open: its words stand there.
      const words = inWords(broken);
      const held = new Set(holds.map(commandOf));
      put(list, holds.map((hold) =>
        h("li", { class: "row" },
          h("span", { class: "chip", dataset: { kind: hold.kind === "manual" ? null : hold.kind === "breaker" || hold.kind === "login" ? "bad" : "warn" } }, written(hold.kind)),
          h("div", { class: "row-text" },
            h("span", { class: "row-title" }, words(hold)),
            h("span", { class: "muted" }, ...withCode([hold.reason, until(hold.until), `by ${hold.placed_by}`].filter(Boolean).join(" · "))),
            hold.met_by_task ? h("a", { href: here({ task: hold.met_by_task }) }, `met by ${hold.met_by_task}`) : null),
          !mayRelease ? null : h("button", { type: "button", class: "button small", "aria-label": `Release ${heldName(hold)}`, onclick: () => release(hold, done) }, "Release"))),
      broken.filter((one) => !held.has(one.release)).map((one) =>
        h("li", { class: "row" }, h("span", { class: "chip", dataset: { kind: "bad" } }, "broken"),
          h("div", { class: "row-text" }, h("span", { class: "row-title" }, one.what), h("span", { class: "muted" }, ...withCode(one.why)), h("span", { class: "muted" }, one.until ? `tried again ${until(one.until).replace("until ", "at ")}` : "one task tries it now"), one.release ? command(one.release) : null))));
    },
  };
}
