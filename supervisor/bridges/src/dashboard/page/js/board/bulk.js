// The bar for the selected tasks: how many there are, and what is done to all of them.

import { h, put } from "../dom.js";
import { changes, moves } from "./ondemand.js";

/** @param {HTMLElement} bar @param {{store: import("./store.js").Store, selected: Set<string>, unselect: () => void}} board */
export function fill(bar, { store, selected, unselect }) {
  const ids = [...selected];
  const title = ids.length === 1 ? ids[0] : `${ids.length} tasks`;
  const act = (label, run) => h("button", { type: "button", class: "button small", onclick: run }, label);
  put(bar, h("span", { class: "bulk-count", role: "status" }, `${ids.length} selected`),
    act("Move to…", async () => { const all = await changes(); const to = await all.status(`Move ${title} to`); if (to && await all.move(store, ids, to)) unselect(); }),
    act("Assign…", async () => { const all = await changes(); const to = await all.assignee(`Assign ${title}`); if (to !== null) await all.assign(store, ids, to); }),
    act("Priority…", async () => { const all = await changes(); const to = await all.priority(`Priority of ${title}`); if (to !== null) await all.prioritize(store, ids, to); }),
    act("Archive", async () => { if (await (await moves()).move(store, ids, "archived")) unselect(); }),
    h("span", { class: "grow" }),
    h("button", { type: "button", class: "button small quiet", onclick: unselect }, "Clear ", h("kbd", null, "Esc")));
}
