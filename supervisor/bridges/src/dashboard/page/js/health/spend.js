// What was used by day, of the last two weeks: cost where agents report it, else tokens, else requests.

import { verb } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, count, usd } from "../money.js";
import { dayBars } from "../chart/figure.js";

const DAYS = 14;

/** The days up to today, as the ledger names them. */
function days() {
  return Array.from({ length: DAYS }, (_, at) => {
    const day = new Date();
    day.setDate(day.getDate() - (DAYS - 1 - at));
    return `${day.getFullYear()}-${String(day.getMonth() + 1).padStart(2, "0")}-${String(day.getDate()).padStart(2, "0")}`;
  });
}

export function spend() {
  const place = h("div", { class: "panel spend" });
  const element = h("section", { class: "work-section", "aria-labelledby": "spend-title" }, h("h2", { id: "spend-title" }, "Usage, last 14 days"), place);
  return {
    element,
    /** @param {string | undefined} tenant */
    async read(tenant) {
      try {
        const ledger = await verb("spend", { by: "day", since: `${DAYS - 1}d`, ...(tenant ? { tenant } : {}) });
        const { total, rows } = ledger;
        const of = total.cost_micros > 0 ? "cost_micros" : total.tokens > 0 ? "tokens" : "requests";
        const write = (/** @type {any} */ used) => [used.cost_micros ? usd(used.cost_micros) : "", used.tokens ? `${count(used.tokens)} tokens` : "", used.requests ? `${count(used.requests)} requests, ${bytes(used.bytes)}` : ""].filter(Boolean).join(", ") || "nothing";
        const byDay = new Map(rows.map((/** @type {any} */ row) => [row.name, row]));
        put(place, h("p", { class: "figure-value number" }, rows.length === 0 ? "No usage" : write(total)),
          rows.length === 0 ? h("p", { class: "muted" }, "Agents report tokens and cost; proxies count requests.") : dayBars(days().map((day) => ({ label: day, value: byDay.get(day)?.[of] ?? 0, text: byDay.has(day) ? write(byDay.get(day)) : "nothing" })), "Used by day"));
      } catch (error) {
        put(place, h("p", { class: "muted" }, /** @type {Error} */ (error).message));
      }
    },
  };
}
