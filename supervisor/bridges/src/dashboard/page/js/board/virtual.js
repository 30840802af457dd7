// A list that holds only the rows in sight. Heights are known before a row is built, so nothing is measured while it scrolls.

import { h } from "../dom.js";

/** Rows beyond the edges that are kept ready, in pixels. */
const BEYOND = 400;

/** @typedef {{key: string, height: number, record: any}} Row a row is built again when its record or its height is another one */

export class VirtualList {
  /** @param {{build: (row: Row) => HTMLElement, decorate: (element: HTMLElement, row: Row) => void, gap: number, label: string}} of */
  constructor({ build, decorate, gap, label }) {
    this.build = build;
    this.decorate = decorate;
    this.gap = gap;
    /** @type {Row[]} */
    this.rows = [];
    this.tops = new Float64Array(1);
    this.index = new Map();
    /** @type {Map<string, {element: HTMLElement, record: any, height: number, top: number, at: number}>} */
    this.shown = new Map();
    this.space = h("div", { class: "rows", role: "list", "aria-label": label });
    this.element = h("div", { class: "scroller" }, this.space);
    this.frame = 0;
    this.element.addEventListener("scroll", () => this.later(), { passive: true });
    this.observer = new ResizeObserver(() => this.later());
    this.observer.observe(this.element);
  }

  later() {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  /** @param {Row[]} rows */
  set(rows) {
    this.rows = rows;
    this.index = new Map(rows.map((row, at) => [row.key, at]));
    this.tops = new Float64Array(rows.length + 1);
    for (let at = 0; at < rows.length; at += 1) this.tops[at + 1] = this.tops[at] + rows[at].height + this.gap;
    this.space.style.height = `${this.tops[rows.length]}px`;
    this.draw();
  }

  /** The first row that ends below a height. @param {number} y */
  at(y) {
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] > y) high = middle; else low = middle + 1;
    }
    return low;
  }

  draw() {
    const height = this.element.clientHeight;
    if (!height) return;
    const top = this.element.scrollTop;
    const first = this.at(top - BEYOND);
    const last = Math.min(this.rows.length, this.at(top + height + BEYOND) + 1);
    const focused = this.space.contains(document.activeElement) ? document.activeElement : null;
    for (const [key, one] of this.shown) {
      const at = this.index.get(key);
      // A row that is focused stays, so that the keyboard does not lose its place.
      if (at === undefined || ((at < first || at >= last) && !(focused && one.element.contains(focused)))) {
        one.element.remove();
        this.shown.delete(key);
      }
    }
    let before = null;
    for (let at = first; at < last; at += 1) before = this.place(at, before, focused).element;
  }

  /** @param {number} at @param {HTMLElement | null} before @param {Element | null} focused */
  place(at, before, focused) {
    const row = this.rows[at];
    let one = this.shown.get(row.key);
    if (!one || one.record !== row.record || one.height !== row.height) {
      const element = this.build(row);
      element.style.height = `${row.height}px`;
      const again = one && focused && one.element.contains(focused) ? focused.className : null;
      if (one) one.element.replaceWith(element); else if (before) before.after(element); else this.space.prepend(element);
      one = { element, record: row.record, height: row.height, top: -1, at: -1 };
      this.shown.set(row.key, one);
      if (again !== null) (element.querySelector(`.${CSS.escape(again)}`) ?? element.querySelector("a"))?.focus({ preventScroll: true });
    } else if (before ? before.nextElementSibling !== one.element : this.space.firstElementChild !== one.element) {
      // Screen readers follow the order of the document.
      if (!(focused && one.element.contains(focused))) { if (before) before.after(one.element); else this.space.prepend(one.element); }
    }
    if (one.top !== this.tops[at]) {
      one.top = this.tops[at];
      one.element.style.transform = `translateY(${one.top}px)`;
    }
    if (one.at !== at) {
      one.at = at;
      one.element.setAttribute("aria-posinset", String(at + 1));
    }
    one.element.setAttribute("aria-setsize", String(this.rows.length));
    this.decorate(one.element, row);
    return one;
  }

  /** Decorates the rows in sight again. */
  refresh() {
    for (const [key, one] of this.shown) {
      const at = this.index.get(key);
      if (at !== undefined) this.decorate(one.element, this.rows[at]);
    }
  }

  /** Scrolls as little as shows a row, and returns its element. @param {string} key */
  reveal(key) {
    const at = this.index.get(key);
    if (at === undefined) return null;
    const { scrollTop, clientHeight } = this.element;
    if (this.tops[at] < scrollTop) this.element.scrollTop = Math.max(0, this.tops[at] - 8);
    else if (this.tops[at + 1] > scrollTop + clientHeight) this.element.scrollTop = this.tops[at + 1] - clientHeight + 8;
    this.draw();
    return this.shown.get(key)?.element ?? null;
  }

  /** The keys of the rows in sight. */
  visible() {
    return [...this.shown.keys()];
  }

  end() {
    cancelAnimationFrame(this.frame);
    this.observer.disconnect();
  }
}
