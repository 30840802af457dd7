// The keyboard on the board: which card it is on, and what its keys do.

import * as keys from "../keys.js";
import { mayNudge, nudge } from "../parts/nudge.js";
import { pageKeys } from "../parts/pagekeys.js";
import * as route from "../route.js";
import { problem } from "../toast.js";
import { changes, moves, replies } from "./ondemand.js";

export class Cursor {
  /**
   * @param {{views: import("./column.js").ColumnView[], store: import("./store.js").Store, selected: Set<string>, toggle: (id: string) => void, extend: (id: string) => void,
   *   selectAll: (status: string) => void, unselect: () => void, toolbar: import("./toolbar.js").Toolbar, needs: import("./needs.js").Needs, create: (status: string) => void}} board
   */
  constructor(board) {
    this.board = board;
    this.status = "";
    /** @type {string | null} */
    this.id = null;
    /** Where it was in its column: its place once the card has gone. */
    this.at = 0;
    this.remove = this.bind();
  }

  view() {
    return this.board.views.find((view) => view.column.status === this.status);
  }

  /** Notes that a card has the focus. @param {string} id @param {string} status */
  note(id, status) {
    if (this.id === id && this.status === status) return;
    const before = this.view();
    this.id = id;
    this.status = status;
    this.at = Math.max(0, this.view()?.cards.findIndex((card) => card.id === id) ?? 0);
    before?.list.refresh();
    this.view()?.list.refresh();
  }

  /** Puts the focus on a card of a column. @param {import("./column.js").ColumnView} view @param {number} at */
  put(view, at) {
    const card = view.cards[Math.max(0, Math.min(at, view.cards.length - 1))];
    if (!card) return;
    this.note(card.id, view.column.status);
    view.element.scrollIntoView({ block: "nearest", inline: "nearest" });
    view.list.reveal(card.id)?.querySelector("a")?.focus({ preventScroll: true });
    if (route.state().query.task && route.state().query.task !== card.id) route.set({ task: card.id }, { replace: true });
  }

  /** @param {number} by @param {boolean} [extend] */
  step(by, extend = false) {
    const view = this.view();
    if (!view?.cards.length) { const first = this.board.views.find((one) => one.cards.length); if (first) this.put(first, 0); return; }
    const found = view.cards.findIndex((card) => card.id === this.id);
    // A card that has gone leaves its place to the next one.
    this.put(view, found < 0 ? this.at : found + by);
    if (extend && this.id) this.board.extend(this.id);
  }

  /** @param {number} by */
  aside(by) {
    const { views } = this.board;
    const from = Math.max(0, views.findIndex((view) => view.column.status === this.status));
    for (let at = from + by; at >= 0 && at < views.length; at += by) {
      if (views[at].cards.length && !views[at].element.hidden) { this.put(views[at], this.at); return; }
    }
  }

  /** What a key is about: the selected tasks, else the card it is on. */
  targets() {
    return this.board.selected.size ? [...this.board.selected] : this.id && this.board.store.cards.has(this.id) ? [this.id] : [];
  }

  /** @param {string} to */
  async move(to) {
    const ids = this.targets();
    const view = this.view();
    const at = this.at;
    if (ids.length && await (await moves()).move(this.board.store, ids, to) && view) requestAnimationFrame(() => this.put(view.cards.length ? view : this.board.views.find((one) => one.column.status === to), at));
  }

  bind() {
    const { board } = this;
    const group = "Board";
    const on = (name) => ({ group, when: () => this.targets().length > 0, ...name });
    const title = (ids) => (ids.length === 1 ? ids[0] : `${ids.length} tasks`);
    const neighbour = (by) => {
      const order = board.views.filter((view) => view.column.drop !== "none").map((view) => view.column.status);
      const card = board.store.cards.get(this.targets()[0]);
      return card ? order[Math.max(0, Math.min(order.length - 1, order.indexOf(card.status) + by))] : null;
    };
    const steps = [["j", 1], ["k", -1], ["ArrowDown", 1], ["ArrowUp", -1]].map(([key, by]) => ({ keys: key, label: by > 0 ? "Next card" : "Previous card", group, hidden: key.length > 1, run: () => this.step(by) }));
    const asides = [["h", -1], ["l", 1], ["ArrowLeft", -1], ["ArrowRight", 1]].map(([key, by]) => ({ keys: key, label: by > 0 ? "Next column" : "Previous column", group, hidden: key.length > 1, run: () => this.aside(by) }));
    // Next and previous work in the drawer, too; what changes tasks rests while it has the focus.
    const ends = [keys.add(...[...steps].reverse()), pageKeys(...[
      ...asides,
      on({ keys: "Enter", label: "Open the task", run: () => { if (!this.id) return false; route.set({ task: this.id }); return true; } }),
      on({ keys: " ", label: "Peek at the task", run: () => { if (!this.id) return false; const { id } = this; replies().then((all) => all.peek(id)).catch(problem); return true; } }),
      { keys: "/", label: "Search", group, run: () => board.toolbar.search.focus() },
      { keys: "c", label: "Create a task in this column", group, run: () => board.create(this.status) },
      on({ keys: "x", label: "Select the card", when: () => this.id !== null, run: () => board.toggle(this.id) }),
      { keys: "Shift+ArrowDown", label: "Select downwards", group, run: () => this.step(1, true) },
      { keys: "Shift+ArrowUp", label: "Select upwards", group, run: () => this.step(-1, true) },
      { keys: "Ctrl+a", label: "Select the column", group, when: () => this.status !== "", run: () => board.selectAll(this.status) },
      on({ keys: "m", label: "Move to another status", run: async () => { const all = await changes(); const to = await all.status(`Move ${title(this.targets())} to`); if (to) await this.move(to); } }),
      on({ keys: "]", label: "Move to the next status", run: () => { const to = neighbour(1); if (to) this.move(to); } }),
      on({ keys: "[", label: "Move to the previous status", run: () => { const to = neighbour(-1); if (to) this.move(to); } }),
      on({ keys: "a", label: "Assign", run: async () => { const all = await changes(); const ids = this.targets(); const to = await all.assignee(`Assign ${title(ids)}`); if (to !== null) await all.assign(board.store, ids, to); } }),
      on({ keys: "p", label: "Set the priority", run: async () => { const all = await changes(); const ids = this.targets(); const to = await all.priority(`Priority of ${title(ids)}`); if (to !== null) await all.prioritize(board.store, ids, to); } }),
      on({ keys: "e", label: "Archive", run: () => this.move("archived") }),
      { keys: "r", label: "Reply to what needs a person", group, run: () => board.needs.focus() },
      { keys: "n", label: "Nudge the daemon", group, when: () => mayNudge, get hidden() { return !mayNudge; }, run: nudge },
      { keys: "Escape", label: "Clear the selection", group, when: () => board.selected.size > 0 && !route.state().query.task, run: board.unselect },
    ].reverse())];
    return () => { for (const end of ends) end(); };
  }
}
