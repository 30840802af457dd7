// The part of a run's log that is loaded: a range of bytes, as lines. It grows at both ends in pieces and drops what is far.

import { styleAfter } from "./ansi.js";

/** @typedef {import('./ansi.js').Style} Style */
/**
 * @typedef {{offset: number, next_offset: number, length: number, more: boolean, ended: boolean, text: string, run_id: number | null, readable: boolean}} Piece
 *   `more`: whether the log goes on behind it; `readable`: whether its text is what a person reads of an agent's lines, each of them whole.
 * @typedef {{offset: number, lead: string, lines: string[], styles: Map<number, Style>, bytes: number}} Segment
 */

/** What one request of `log` returns at most. */
export const PAGE = 1 << 20;
/** What stays loaded. */
const MOST = 128 << 20;
/** A line that is longer is cut into several: nothing shows it whole. */
const LONGEST = 1 << 18;
/** Small pieces are added to the last segment up to this many bytes. */
const SEGMENT = 1 << 19;

/** Divides a text into lines, none longer than a row can be. @param {string} text @returns {string[]} */
function divided(text) {
  const lines = text.split("\n");
  if (text.length <= LONGEST || lines.every((line) => line.length <= LONGEST)) return lines;
  return lines.flatMap((line) => {
    const parts = [];
    for (let at = 0; at === 0 || at < line.length; at += LONGEST) parts.push(line.slice(at, at + LONGEST));
    return parts;
  });
}

export class LogStore {
  constructor() {
    /** @type {Segment[]} */
    this.segments = [];
    /** The bytes that are loaded. */
    this.start = 0;
    this.end = 0;
    /** The length of the log, as far as it is known. */
    this.size = 0;
    /** The beginning of the last line, which has no end yet. */
    this.partial = "";
    /** @type {Style} */
    this.style = {};
    this.lineCount = 0;
    /** @type {number[]} */
    this.firsts = [];
  }

  /** How many lines there are, with the last one that has not ended. */
  get count() {
    return this.lineCount + (this.partial === "" ? 0 : 1);
  }

  /** Takes a first piece in the place of all that is loaded. @param {Piece} piece */
  begin(piece) {
    const { size } = this;
    Object.assign(this, new LogStore(), { size, start: piece.offset, end: piece.offset });
    this.append(piece);
  }

  /** Takes the piece after the last one. @param {Piece} piece @returns {number} how many lines were dropped at the start */
  append(piece) {
    this.end = piece.next_offset;
    this.size = Math.max(this.size, piece.length, this.end);
    if (piece.text === "") return 0;
    const lead = this.partial;
    const lines = divided(lead + piece.text);
    this.partial = lines.pop() ?? "";
    const lastOne = this.segments.at(-1);
    const bytes = piece.next_offset - piece.offset;
    const isSmall = lastOne && lastOne.bytes + bytes <= SEGMENT;
    const segment = isSmall ? lastOne : { offset: piece.offset, lead, lines: [], styles: new Map(), bytes: 0 };
    segment.bytes += bytes;
    const first = segment.lines.length;
    for (const line of lines) segment.lines.push(line);
    for (const [at, line] of lines.entries()) {
      if (Object.keys(this.style).length > 0) segment.styles.set(first + at, this.style);
      this.style = styleAfter(line, this.style);
    }
    if (!isSmall) this.segments.push(segment);
    this.index();
    return this.dropFirst();
  }

  /** Takes the piece before the first one. @param {Piece} piece @returns {number} how many lines came before the others */
  prepend(piece) {
    const before = this.count;
    const lines = divided(piece.text);
    const lead = lines.pop() ?? "";
    // A piece within one long line has no lines of its own.
    const next = this.segments.find((segment) => segment.lines.length > 0);
    if (next) {
      next.lines[0] = lead + next.lines[0];
      next.lead = lead;
    } else {
      this.partial = lead + this.partial;
    }
    /** @type {Style} */
    let style = {};
    const styles = new Map();
    for (const [at, line] of lines.entries()) {
      if (Object.keys(style).length > 0) styles.set(at, style);
      style = styleAfter(line, style);
    }
    this.segments.unshift({ offset: piece.offset, lead: "", lines, styles, bytes: this.start - piece.offset });
    this.start = piece.offset;
    this.index();
    const added = this.count - before;
    this.dropLast();
    return added;
  }

  /** @param {number} index @returns {{text: string, style: Style}} */
  line(index) {
    if (index >= this.lineCount) return { text: this.partial, style: this.style };
    let [low, high] = [0, this.segments.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.firsts[middle] <= index) low = middle;
      else high = middle - 1;
    }
    const segment = this.segments[low];
    const at = index - this.firsts[low];
    return { text: segment.lines[at], style: segment.styles.get(at) ?? {} };
  }

  index() {
    this.firsts = [];
    this.lineCount = 0;
    for (const segment of this.segments) {
      this.firsts.push(this.lineCount);
      this.lineCount += segment.lines.length;
    }
  }

  dropFirst() {
    let dropped = 0;
    while (this.end - this.start > MOST && this.segments.length > 1) {
      const first = /** @type {Segment} */ (this.segments.shift());
      const next = this.segments[0];
      if (next.lines.length > 0) {
        next.lines[0] = next.lines[0].slice(next.lead.length);
      }
      this.start = next.offset;
      dropped += first.lines.length;
    }
    if (dropped > 0) this.index();
    return dropped;
  }

  dropLast() {
    while (this.end - this.start > MOST && this.segments.length > 1) {
      const gone = /** @type {Segment} */ (this.segments.pop());
      this.end = gone.offset;
      this.partial = gone.lead;
      this.style = {};
    }
    this.index();
  }
}
