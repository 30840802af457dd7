// The window on a log: only the lines that are seen are on the page, however many there are.

import { h } from "../dom.js";
import { plain, spans } from "./ansi.js";
import { groundOf, paint } from "./colours.js";
import { places } from "./search.js";

/** Browsers draw nothing right beyond some ten millions of pixels: a longer log scrolls in larger steps. */
const TALLEST = 12_000_000;
/** Lines above and below what is seen. */
const MARGIN = 12;
/** What is shown of a line. */
const LONGEST = 4000;

/** @typedef {{needle: string, line: number | null}} Found  What is searched, and the line of the chosen match. */

export class LogView {
  /**
   * @param {import('./store.js').LogStore} store
   * @param {{scrolled: () => void, resized: () => void}} on
   */
  constructor(store, on) {
    this.store = store;
    this.on = on;
    this.rows = h("div", { class: "log-rows" });
    this.space = h("div", { class: "log-space" }, this.rows);
    this.element = h("div", { class: "log-scroll", tabindex: "0", role: "log", "aria-label": "Output of the run", "aria-live": "off" }, this.space);
    /** @type {Map<number, HTMLElement>} */
    this.shown = new Map();
    /** @type {Found} */
    this.found = { needle: "", line: null };
    this.height = 18;
    this.top = 0;
    this.frame = 0;
    /** Where the window was put, as far as nobody has scrolled since. */
    this.setTo = -1;
    this.element.addEventListener("scroll", () => this.scroll(), { passive: true });
    this.resized = new ResizeObserver(() => this.on.resized());
    this.resized.observe(this.element);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.repaint = () => this.fresh();
    this.scheme.addEventListener("change", this.repaint);
    this.themed = new MutationObserver(this.repaint);
    this.themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class"] });
  }

  unmount() {
    cancelAnimationFrame(this.frame);
    this.resized.disconnect();
    this.themed.disconnect();
    this.scheme.removeEventListener("change", this.repaint);
  }

  /** The height of all lines, and of what is seen of them. */
  sizes() {
    const whole = this.store.count * this.height;
    return { whole, seen: this.element.clientHeight, drawn: Math.min(whole, TALLEST) };
  }

  scroll() {
    const at = this.element.scrollTop;
    // A position that was set has been taken over already, without its rounding.
    if (Math.abs(at - this.setTo) >= 1) {
      const { whole, seen, drawn } = this.sizes();
      this.setTo = -1;
      this.top = whole <= drawn ? at : (at / Math.max(1, drawn - seen)) * Math.max(0, whole - seen);
      this.on.scrolled();
    }
    this.draw();
  }

  /** Whether the last line is seen. */
  get isAtEnd() {
    const { whole, seen } = this.sizes();
    return this.top >= whole - seen - this.height * 1.5;
  }

  /** The first line that is seen. */
  get first() {
    return Math.floor(this.top / this.height);
  }

  /** Puts a position to the upper edge. @param {number} top  In pixels of all lines. */
  moveTo(top) {
    const { whole, seen, drawn } = this.sizes();
    this.space.style.height = `${drawn}px`;
    this.top = Math.max(0, Math.min(top, whole - seen));
    const at = whole <= drawn ? this.top : (this.top / Math.max(1, whole - seen)) * (drawn - seen);
    this.element.scrollTop = at;
    this.setTo = this.element.scrollTop;
    this.draw();
  }

  toEnd() {
    this.moveTo(Number.MAX_SAFE_INTEGER);
  }

  /** Shows a line in the middle, unless it is seen. @param {number} line */
  reveal(line) {
    const seen = this.element.clientHeight;
    const at = line * this.height;
    if (at < this.top || at > this.top + seen - this.height) this.moveTo(at - seen / 2);
    else this.draw();
  }

  /** Keeps what is seen where it is while lines come or go above it. @param {number} lines */
  shift(lines) {
    this.forget();
    this.moveTo(this.top + lines * this.height);
  }

  /** @param {Found} found */
  mark(found) {
    this.found = found;
    this.fresh();
  }

  forget() {
    this.shown.clear();
    this.rows.replaceChildren();
  }

  /** Draws all of it anew. */
  fresh() {
    this.forget();
    this.draw();
  }

  draw() {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    this.frame = 0;
    const { count } = this.store;
    const { drawn, seen } = this.sizes();
    const height = `${drawn}px`;
    if (this.space.style.height !== height) this.space.style.height = height;
    const from = Math.max(0, this.first - MARGIN);
    const to = Math.min(count, this.first + Math.ceil(seen / this.height) + MARGIN);
    for (const [line, row] of this.shown) {
      if (line < from || line >= to) {
        row.remove();
        this.shown.delete(line);
      }
    }
    const ground = groundOf(this.element);
    let before = null;
    for (let line = to - 1; line >= from; line -= 1) {
      let row = this.shown.get(line);
      // The last line may have grown.
      if (!row || line >= this.store.lineCount - 1) {
        const fresh = this.row(line, ground);
        row?.remove();
        row = fresh;
        this.shown.set(line, row);
        this.rows.insertBefore(row, before);
      }
      before = row;
    }
    const offset = this.element.scrollTop - (this.top - from * this.height);
    this.rows.style.transform = `translateY(${Math.max(0, offset)}px)`;
  }

  /** @param {number} index @param {number[]} ground @returns {HTMLElement} */
  row(index, ground) {
    const { text, style } = this.store.line(index);
    const row = h("div", { class: index === this.found.line ? "log-line is-current" : "log-line" });
    const matches = this.found.needle === "" ? [] : places(plain(text), this.found.needle);
    let at = 0;
    for (const span of spans(text, style)) {
      if (at >= LONGEST) break;
      const shown = span.text.slice(0, LONGEST - at);
      for (const part of cut(shown, at, matches)) {
        const element = document.createElement(part.isMatch ? "mark" : "span");
        element.textContent = part.text;
        if (span.style && !part.isMatch) paint(element, span.style, ground);
        row.append(element);
      }
      at += shown.length;
    }
    const hidden = text.length - LONGEST;
    if (at >= LONGEST && hidden > 0) row.append(h("span", { class: "log-more" }, ` … ${hidden.toLocaleString("en")} more characters`));
    if (at === 0) row.append(" ");
    return row;
  }
}

/** Divides a text at the borders of matches. @param {string} text @param {number} at @param {[number, number][]} matches */
function cut(text, at, matches) {
  const parts = [];
  let from = 0;
  for (const [start, end] of matches) {
    const [low, high] = [Math.max(0, start - at), Math.min(text.length, end - at)];
    if (high <= low || low < from) continue;
    if (low > from) parts.push({ text: text.slice(from, low), isMatch: false });
    parts.push({ text: text.slice(low, high), isMatch: true });
    from = high;
  }
  if (from < text.length) parts.push({ text: text.slice(from), isMatch: false });
  return parts;
}
