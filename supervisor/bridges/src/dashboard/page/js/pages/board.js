// The board: what needs a person, and a column per status.

import { Problem, call } from "../api.js";
import * as live from "../live.js";
import * as route from "../route.js";
import { h, put, text } from "../dom.js";
import { problem } from "../toast.js";
import { setWidth } from "../board/card.js";
import { ColumnView } from "../board/column.js";
import { Cursor } from "../board/cursor.js";
import { draggable } from "../board/drag.js";
import { Needs } from "../board/needs.js";
import { moves } from "../board/ondemand.js";
import { COLUMNS, needed, worrying } from "../board/statuses.js";
import { Store, order } from "../board/store.js";
import { NOBODY, Toolbar, filters } from "../board/toolbar.js";

/** How often ages and waits in sight are brought up to date. */
const TICK = 10_000;
/** The statuses in which a task waits for something that may pass. */
const WAITING = ["todo", "scheduled", "ready"];
/** How many running tasks are read again with each tick. */
const RUNNING = 12;
const ENDS = /complet|done|archiv|reopen|link|delet|promot/;
const WIDE = "supervisor.columns";
/** The words about a worker that a card shows. */
const WORRYING = ["quiet", "overdue", "stuck"];

class Board {
  /** @param {HTMLElement} main @param {import("../app.js").Context} context */
  constructor(main, context) {
    this.context = context;
    this.store = new Store((changed) => this.later(changed));
    /** @type {Set<string>} */
    this.selected = new Set();
    /** Where a range of selected cards begins. @type {string | null} */
    this.anchor = null;
    /** In which column a card is shown. @type {Map<string, string>} */
    this.placed = new Map();
    /** @type {Set<string> | null} */
    this.found = null;
    this.now = filters(route.state(), context.config);
    this.asked = new AbortController();
    /** @type {Set<string> | "all"} */
    this.dirty = "all";
    this.frame = 0;
    /** The column that the address names, and while it is not shown yet. */
    this.named = this.column = "";
    /** A task that was made or moved here and is not shown yet. */
    this.made = "";
    const made = {
      decorate: (element, card) => this.decorate(element, card),
      creating: () => ({ tenant: this.now.tenant, assignees: this.store.assignees, made: (id) => { this.made = id; this.store.patch([id]); } }),
      more: () => this.store.more().catch(problem),
    };
    this.views = COLUMNS.map((column) => new ColumnView(column, made));
    this.needs = new Needs(this.store);
    this.toolbar = new Toolbar({ store: this.store, selected: this.selected, unselect: () => this.unselect(), create: () => this.create("ready"), all: context.config.default_tenant ? route.ALL : null });
    this.strip = h("nav", { class: "strip", "aria-label": "Columns" }, this.views.map((view) => {
      view.chip = h("span", { class: "number" });
      return view.tab = h("button", { type: "button", class: "strip-one status", dataset: { status: view.column.status }, onclick: () => this.aim(view) }, view.column.word, view.chip);
    }));
    this.columns = h("div", { class: "columns", "aria-busy": "true" }, this.views.map((view) => view.element));
    this.element = h("div", { class: "board" }, h("h1", { class: "unseen" }, "Board"), this.toolbar.element, this.needs.element, this.strip, this.columns);
    this.cursor = new Cursor({ views: this.views, store: this.store, selected: this.selected, toggle: (id) => this.toggle(id), extend: (id) => this.extend(id), selectAll: (status) => this.selectAll(status), unselect: () => this.unselect(), toolbar: this.toolbar, needs: this.needs, create: (status) => this.create(status) });
    put(main, this.element);
    this.remember();
    this.ends = [
      this.cursor.remove,
      draggable(this.columns, { ids: (id) => (this.selected.has(id) ? [...this.selected] : [id]), drop: (ids, to) => this.drop(ids, to) }),
      live.on((events) => this.events(events)),
      live.onGap(() => { this.store.reload(); if (this.now.q) this.search(); }),
    ];
    this.columns.addEventListener("click", (event) => this.click(event));
    this.columns.addEventListener("focusin", (event) => { const card = event.target.closest(".card"); if (card) this.cursor.note(card.dataset.task, card.dataset.status); });
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.columns);
    this.resize();
    this.timer = setInterval(() => this.tick(), TICK);
    this.settle();
    this.now = filters(route.state(), context.config);
    this.read();
    if (this.now.q) this.search();
  }

  /** The columns that had tasks last time are wide at once, so that nothing moves when they arrive. */
  remember() {
    let wide = null;
    try { wide = JSON.parse(localStorage.getItem(WIDE) ?? "null"); } catch { /* storage is off, or holds something else */ }
    for (const view of this.views) { view.wide = Array.isArray(wide) ? wide.includes(view.column.status) : true; view.narrow(); }
    this.first = true;
  }

  /** Shows a column. @param {ColumnView} view */
  aim(view) {
    view.wide = true;
    view.narrow();
    view.element.scrollIntoView({ inline: "center", block: "nearest" });
  }

  /** Shows the column that the address names, and puts the keyboard there. */
  aimed() {
    const view = this.views.find((one) => one.column.status === this.column && !one.element.hidden);
    if (!view) return;
    this.column = "";
    this.aim(view);
    view.element.classList.add("fresh");
    if (view.cards.length) this.cursor.note(view.cards[0].id, view.column.status);
  }

  /** An address that names no tenant is that of the configured one. Returns whether it was changed. */
  settle() {
    const { default_tenant: tenant } = this.context.config;
    if (!tenant || route.state().query.tenant !== undefined) return false;
    route.set({ tenant }, { replace: true });
    return true;
  }

  read() {
    this.store.load({ tenant: this.now.tenant, archived: this.now.archived }).then(() => this.look()).catch((error) => {
      if (error.name !== "AbortError") problem(error);
    });
  }

  /** @param {route.State} state */
  update(state) {
    // The change of the address comes back here.
    if (this.settle()) return;
    const before = this.now;
    this.now = filters(state, this.context.config);
    if (before.tenant !== this.now.tenant || before.archived !== this.now.archived) this.read();
    if (before.q !== this.now.q) this.search();
    const column = state.query.column ?? "";
    if (column !== this.named) this.column = column;
    this.named = column;
    this.later(null);
    this.opened = state.query.task ?? "";
    for (const view of this.views) view.list.refresh();
  }

  /** Has the daemon look into the bodies, too. */
  search() {
    this.asked.abort();
    this.asked = new AbortController();
    this.found = null;
    const { q } = this.now;
    if (q.trim().length < 2) return;
    this.store.search(q.trim(), this.asked.signal).then((found) => { if (q === this.now.q) { this.found = found; this.later(null); } }, (error) => { if (error.name !== "AbortError") problem(error); });
  }

  /** @param {live.LiveEvent[]} events */
  events(events) {
    const ids = new Set(events.map((event) => event.task_id).filter(Boolean));
    // A parent's card counts its children, and has no event of its own when one of them ends.
    if (events.some((event) => ENDS.test(event.kind))) {
      for (const view of this.views) for (const id of view.list.visible()) if (this.store.cards.get(id)?.children.total) ids.add(id);
    }
    this.store.patch(ids, Math.min(...events.map((event) => event.created_at)));
  }

  /** @param {Set<string> | null} changed */
  later(changed) {
    if (changed === null || this.dirty === "all") this.dirty = "all";
    else for (const id of changed) { for (const status of [this.placed.get(id), this.store.cards.get(id)?.status]) if (status) this.dirty.add(status); }
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  /** @param {import("../board/store.js").Card} card @param {string} q */
  matches(card, q) {
    const { tenant, assignee } = this.now;
    if (tenant && card.tenant !== tenant) return false;
    if (assignee && (assignee === NOBODY ? card.assignee !== null : card.assignee !== assignee)) return false;
    return !q || card.text.includes(q) || (this.found?.has(card.id) ?? false);
  }

  draw() {
    const { dirty, store, now } = this;
    const q = now.q.trim().toLowerCase();
    this.dirty = new Set();
    const cards = Object.fromEntries(COLUMNS.map((column) => [column.status, []]));
    const waiting = [];
    for (const card of store.cards.values()) {
      if (!this.matches(card, q)) continue;
      if (needed(card)) waiting.push(card);
      if (dirty === "all" || dirty.has(card.status)) cards[card.status]?.push(card);
    }
    if (dirty === "all") this.placed.clear();
    const filtered = Boolean(q || now.assignee);
    for (const view of this.views) {
      const { status } = view.column;
      view.element.hidden = view.tab.hidden = status === "archived" && !now.archived;
      if (dirty !== "all" && !dirty.has(status)) continue;
      const mine = cards[status].sort(order);
      for (const card of mine) this.placed.set(card.id, status);
      const counted = store.next && !filtered ? store.counts?.[status] : undefined;
      const total = Math.max(mine.length, counted ?? 0);
      const loaded = store.isCounted(status);
      if (this.first && store.loaded) view.wide = total > 0;
      view.set(mine, { lanes: now.lanes && status === "running", total, more: Boolean(store.next && !store.loading), filtered: filtered || Boolean(now.tenant), loaded, first: store.cards.size === 0 });
      text(view.chip, loaded ? total.toLocaleString("en-US") : "");
    }
    if (store.loaded) {
      this.first = false;
      this.columns.removeAttribute("aria-busy");
      try { localStorage.setItem(WIDE, JSON.stringify(this.views.filter((view) => view.wide).map((view) => view.column.status))); } catch { /* storage is off: next time all are wide */ }
    }
    this.element.dataset.empty = String(store.loaded && store.cards.size === 0);
    if (this.column && store.loaded) this.aimed();
    if (this.made && this.placed.has(this.made)) this.showMade(this.made);
    this.needs.set(waiting, store.isCounted("blocked"));
    this.toolbar.set(now);
    if (this.selected.size) {
      const before = this.selected.size;
      for (const id of this.selected) if (!store.cards.has(id)) this.selected.delete(id);
      if (before !== this.selected.size) this.select();
    }
  }

  /** @param {string[]} ids @param {string} to */
  async drop(ids, to) {
    if (!(await (await moves()).move(this.store, ids, to))) return;
    this.unselect();
    if (ids.length === 1) { this.made = ids[0]; this.later(new Set(ids)); }
  }

  /** Shows where a task is that was made or moved here. @param {string} id */
  showMade(id) {
    this.made = "";
    const element = this.views.find((view) => view.column.status === this.placed.get(id))?.list.reveal(id);
    element?.classList.add("fresh");
  }

  resize() {
    const list = this.views.find((view) => view.list.element.clientWidth > 60)?.list.element;
    if (list && setWidth(list.clientWidth - 16)) { this.dirty = "all"; this.draw(); }
  }

  tick() {
    if (document.hidden) return;
    for (const view of this.views) view.tick();
    this.needs.tick();
    if (!this.store.loaded) return;
    const shown = (status) => this.views.filter((view) => status.includes(view.column.status)).flatMap((view) => view.list.visible()).filter((id) => this.store.cards.has(id));
    if (shown(WAITING).length) this.store.refresh(WAITING);
    // What a run costs grows without an event, too.
    this.store.patch(shown(["running"]).slice(0, RUNNING));
    this.look();
  }

  /** Asks how the workers of the tasks in sight are. */
  async look() {
    if (![...this.store.cards.values()].some((card) => card.status === "running")) return;
    try {
      const { runs } = await call("GET", "/runs/live", { query: { tenant: this.now.tenant || null } });
      worrying.clear();
      for (const run of runs) if (WORRYING.includes(run.health)) worrying.set(run.task, run.health);
      for (const view of this.views) view.tick();
    } catch (error) { if (!(error instanceof Problem)) throw error; }
  }

  /** @param {HTMLElement} element @param {import("../board/store.js").Card} card */
  decorate(element, card) {
    const selected = this.selected.has(card.id);
    element.classList.toggle("selected", selected);
    element.classList.toggle("opened", this.opened === card.id);
    element.querySelector(".card-check").checked = selected;
    const view = this.views.find((one) => one.column.status === card.status);
    const current = this.cursor.status === card.status ? this.cursor.id : view?.cards[0]?.id;
    element.querySelector(".card-title").tabIndex = current === card.id ? 0 : -1;
  }

  /** @param {MouseEvent} event */
  click(event) {
    const card = event.target instanceof Element ? event.target.closest(".card") : null;
    if (!card) {
      const rail = event.target.closest(".column.rail");
      if (rail && !event.target.closest("button")) { const view = this.views.find((one) => one.element === rail); view.wide = true; view.narrow(); this.resize(); }
      return;
    }
    const id = card.dataset.task;
    this.cursor.note(id, card.dataset.status);
    if (event.target.matches(".card-check")) { if (event.shiftKey) this.extend(id); else this.toggle(id); return; }
    if (event.shiftKey) { event.preventDefault(); this.extend(id); return; }
    if (event.ctrlKey || event.metaKey) { event.preventDefault(); this.toggle(id); return; }
    event.preventDefault();
    route.set({ task: id });
  }

  /** @param {string} id */
  toggle(id) {
    if (!this.selected.delete(id)) this.selected.add(id);
    this.anchor = id;
    this.select();
  }

  /** Selects all between the card that was selected last and this one, where both are in one column. @param {string} id */
  extend(id) {
    const view = this.views.find((one) => one.column.status === this.placed.get(id));
    const from = view?.cards.findIndex((card) => card.id === this.anchor) ?? -1;
    const to = view?.cards.findIndex((card) => card.id === id) ?? -1;
    if (from < 0) { this.selected.add(id); this.anchor = id; } else for (let at = Math.min(from, to); at <= Math.max(from, to); at += 1) this.selected.add(view.cards[at].id);
    getSelection()?.removeAllRanges();
    this.select();
  }

  /** @param {string} status */
  selectAll(status) {
    for (const card of this.views.find((view) => view.column.status === status)?.cards ?? []) this.selected.add(card.id);
    this.select();
  }

  unselect() {
    this.selected.clear();
    this.anchor = null;
    this.select();
  }

  select() {
    this.element.classList.toggle("selecting", this.selected.size > 0);
    this.toolbar.select();
    for (const view of this.views) view.list.refresh();
  }

  /** @param {string} status */
  create(status) {
    (this.views.find((view) => view.column.status === status && view.plus) ?? this.views.find((view) => view.column.status === "ready")).create();
    this.resize();
  }

  unmount() {
    for (const end of this.ends) end();
    for (const view of this.views) view.end();
    cancelAnimationFrame(this.frame);
    clearInterval(this.timer);
    this.observer.disconnect();
    this.asked.abort();
    this.store.end();
  }
}

/** @param {HTMLElement} main @param {import("../app.js").Context} context */
export function mount(main, context) {
  const board = new Board(main, context);
  return { update: (state) => board.update(state), unmount: () => board.unmount() };
}
