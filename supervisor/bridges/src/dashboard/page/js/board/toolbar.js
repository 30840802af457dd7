// The row above the board: search, filters, switches, nudge, and the bar for the selected tasks in its place.

import * as route from "../route.js";
import { h, icon, put } from "../dom.js";
import { mayNudge, nudge, nudging } from "../parts/nudge.js";
import { bulk } from "./ondemand.js";

/** The value of the filter that finds tasks without an assignee. */
export const NOBODY = "-";
const TYPING = 150;

/** @typedef {{tenant: string, assignee: string, q: string, archived: boolean, lanes: boolean}} Filters */

/** Reads the filters from the URL; what it does not say is as the configuration has it. @param {route.State} state @param {{lane_by_profile: boolean, include_archived_by_default: boolean}} config @returns {Filters} */
export function filters({ query }, config) {
  const flag = (name, otherwise) => (query[name] === undefined ? otherwise : query[name] === "1");
  return { tenant: route.tenant({ query }) ?? "", assignee: query.assignee ?? "", q: query.q ?? "", archived: flag("archived", config.include_archived_by_default), lanes: flag("lanes", config.lane_by_profile) };
}

export class Toolbar {
  /** @param {{store: import("./store.js").Store, selected: Set<string>, unselect: () => void, create: () => void, all: string | null}} board `all`: what says in the address that it is all tenants */
  constructor(board) {
    this.board = board;
    let timer = 0;
    this.search = h("input", { class: "input search", type: "search", placeholder: "Search", "aria-label": "Search tasks", "aria-keyshortcuts": "/", autocomplete: "off", spellcheck: "false", dir: "auto",
      oninput: () => { clearTimeout(timer); timer = setTimeout(() => route.set({ q: this.search.value || null }, { replace: true }), TYPING); },
      onkeydown: (event) => { if (event.key === "Escape") { event.stopPropagation(); if (this.search.value) { this.search.value = ""; route.set({ q: null }, { replace: true }); } else this.search.blur(); } } });
    this.tenant = h("select", { class: "select", "aria-label": "Tenant", onchange: () => route.set({ tenant: this.tenant.value || board.all }) });
    this.assignee = h("select", { class: "select", "aria-label": "Assignee", onchange: () => route.set({ assignee: this.assignee.value || null }) });
    const flag = (name, label) => h("input", { type: "checkbox", onchange: (event) => route.set({ [name]: event.currentTarget.checked ? "1" : "0" }), "aria-label": label });
    this.archived = flag("archived", "Show archived tasks");
    this.lanes = flag("lanes", "Lanes by profile in Running");
    this.clear = h("button", { type: "button", class: "button quiet small", hidden: true, onclick: () => { this.search.value = ""; route.set({ q: null, tenant: board.all, assignee: null }); } }, "Clear filters");
    const nudges = h("button", { type: "button", class: "button nudge", title: "Check for tasks to start now", hidden: true, onclick: nudge }, icon("play"), "Nudge");
    nudging.then(() => { nudges.hidden = !mayNudge; });
    this.bar = h("div", { class: "bulk", role: "toolbar", "aria-label": "Selected tasks", hidden: true });
    this.element = h("div", { class: "toolbar" },
      h("div", { class: "toolbar-row", role: "search" },
        h("span", { class: "search-box" }, icon("search"), this.search, h("kbd", { "aria-hidden": "true" }, "/")),
        h("div", { class: "toolbar-filters" }, this.tenant, this.assignee,
          h("label", { class: "check" }, this.archived, "Archived"), h("label", { class: "check", title: "Group the running tasks by assignee" }, this.lanes, "Lanes"), this.clear),
        h("span", { class: "grow" }),
        nudges,
        h("button", { type: "button", class: "button primary new", onclick: board.create, "aria-keyshortcuts": "c" }, icon("plus"), "New task")),
      this.bar);
    this.drawn = "";
  }

  /** @param {Filters} now */
  set(now) {
    if (document.activeElement !== this.search) this.search.value = now.q;
    this.archived.checked = now.archived;
    this.lanes.checked = now.lanes;
    this.clear.hidden = !now.q && !now.tenant && !now.assignee;
    const { tenants, assignees } = this.board.store;
    const drawn = JSON.stringify([[...tenants], [...assignees], now.tenant, now.assignee]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const fill = (select, all, rows, chosen) => put(select, h("option", { value: "" }, all),
      [...new Set(chosen && chosen !== NOBODY ? [...rows, chosen] : rows)].sort().map((name) => h("option", { value: name, selected: name === chosen }, name)));
    fill(this.tenant, "All tenants", tenants, now.tenant);
    fill(this.assignee, "All assignees", assignees, now.assignee);
    this.assignee.children[0].after(h("option", { value: NOBODY, selected: now.assignee === NOBODY }, "Nobody"));
  }

  /** Shows the bar while tasks are selected. */
  select() {
    const { selected } = this.board;
    this.bar.hidden = selected.size === 0;
    if (!this.bar.hidden) bulk().then(({ fill }) => fill(this.bar, this.board));
  }
}
