// The search in the loaded lines of a log: done in slices, so that the page stays smooth, and again for what is added.

import { plain } from "./ansi.js";

/** How long one slice may take, in milliseconds. */
const SLICE = 8;
/** More matches than these are counted and not kept. */
const KEPT = 200_000;

/** Whether capitals count: only where the text has one. @param {string} needle */
const isExact = (needle) => needle !== needle.toLowerCase();

/** Where a text is in a line. @param {string} line @param {string} needle @returns {[number, number][]} */
export function places(line, needle) {
  if (needle === "") return [];
  const hay = isExact(needle) ? line : line.toLowerCase();
  /** @type {[number, number][]} */
  const found = [];
  for (let at = hay.indexOf(needle); at >= 0 && found.length < 1000; at = hay.indexOf(needle, at + needle.length)) {
    found.push([at, at + needle.length]);
  }
  return found;
}

export class Search {
  /** @param {import('./store.js').LogStore} store @param {() => void} changed  Called when there is more to show. */
  constructor(store, changed) {
    this.store = store;
    this.changed = changed;
    this.needle = "";
    /** The lines with matches, in order. @type {number[]} */
    this.lines = [];
    this.total = 0;
    this.scanned = 0;
    this.current = -1;
    this.timer = 0;
  }

  /** Whether every loaded line has been looked at. */
  get isDone() {
    return this.scanned >= this.store.count;
  }

  /** Searches for another text. @param {string} needle */
  begin(needle) {
    clearTimeout(this.timer);
    Object.assign(this, { needle, lines: [], total: 0, scanned: 0, current: -1, timer: 0 });
    this.more();
  }

  /** Looks at lines that were added at the end. */
  more() {
    if (this.needle === "" || this.timer !== 0) return this.changed();
    const until = performance.now() + SLICE;
    // The last line may not be whole yet, and is looked at when the next one has begun.
    while (this.scanned < this.store.lineCount && performance.now() < until) {
      const end = Math.min(this.scanned + 200, this.store.lineCount);
      for (; this.scanned < end; this.scanned += 1) {
        const found = places(plain(this.store.line(this.scanned).text), this.needle).length;
        if (found > 0 && this.lines.length < KEPT) this.lines.push(this.scanned);
        this.total += found;
      }
    }
    if (this.scanned < this.store.lineCount) {
      this.timer = setTimeout(() => {
        this.timer = 0;
        this.more();
      });
    }
    this.changed();
  }

  /** Looks again at all lines, because they have other numbers now. */
  again() {
    const { needle } = this;
    if (needle !== "") this.begin(needle);
  }

  /** Goes to the next line with a match, or the one before. @param {1 | -1} by @param {number} from @returns {number | null} */
  step(by, from) {
    if (this.lines.length === 0) return null;
    if (this.current < 0) {
      const after = this.lines.findIndex((line) => line >= from);
      this.current = after < 0 ? this.lines.length - 1 : after;
      if (by < 0) this.current = (this.current - 1 + this.lines.length) % this.lines.length;
    } else {
      this.current = (this.current + by + this.lines.length) % this.lines.length;
    }
    return this.lines[this.current];
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
  }
}
