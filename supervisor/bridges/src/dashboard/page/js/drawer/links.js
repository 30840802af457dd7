// What a task waits for and what waits for it: chips with a way to unlink, and a search for another task.
import { h, icon, put } from "../dom.js";
import { later } from "../parts/later.js";
import { here } from "../route.js";
import { refusal } from "./refusal.js";
import { section, some, whenChanged } from "./section.js";
import { about } from "./server.js";

/** How many chips are shown at first. */
const STEP = 12;

/** @type {Map<string, {label: string, status?: string}>} */
const titles = new Map();

/** Returns both lists. @param {import("./drawer.js").Desk} drawer */
export function links(drawer) {
  const part = section("Dependencies");
  const parents = side(drawer, "Waits for", "Add a task that it waits for", (other) => ({ parent_id: other, child_id: drawer.id }));
  const children = side(drawer, "Blocks", "Add a task that waits for it", (other) => ({ parent_id: drawer.id, child_id: other }));
  part.body.append(parents.element, children.element);
  return {
    element: part.element,
    update: (shown) => {
      parents.update(shown.parents);
      children.update(shown.children);
      part.count(shown.parents.length + shown.children.length);
    },
    /** The statuses of the others may have changed. */
    refresh: (changed) => {
      parents.refresh(changed);
      children.refresh(changed);
    },
  };
}

/** @param {import("./drawer.js").Desk} drawer @param {string} label @param {string} adds @param {(other: string) => object} pair */
function side(drawer, label, adds, pair) {
  const chips = h("ul", { class: "links", "aria-label": label });
  const refused = refusal();
  const place = h("div", { class: "links-add" });
  const add = h("button", { type: "button", class: "icon-button small links-plus", "aria-label": adds, title: adds, "aria-expanded": "false", onclick: () => search() }, icon("plus"));
  let limit = STEP;
  /** @type {string[]} */
  let ids = [];

  const change = async (verb, other) => {
    refused.clear();
    try {
      await drawer.act(verb, pair(other));
      return true;
    } catch (problem) {
      refused.show(problem);
      return false;
    }
  };
  const chip = (id) => {
    const known = titles.get(id);
    return h("li", { class: "link-chip", dataset: { status: known?.status ?? null } },
      h("span", { class: "status-dot", "aria-hidden": "true" }),
      h("a", { href: here({ task: id }), title: known ? `${known.label} (${known.status ?? ""})` : id },
        known?.status ? h("span", { class: "unseen" }, `${known.status}: `) : null, h("span", { class: "cut" }, known?.label || id)),
      h("span", { class: "id" }, id),
      h("button", { type: "button", class: "icon-button small", "aria-label": `Unlink ${known?.label ?? id}`, title: "Unlink", onclick: (event) => unlink(event.currentTarget, id) }, icon("close")));
  };
  const unlink = async (button, id) => {
    button.disabled = true;
    if (await change("unlink", id)) add.focus();
    else button.disabled = false;
  };
  const paint = () => {
    put(chips, ids.slice(0, limit).map(chip), ids.length > limit
      ? h("li", null, h("button", { type: "button", class: "button quiet small", onclick: () => { limit += 100; paint(); name(); } }, `Show ${some(ids.length - limit, 100)} more`)) : null,
    h("li", null, add));
  };
  const name = async (changed = new Set()) => {
    const unknown = ids.slice(0, limit).filter((id) => changed.has(id) || !titles.has(id));
    if (!unknown.length) return;
    const found = await Promise.all(unknown.map((id) => about(id).then((rows) => rows.find((row) => row.value === id), () => undefined)));
    const before = JSON.stringify(unknown.map((id) => titles.get(id)));
    found.forEach((row) => { if (row) titles.set(row.value, { label: row.label, status: row.status }); });
    if (JSON.stringify(unknown.map((id) => titles.get(id))) === before) return;
    const focused = [...chips.querySelectorAll("a, button")].indexOf(document.activeElement);
    paint();
    /** @type {any} */ (chips.querySelectorAll("a, button")[focused])?.focus();
  };
  const close = () => {
    put(place);
    add.setAttribute("aria-expanded", "false");
    add.focus();
  };
  const search = async () => {
    if (place.firstChild) return close();
    const { search: field } = await later(import("./search.js"));
    const found = field(adds, {
      isOffered: (other) => other !== drawer.id && !ids.includes(other),
      take: async (row) => {
        titles.set(row.value, { label: row.label, status: row.status });
        if (!(await change("link", row.value))) return false;
        close();
        return true;
      },
      close: () => {
        refused.clear();
        close();
      },
    });
    put(place, found.element);
    add.setAttribute("aria-expanded", "true");
    found.focus();
    return undefined;
  };
  const update = whenChanged((now) => now, (now) => {
    ids = now;
    paint();
    name();
  });
  return {
    element: h("div", { class: "links-side" }, h("h4", null, label), chips, place, refused.element),
    update,
    refresh: name,
  };
}
