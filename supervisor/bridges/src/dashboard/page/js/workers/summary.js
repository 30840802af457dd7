// The fleet at a glance: slots, what waits, holds and rate limits, and what is wrong.

import { h, put, statusWord, text } from "../dom.js";
import { link } from "../route.js";
import { filling, meter } from "../parts/meter.js";
import { capital } from "../parts/reason.js";
import { counted, until } from "../parts/words.js";

const QUEUE = ["triage", "todo", "scheduled", "ready", "review", "blocked"];

/** What is held, in few words. @param {any} hold */
export function heldName(hold) {
  if (hold.scope === "host") return hold.name === "host" ? "all starts on this host" : `starts of ${hold.name.slice(5)}`;
  return `${hold.scope} ${hold.name}`;
}

/** The command that releases a hold, as `status` writes it. @param {any} hold */
export const commandOf = (hold) => `supervisor release --${hold.scope} ${hold.name}`;

/** What holds are on, in words where the daemon has some. @param {any[]} broken @returns {(hold: any) => string} */
export function inWords(broken) {
  const words = new Map(broken.map((one) => [one.release, one.what]));
  return (hold) => words.get(commandOf(hold)) ?? heldName(hold);
}

/** @returns {{element: HTMLElement, update: (status: any, holds: any[]) => void}} */
export function summary() {
  const slots = h("span", { class: "stat-value number" }, "–");
  const bar = meter("Slots");
  const pools = h("div", { class: "stat-pools" });
  const queue = h("ul", { class: "stat-list" });
  const held = h("ul", { class: "stat-list stat-holds" });
  const troubles = h("ul", { class: "troubles", "aria-live": "polite", "aria-label": "Troubles" });
  const stat = (/** @type {string} */ title, /** @type {any[]} */ ...content) => h("section", { class: "stat" }, h("h2", null, title), content);
  const element = h(
    "div",
    { class: "stats" },
    troubles,
    stat("Slots", h("div", { class: "stat-slots" }, slots, bar), pools),
    stat("Queue", queue),
    stat("Holds and rate limits", held),
  );
  return {
    element,
    update(status, holds) {
      const { daemon, counts } = status;
      text(slots, daemon ? `${daemon.taken} of ${daemon.slots} taken` : "no daemon runs");
      const share = daemon && daemon.slots > 0 ? daemon.taken / daemon.slots : 0;
      bar.set(share, slots.textContent ?? "", "plain");
      put(pools, (daemon?.pools ?? []).map((/** @type {any} */ pool) => h("span", { class: "chip", dataset: { kind: pool.places !== null && filling(pool.taken / Math.max(1, pool.places)) !== "plain" ? "warn" : null } }, `pool ${pool.name} ${pool.taken}/${pool.places ?? "?"}`)));
      put(queue, QUEUE.map((name) => h("li", null, h("a", { href: link("/board", { column: name }), class: "stat-count" }, statusWord(name), h("span", { class: counts[name] ? "number" : "number faint" }, String(counts[name] ?? 0))))));
      const name = inWords(status.broken ?? []);
      put(held, holds.length === 0 ? h("li", { class: "muted" }, "none") : holds.slice(0, 4).map((hold) =>
        h("li", { title: hold.reason }, h("span", { class: "chip", dataset: { kind: hold.kind === "manual" ? null : "warn" } }, hold.kind.replaceAll("_", " ")), h("span", { class: "stat-hold" }, `${name(hold)}, ${until(hold.until)}`))),
      holds.length > 0 ? h("li", null, h("a", { href: link("/health") }, holds.length > 4 ? `${counted(holds.length - 4, "more hold")}` : "All of them")) : null);
      const wrong = [...(status.troubles ?? []), ...(daemon?.stopping ? [`The daemon is stopping: ${daemon.stopping}`] : [])];
      if (troubles.textContent !== wrong.join("")) put(troubles, wrong.map((trouble) => h("li", null, capital(trouble))));
      troubles.hidden = wrong.length === 0;
    },
  };
}
