// The comments on lines that were written and not sent yet. They are kept in this tab, also when the page is loaded again.

/**
 * A line of a file as it is now, or as it was for one that was deleted.
 * @typedef {{side: "old" | "new", line: number}} Place
 * @typedef {Place & {path: string, text: string}} Comment
 */

/** A place in words. @param {Place & {path: string}} of */
export const named = ({ path, line, side }) => `${path}:${line}${side === "old" ? " (removed line)" : ""}`;

export class Drafts {
  /** @param {string} task @param {() => void} changed */
  constructor(task, changed) {
    this.key = `supervisor.review.${task}`;
    this.changed = changed;
    /** @type {{comments: Comment[], reason: string}} */
    this.kept = { comments: [], reason: "" };
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.key) ?? "{}");
      if (Array.isArray(kept.comments)) this.kept.comments = kept.comments.filter((/** @type {any} */ one) => typeof one?.path === "string" && typeof one.line === "number" && typeof one.text === "string").map((/** @type {any} */ one) => ({ ...one, side: one.side === "old" ? "old" : "new" }));
      if (typeof kept.reason === "string") this.kept.reason = kept.reason;
    } catch {
      // A draft of another version is no draft.
    }
  }

  get comments() {
    return this.kept.comments;
  }

  get reason() {
    return this.kept.reason;
  }

  /** @param {string} path @param {Place} place */
  at(path, { side, line }) {
    return this.comments.find((comment) => comment.path === path && comment.line === line && comment.side === side);
  }

  /** Keeps a comment in the place of the one before; an empty text removes it. @param {string} path @param {Place} place @param {string} text */
  set(path, { side, line }, text) {
    const others = this.comments.filter((comment) => comment !== this.at(path, { side, line }));
    if (text.trim() !== "") others.push({ path, side, line, text: text.trim() });
    this.kept.comments = others.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line || (a.side > b.side ? -1 : 1)));
    this.save();
  }

  /** @param {string} reason */
  say(reason) {
    this.kept.reason = reason;
    this.save();
  }

  clear() {
    this.kept = { comments: [], reason: "" };
    this.save();
  }

  save() {
    const isEmpty = this.comments.length === 0 && this.reason === "";
    try {
      if (isEmpty) sessionStorage.removeItem(this.key);
      else sessionStorage.setItem(this.key, JSON.stringify(this.kept));
    } catch {
      // Without storage the draft lives as long as the page.
    }
    this.changed();
  }
}
