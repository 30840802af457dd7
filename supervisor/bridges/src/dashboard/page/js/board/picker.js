// A dialog to choose one of many: type to narrow the list, arrows and Enter to choose.

import { h, put } from "../dom.js";
import { sheet } from "../dialog.js";

/** @typedef {{value: string, label: string, hint?: string, status?: string}} Item */

const MOST = 100;

/**
 * Returns the value that was chosen; null where the person cancels.
 * @param {{title: string, items: Item[] | ((typed: string) => Promise<Item[]>), placeholder?: string, other?: (typed: string) => Item | null}} of
 *   `items`: all of them, or a function that finds them; `other`: what a text that is no item stands for
 * @returns {Promise<string | null>}
 */
export async function pick({ title, items, placeholder = "Type to narrow the list", other }) {
  let found = Array.isArray(items) ? items : [];
  let current = 0;
  let chosen = null;
  let asked = 0;
  const list = h("ul", { class: "picker-list", role: "listbox", id: "picker-list", "aria-label": title });
  const input = h("input", { class: "input", role: "combobox", "aria-expanded": "true", "aria-controls": "picker-list", "aria-autocomplete": "list", "aria-label": title, placeholder, autocomplete: "off", spellcheck: "false", autofocus: true });

  const draw = () => {
    const typed = input.value.trim().toLowerCase();
    let rows = Array.isArray(items) ? items.filter((item) => `${item.label} ${item.hint ?? ""}`.toLowerCase().includes(typed)) : found;
    const extra = typed && other ? other(input.value.trim()) : null;
    if (extra && !rows.some((row) => row.value === extra.value)) rows = [...rows, extra];
    rows = rows.slice(0, MOST);
    current = Math.max(0, Math.min(current, rows.length - 1));
    put(list, rows.length ? rows.map((item, at) => h("li", { role: "option", id: `picker-${at}`, "aria-selected": String(at === current), onclick: () => choose(item), onpointermove: () => { if (current !== at) { current = at; mark(); } } },
      h("span", { class: item.status ? "status" : "cut", dataset: { status: item.status } }, h("span", { class: "cut", dir: "auto" }, item.label)), item.hint ? h("span", { class: "muted cut", dir: "auto" }, item.hint) : null))
      : h("li", { class: "muted", role: "option", "aria-disabled": "true", "aria-selected": "false" }, "Nothing found"));
    list.rows = rows;
    mark();
  };
  const mark = () => {
    [...list.children].forEach((row, at) => row.setAttribute("aria-selected", String(at === current && list.rows.length > 0)));
    input.setAttribute("aria-activedescendant", `picker-${current}`);
    list.children[current]?.scrollIntoView({ block: "nearest" });
  };
  const choose = (item) => { chosen = item.value; shown.dialog.close("yes"); };
  const find = async () => {
    if (Array.isArray(items)) { draw(); return; }
    asked += 1;
    const mine = asked;
    const got = await items(input.value.trim());
    if (mine === asked) { found = got; draw(); }
  };
  input.addEventListener("input", () => { current = 0; find(); });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); current = (current + step + list.rows.length) % Math.max(1, list.rows.length); mark(); }
    else if (event.key === "Enter") { event.preventDefault(); if (list.rows[current]) choose(list.rows[current]); }
  });
  list.rows = [];
  const shown = sheet({ title, content: [input, list], actions: [] });
  shown.dialog.classList.add("picker");
  find();
  await shown.closed;
  return chosen;
}
