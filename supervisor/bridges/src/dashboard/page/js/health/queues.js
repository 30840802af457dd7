// The queues: how many tasks are in which status, for whom, what most of them wait for, and the pools.

import { h, put, statusWord } from "../dom.js";
import { link } from "../route.js";
import { duration } from "../time.js";
import { filling, meter } from "../parts/meter.js";
import { counted } from "../parts/words.js";

const STATUSES = ["triage", "todo", "scheduled", "ready", "running", "review", "blocked", "done"];
/** The columns of the table of assignees. */
const WORKED = ["ready", "running", "review", "blocked", "done"];
const MOST = 12;

export function queues() {
  const counts = h("ul", { class: "queue-counts" });
  const oldest = h("p", { class: "muted" });
  const pools = h("ul", { class: "queue-pools" });
  const rows = h("tbody");
  const table = h("div", { class: "panel table-scroll", tabindex: "0", role: "region", "aria-label": "Tasks by assignee" }, h("table", { class: "table" }, h("thead", null, h("tr", null, h("th", { scope: "col" }, "Assignee"), WORKED.map((status) => h("th", { scope: "col", class: "table-number" }, status)))), rows));
  const element = h("section", { class: "work-section", "aria-labelledby": "queues-title" }, h("h2", { id: "queues-title" }, "Queues and pools"), counts, oldest, pools, table);
  let shape = "";
  return {
    element,
    /** @param {any} status @param {any} stats */
    update(status, stats) {
      const next = JSON.stringify([status.counts, status.daemon?.pools, status.daemon?.taken, stats]);
      if (next === shape) return;
      shape = next;
      put(counts, STATUSES.map((name) => h("li", null, h("a", { href: link("/board", { column: name }), class: "queue-count" }, h("span", { class: "queue-number number" }, (status.counts[name] ?? 0).toLocaleString("en-US")), statusWord(name)))));
      put(oldest, stats.oldest_ready_age_seconds > 0 ? `The oldest ready task has waited ${duration(stats.oldest_ready_age_seconds)}.` : "No task is ready and waits.");
      const bars = [["slots", status.daemon?.taken ?? 0, status.daemon?.slots ?? 0], ...(status.daemon?.pools ?? []).map((/** @type {any} */ pool) => [`pool ${pool.name}`, pool.taken, pool.places])];
      put(pools, bars.map(([name, taken, places]) => {
        const bar = meter(String(name));
        const useText = places === null ? `${taken} taken, and the configuration has no such pool` : `${taken} of ${places} taken`;
        bar.set(places ? taken / places : 0, useText, name === "slots" ? "plain" : filling(places ? taken / places : 0));
        return h("li", null, h("span", null, name), h("span", { class: "muted number" }, useText), bar);
      }));
      const sorted = Object.entries(stats.by_assignee ?? {}).sort(([, a], [, b]) => sum(b) - sum(a));
      put(rows, sorted.slice(0, MOST).map(([name, own]) => h("tr", null, h("th", { scope: "row" }, h("a", { href: link("/board", { assignee: name }) }, name)), WORKED.map((column) => h("td", { class: "table-number number" }, own[column] ? String(own[column]) : "–")))),
        sorted.length > MOST ? h("tr", null, h("td", { colspan: String(WORKED.length + 1), class: "muted" }, `${counted(sorted.length - MOST, "more assignee")}`)) : null);
      table.hidden = sorted.length === 0;
    },
  };
}

/** @param {Record<string, number>} counts */
const sum = (counts) => (counts.running ?? 0) * 1000 + (counts.ready ?? 0) + (counts.review ?? 0) + (counts.blocked ?? 0);
