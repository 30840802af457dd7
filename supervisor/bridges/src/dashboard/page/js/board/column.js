// A column: its header with the count, the form to create a task, and the list of cards.

import { h, icon, text } from "../dom.js";
import { build, heightOf, tick } from "./card.js";
import { creation } from "./ondemand.js";
import { VirtualList } from "./virtual.js";

const GAP = 6;
const LANE = 30;

/** @typedef {import("./store.js").Card} Card */

export class ColumnView {
  /**
   * @param {import("./statuses.js").Column} column
   * @param {{decorate: (element: HTMLElement, card: Card) => void, creating: () => {tenant: string, assignees: Iterable<string>, made: (id: string) => void}, more: () => void}} board
   */
  constructor(column, board) {
    this.column = column;
    this.board = board;
    /** @type {Card[]} */
    this.cards = [];
    this.list = new VirtualList({
      gap: GAP,
      label: `${column.word} tasks`,
      build: (row) => (row.record.lane === undefined ? build(row.record) : h("div", { class: "lane", role: "listitem", dataset: { lane: row.record.lane } }, h("span", { class: "cut", dir: "auto" }, row.record.lane || "Nobody"), h("span", { class: "count number" }, row.record.count))),
      decorate: (element, row) => { if (row.record.lane === undefined) board.decorate(element, row.record); },
    });
    this.count = h("span", { class: "count number" });
    this.plus = column.create ? h("button", { type: "button", class: "icon-button small", "aria-label": `Create a task in ${column.word}`, title: "Create a task", onclick: () => this.create() }, icon("plus")) : null;
    this.place = h("div", { class: "create-place" });
    this.empty = h("p", { class: "column-empty" }, column.empty);
    this.foot = h("button", { type: "button", class: "button small quiet column-more", hidden: true, onclick: board.more }, "Show more");
    this.title = h("h2", { class: "status", dataset: { status: column.status } }, column.word);
    this.element = h("section", { class: "column", dataset: { column: column.status, status: column.status }, "aria-label": column.word },
      h("header", { class: "column-head" }, this.title, this.count, h("span", { class: "grow" }), this.plus), this.place, this.list.element, this.empty, this.foot);
    this.form = null;
    /** Whether it has had a task since the page was opened: then it stays wide. */
    this.wide = false;
  }

  /** Opens the form. */
  async create() {
    if (!this.plus) return;
    this.wide = true;
    this.narrow();
    const { form } = await creation();
    if (!this.form) {
      this.form = form({ status: this.column.status, ...this.board.creating(), close: () => this.closeForm() });
      this.place.append(this.form.element);
    }
    this.element.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.form.focus();
  }

  closeForm() {
    this.form?.element.remove();
    this.form = null;
    this.plus?.focus();
  }

  /** A column that has been empty since the page was opened is a narrow rail, but for those that every task passes. */
  narrow() {
    this.element.classList.toggle("rail", !this.wide && !this.form && !this.column.wide);
  }

  /**
   * @param {Card[]} cards in their order @param {{lanes: boolean, total: number, more: boolean, filtered: boolean, loaded: boolean, first: boolean}} how
   *   `total`: what the header says, once the tasks of the column are `loaded`; `more`: whether some are not read yet; `first`: whether the board has no task at all
   */
  set(cards, { lanes, total, more, filtered, loaded, first }) {
    this.cards = cards;
    if (cards.length || (loaded && total)) this.wide = true;
    text(this.count, loaded ? total.toLocaleString("en-US") : "");
    if (loaded) this.count.setAttribute("aria-label", `${total} tasks`);
    else this.count.removeAttribute("aria-label");
    this.list.set(lanes ? this.inLanes(cards) : cards.map((card) => ({ key: card.id, height: heightOf(card), record: card })));
    text(this.empty, filtered ? "Nothing matches the filters" : first && this.column.status === "ready" ? "No tasks yet. New task creates the first one" : this.column.empty);
    this.empty.hidden = cards.length > 0 || !loaded;
    this.foot.hidden = !more;
    this.narrow();
  }

  /** @param {Card[]} cards */
  inLanes(cards) {
    /** @type {Map<string, Card[]>} */
    const lanes = new Map();
    for (const card of cards) lanes.set(card.assignee ?? "", [...(lanes.get(card.assignee ?? "") ?? []), card]);
    const names = [...lanes.keys()].sort((a, b) => a.localeCompare(b));
    this.cards = names.flatMap((name) => lanes.get(name));
    return names.flatMap((name) => {
      const mine = lanes.get(name);
      const key = `lane:${name}`;
      const before = this.list.rows[this.list.index.get(key) ?? -1]?.record;
      const record = before?.count === mine.length ? before : { lane: name, count: mine.length };
      return [{ key, height: LANE, record }, ...mine.map((card) => ({ key: card.id, height: heightOf(card), record: card }))];
    });
  }

  /** Brings the times in sight up to date. */
  tick() {
    for (const one of this.list.shown.values()) if (one.record.lane === undefined) tick(one.element, one.record);
  }

  end() {
    this.list.end();
  }
}
