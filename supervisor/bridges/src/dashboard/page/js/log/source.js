// Where the pieces of a log come from: the verb `log`, by its offset, and held open while the run goes on.

import { verb } from "../api.js";
import { LogStore, PAGE } from "./store.js";

/** What is shown first. */
const TAIL = 256 << 10;
/** How long a request waits for more, in seconds; the server permits 30. */
const WAIT = 25;
/** How long an answer may take, in milliseconds. */
const ANSWERED = 45_000;
/** The pause after a request that failed, in milliseconds. */
const AGAIN = 2000;

export class LogSource {
  /**
   * @param {string} task
   * @param {number | null} run
   * @param {LogStore} store
   * @param {{grew: (added: {dropped: number}) => void, earlier: (lines: number) => void, form: (isReadable: boolean) => void, anew: () => void, lost: (problem: Error | null) => void, ended: () => void}} on
   */
  constructor(task, run, store, on) {
    Object.assign(this, { task, run, store, on });
    this.task = task;
    this.run = run;
    this.store = store;
    this.on = on;
    this.aborter = new AbortController();
    this.isEnded = false;
    this.isBusy = false;
    /** Whether the lines of an agent are wanted as a person reads them. */
    this.isReadable = true;
    /** Whether the loaded range ends where the log ends. */
    this.isAtTail = false;
  }

  stop() {
    this.aborter.abort();
  }

  /** @param {object} more @returns {Promise<import('./store.js').Piece>} */
  ask(more) {
    const run = this.run === null ? {} : { run: this.run };
    return verb("log", { task_id: this.task, ...run, readable: this.isReadable, ...more }, { signal: this.aborter.signal, timeout: ANSWERED });
  }

  /** Asks for the end of the log until the daemon answers. @returns {Promise<import('./store.js').Piece>} */
  async tail() {
    for (;;) {
      try {
        const piece = await this.ask({ tail: TAIL });
        this.on.lost(null);
        return piece;
      } catch (problem) {
        if (this.aborter.signal.aborted || !["unreachable", "timeout"].includes(problem.code)) throw problem;
        this.on.lost(/** @type {Error} */ (problem));
        await new Promise((done) => setTimeout(done, AGAIN));
      }
    }
  }

  /** Loads the end of the log, then what is added to it. */
  async follow() {
    const piece = await this.tail();
    this.on.form(piece.readable);
    this.store.begin(piece);
    this.isAtTail = true;
    this.take(piece);
    this.on.anew();
    this.keepOn();
  }

  /** @param {import('./store.js').Piece} piece */
  take(piece) {
    if (!piece.ended || piece.more || this.isEnded) return;
    this.isEnded = true;
    this.on.ended();
  }

  async keepOn() {
    while (!this.isEnded && !this.aborter.signal.aborted) {
      if (!this.isAtTail) {
        await new Promise((done) => setTimeout(done, 250));
        continue;
      }
      try {
        const from = this.store.end;
        const piece = await this.ask({ offset: from, wait: WAIT });
        this.on.lost(null);
        // The range was replaced meanwhile.
        if (!this.isAtTail || this.store.end !== from) continue;
        const dropped = this.store.append(piece);
        if (piece.text !== "") this.on.grew({ dropped });
        this.take(piece);
      } catch (problem) {
        if (this.aborter.signal.aborted) return;
        this.on.lost(/** @type {Error} */ (problem));
        await new Promise((done) => setTimeout(done, AGAIN));
      }
    }
  }

  /** Loads the piece before what is loaded. */
  async earlier() {
    if (this.isBusy || this.store.start === 0) return;
    this.isBusy = true;
    try {
      const { start, end } = this.store;
      const offset = Math.max(0, start - PAGE);
      const piece = await this.ask({ offset, limit: start - offset });
      if (this.store.start !== start) return;
      const lines = this.store.prepend(piece);
      if (this.store.end < end) this.isAtTail = false;
      this.on.earlier(lines);
    } finally {
      this.isBusy = false;
    }
  }

  /** Loads the piece after what is loaded, where that is not the end. */
  async later() {
    if (this.isBusy || this.isAtTail) return;
    this.isBusy = true;
    try {
      const from = this.store.end;
      const piece = await this.ask({ offset: from });
      if (this.store.end !== from) return;
      const dropped = this.store.append(piece);
      if (!piece.more) this.isAtTail = true;
      this.on.grew({ dropped });
    } finally {
      this.isBusy = false;
    }
  }

  /** Loads the beginning of the log in the place of what is loaded. */
  async fromStart() {
    if (this.store.start === 0) return this.on.anew();
    const piece = await this.ask({ offset: 0 });
    this.isAtTail = !piece.more;
    this.store.begin(piece);
    this.on.anew();
  }

  /** Loads the end again. @param {{always?: boolean}} [options]  `always`: also where it is loaded. */
  async toTail({ always = false } = {}) {
    if (this.isAtTail && !always) return;
    const piece = await this.ask({ tail: TAIL });
    this.store.begin(piece);
    this.isAtTail = true;
    this.on.anew();
  }
}
