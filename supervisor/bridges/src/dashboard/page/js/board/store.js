// The tasks of a board: read in pages, then kept current task by task as events name them.

import { Problem, call, verb } from "../api.js";
import { now, setClock } from "../time.js";

/**
 * What the board keeps of a task. A card is never changed: a newer one takes its place.
 * @typedef {{id: string, title: string, status: string, priority: number, tenant: string | null, assignee: string | null, reviewer: string | null,
 *   created_at: number, updated_at: number, started_at: number | null, completed_at: number | null, not_before: number | null,
 *   question: {text: string, choices?: string[], free_text?: boolean, approval?: string | null} | null, block_kind: string | null, block_reason: string | null,
 *   failure: string | null, run: number | null, comments: number, links: number, children: {done: number, total: number}, cost: number,
 *   waits: import("../parts/reason.js").Waiting | null, needs_person: boolean, cancelled: boolean, text: string}} Card
 */

/** The first page is small, so that it is there at once. */
const FIRST = 200;
const PAGE = 1000;
/** How many tasks are read before somebody asks for more. */
const MOST = 20_000;
/** Up to this many tasks that changed are read by their ids; more are read as what has changed since. */
const SINGLE = 100;
/** Times are whole seconds, and the log is written before the tasks are read. */
const SLACK = 2;
const RELOAD_BETWEEN = 3000;

/** @param {any} raw @returns {Card} */
function card(raw) {
  const waits = raw.waits ?? raw.why ?? null;
  const reviewed = raw.status === "review" && !raw.reviewer && !raw.unchecked_run;
  return {
    id: raw.id, title: raw.title, status: raw.status, priority: raw.priority ?? 0, tenant: raw.tenant ?? null, assignee: raw.assignee ?? null,
    reviewer: raw.reviewer ?? null, created_at: raw.created_at, updated_at: raw.updated_at ?? raw.created_at, started_at: raw.started_at ?? null,
    completed_at: raw.completed_at ?? null, not_before: raw.not_before ?? null, question: raw.question ?? null, block_kind: raw.block_kind ?? null,
    block_reason: raw.block_reason ?? null, failure: raw.last_failure_error ?? null, run: raw.current_run_id ?? null,
    comments: raw.comments ?? 0, links: raw.links ?? 0, children: raw.children ?? { done: 0, total: 0 }, cost: raw.cost_usd_micros ?? 0,
    waits, needs_person: raw.needs_person ?? (raw.status === "blocked" || reviewed),
    cancelled: waits?.code === "cancelled",
    text: `${raw.title}\n${raw.id}\n${raw.assignee ?? ""}\n${raw.tenant ?? ""}`.toLowerCase(),
  };
}

/** The order within a column: what is over, the newest first; else the greatest priority, then the oldest. @param {Card} a @param {Card} b */
export function order(a, b) {
  if (a.status === "done" || a.status === "archived") return (b.completed_at ?? b.updated_at) - (a.completed_at ?? a.updated_at) || (a.id < b.id ? -1 : 1);
  return b.priority - a.priority || a.created_at - b.created_at || (a.id < b.id ? -1 : 1);
}

export class Store {
  /** @param {(changed: Set<string> | null) => void} onChange gets the ids that changed; null for all */
  constructor(onChange) {
    this.onChange = onChange;
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    /** @type {Record<string, number> | null} the tasks by status, as the daemon counts them */
    this.counts = null;
    this.tenants = new Set();
    this.assignees = new Set();
    /** Where the next page starts; null where all is read. @type {string | null} */
    this.next = null;
    /** Whether the board was read, with whatever filter. */
    this.loaded = false;
    this.loading = false;
    this.filter = { tenant: "", archived: false };
    /** The filter of the last reading. @type {{tenant: string, archived: boolean} | null} */
    this.known = null;
    this.generation = 0;
    /** The tasks that were read one by one since the board was read: a page of then is older. @type {Set<string>} */
    this.newer = new Set();
    /** @type {Set<string>} */
    this.waiting = new Set();
    this.since = Infinity;
    this.patching = false;
    this.reloadAt = 0;
    this.reloadTimer = 0;
    this.limit = MOST;
    this.ended = new AbortController();
  }

  /** @param {object} query @returns {Promise<any>} */
  async page(query) {
    const page = await call("GET", "/board", { query, signal: this.ended.signal });
    setClock(page.now);
    return page;
  }

  /** @param {any} raw */
  wanted(raw) {
    return (this.filter.archived || raw.status !== "archived") && (!this.filter.tenant || raw.tenant === this.filter.tenant);
  }

  /** Whether it is known how many tasks a status has. @param {string} status */
  isCounted(status) {
    const { known, filter } = this;
    if (!known || (status === "archived" && !known.archived)) return false;
    return known.tenant === filter.tenant || (known.tenant === "" && this.next === null);
  }

  /** Takes a card unless a newer one is there. @param {any} raw @returns {boolean} whether something changed */
  take(raw) {
    const known = this.cards.get(raw.id);
    if (!this.wanted(raw)) return this.cards.delete(raw.id);
    if (known && known.updated_at > (raw.updated_at ?? 0)) return false;
    const next = card(raw);
    if (known && JSON.stringify(known) === JSON.stringify(next)) return false;
    this.cards.set(next.id, next);
    if (next.tenant) this.tenants.add(next.tenant);
    if (next.assignee) this.assignees.add(next.assignee);
    return true;
  }

  /** Reads the board from its first page. What is shown stays until it is known to be gone. @param {{tenant: string, archived: boolean}} filter */
  async load(filter) {
    const same = filter.tenant === this.filter.tenant && filter.archived === this.filter.archived;
    this.filter = filter;
    this.generation += 1;
    const mine = this.generation;
    if (!same) for (const [id, known] of this.cards) if (!this.wanted(known)) this.cards.delete(id);
    this.loading = true;
    this.newer.clear();
    this.limit = MOST;
    const seen = new Set();
    try {
      await this.read(mine, null, FIRST, seen);
      if (mine !== this.generation) return;
      if (!this.next) for (const id of this.cards.keys()) if (!seen.has(id) && !this.waiting.has(id) && !this.newer.has(id)) this.cards.delete(id);
    } finally {
      if (mine === this.generation) { this.loading = false; this.onChange(null); }
    }
  }

  /** Reads on where the limit was reached. */
  async more() {
    if (!this.next || this.loading) return;
    this.loading = true;
    this.limit = this.cards.size + MOST;
    try { await this.read(this.generation, this.next, PAGE, new Set()); } finally { this.loading = false; this.onChange(null); }
  }

  /** @param {number} mine @param {string | null} cursor @param {number} limit @param {Set<string>} seen */
  async read(mine, cursor, limit, seen) {
    let size = limit;
    let from = cursor;
    do {
      const page = await this.page({ tenant: this.filter.tenant, include_archived: this.filter.archived || null, limit: size, cursor: from });
      if (mine !== this.generation) return;
      if (page.counts) this.counts = page.counts;
      page.tenants.forEach((name) => this.tenants.add(name));
      page.assignees.forEach((name) => this.assignees.add(name));
      for (const column of page.columns) for (const raw of column.tasks) { seen.add(raw.id); if (!this.newer.has(raw.id)) this.take(raw); }
      this.next = from = page.next;
      this.loaded = true;
      this.known = this.filter;
      size = PAGE;
      this.onChange(null);
    } while (from && this.cards.size < this.limit);
  }

  /** Looks for a text in titles and bodies on the daemon. Returns the ids that have it. @param {string} search @param {AbortSignal} signal */
  async search(search, signal) {
    const found = new Set();
    let cursor = null;
    do {
      const page = await call("GET", "/board", { query: { search, tenant: this.filter.tenant, include_archived: this.filter.archived || null, limit: PAGE, cursor }, signal });
      for (const column of page.columns) for (const raw of column.tasks) { found.add(raw.id); this.take(raw); }
      cursor = page.next;
    } while (cursor && found.size < 5 * PAGE);
    return found;
  }

  /** Shows a card in another status until the daemon has answered. @param {string[]} ids @param {string} status @returns {() => void} a function that takes it back */
  pretend(ids, status) {
    const before = ids.map((id) => this.cards.get(id)).filter(Boolean);
    for (const known of before) this.cards.set(known.id, { ...known, status, waits: null, needs_person: false });
    this.onChange(new Set(ids));
    return () => {
      for (const known of before) if (this.cards.get(known.id)?.updated_at === known.updated_at) this.cards.set(known.id, known);
      this.onChange(new Set(ids));
    };
  }

  /** Reads these tasks again, at once or with the next ones. @param {Iterable<string>} ids @param {number} [at] since when they may have changed, in epoch seconds */
  patch(ids, at = now()) {
    for (const id of ids) this.waiting.add(id);
    this.since = Math.min(this.since, at);
    if (!this.patching && this.waiting.size) this.drain();
  }

  async drain() {
    this.patching = true;
    try {
      while (this.waiting.size && !this.ended.signal.aborted) {
        const ids = [...this.waiting];
        const since = this.since;
        this.since = Infinity;
        const changed = new Set();
        if (ids.length > SINGLE) await this.readSince(since, changed);
        const rest = ids.filter((id) => !changed.has(id));
        // Beyond that, what changed nothing of a task but its comments is left to the next event.
        if (rest.length <= SINGLE) await this.readEach(rest, changed);
        for (const id of ids) this.waiting.delete(id);
        if (changed.size) this.onChange(changed);
      }
    } catch (error) {
      // The daemon is away: what waits is read with the next event, or with the reload after the gap.
      if (!(error instanceof Problem) && error.name !== "AbortError") throw error;
    } finally { this.patching = false; }
  }

  /** Takes tasks as `list` returns them; what it does not count stays as it is known. @param {any[]} tasks @param {Set<string>} changed */
  takeListed(tasks, changed) {
    for (const raw of tasks) {
      this.newer.add(raw.id);
      const known = this.cards.get(raw.id);
      const counts = known ? { comments: known.comments, links: known.links, children: known.children, cost_usd_micros: known.cost } : {};
      if (this.take({ ...counts, ...raw })) changed.add(raw.id);
    }
  }

  /** Reads what has changed since a time. @param {number} since @param {Set<string>} changed */
  async readSince(since, changed) {
    let cursor = null;
    let pages = 0;
    do {
      const page = await verb("list", { since: Math.floor(since) - SLACK, archived: true, why: true, page: true, limit: PAGE, cursor }, { signal: this.ended.signal });
      this.takeListed(page.tasks, changed);
      cursor = page.next;
      pages += 1;
    } while (cursor && pages < 5);
    if (cursor) this.reload();
  }

  /** Reads again why tasks wait, which can change without an event. @param {string[]} status */
  async refresh(status) {
    try {
      const changed = new Set();
      const page = await verb("list", { status, tenant: this.filter.tenant || null, why: true, page: true, limit: FIRST }, { signal: this.ended.signal });
      this.takeListed(page.tasks, changed);
      if (changed.size) this.onChange(changed);
    } catch (error) { if (!(error instanceof Problem) && error.name !== "AbortError") throw error; }
  }

  /** @param {string[]} ids @param {Set<string>} changed */
  async readEach(ids, changed) {
    if (!ids.length) return;
    for (const id of ids) this.newer.add(id);
    const gone = new Set(ids);
    const page = await this.page({ ids: ids.join(",") });
    for (const column of page.columns) for (const raw of column.tasks) { gone.delete(raw.id); if (this.take(raw)) changed.add(raw.id); }
    for (const id of gone) if (this.cards.delete(id)) changed.add(id);
  }

  /** Reads everything again, at most every few seconds, with the tasks that could not be read one by one. */
  reload() {
    this.patch([]);
    if (this.reloadTimer) return;
    this.reloadTimer = setTimeout(() => {
      this.reloadTimer = 0;
      this.reloadAt = performance.now();
      this.load(this.filter).catch(() => { /* the connection's state shows it, and its return reads again */ });
    }, Math.max(0, this.reloadAt + RELOAD_BETWEEN - performance.now()));
  }

  end() {
    this.generation += 1;
    clearTimeout(this.reloadTimer);
    this.ended.abort();
  }
}
