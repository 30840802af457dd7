// The changes of a run as `diff` has them, and how their lines stand beside each other.

/**
 * @typedef {{kind: " " | "+" | "-", old: number | null, new: number | null, text: string}} Line
 * @typedef {{header: string, lines: Line[]}} Hunk
 * @typedef {{path: string, old_path: string | null, status: "added" | "modified" | "deleted" | "renamed", binary: boolean, additions: number,
 *   deletions: number, hunks: Hunk[], truncated: boolean, mode?: string | null}} File
 * @typedef {{base: string, head: string, files: File[], truncated: boolean, warnings?: string[]}} Diff
 * @typedef {{left: Line | null, right: Line | null}} Pair
 */

/** How many lines a file has here. @param {File} file */
export const lineCount = (file) => file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);

/** All added and deleted lines. @param {Diff} diff */
export function totals(diff) {
  const sum = (/** @type {"additions" | "deletions"} */ of) => diff.files.reduce((all, file) => all + file[of], 0);
  return { additions: sum("additions"), deletions: sum("deletions") };
}

/** The lines of a hunk side by side: a deleted line stands beside the line that takes its place. @param {Hunk} hunk @returns {Pair[]} */
export function pairs(hunk) {
  /** @type {Pair[]} */
  const found = [];
  /** @type {Line[]} */
  let gone = [];
  /** @type {Line[]} */
  let come = [];
  const flush = () => {
    for (let at = 0; at < Math.max(gone.length, come.length); at += 1) found.push({ left: gone[at] ?? null, right: come[at] ?? null });
    [gone, come] = [[], []];
  };
  for (const line of hunk.lines) {
    if (line.kind === "-") {
      if (come.length > 0) flush();
      gone.push(line);
    } else if (line.kind === "+") {
      come.push(line);
    } else {
      flush();
      found.push({ left: line, right: line });
    }
  }
  flush();
  return found;
}

/** More of two lines is not compared. */
const COMPARED = 1000;

/** How much two lines have in common at their start and their end; none where most of them differs. @param {string} one @param {string} other @returns {[number, number] | null} */
function common(one, other) {
  if (one.length > COMPARED || other.length > COMPARED) return null;
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < shorter - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  const same = one.slice(0, start).trim().length + one.slice(one.length - end).trim().length;
  return same * 3 < shorter ? null : [start, end];
}

/** For each deleted and added line the part of it that was changed. @param {Hunk} hunk @returns {Map<Line, [number, number]>} */
export function changedParts(hunk) {
  const parts = new Map();
  for (const { left, right } of pairs(hunk)) {
    if (!left || !right || left === right) continue;
    const same = common(left.text, right.text);
    if (!same) continue;
    for (const line of [left, right]) if (same[0] + same[1] < line.text.length) parts.set(line, [same[0], line.text.length - same[1]]);
  }
  return parts;
}

/** What a comment on a line names: the line as it is now, or as it was where it was deleted. @param {Line} line @returns {import("./drafts.js").Place} */
export const placeOf = (line) => (line.kind === "-" ? { side: "old", line: line.old ?? 1 } : { side: "new", line: line.new ?? 1 });
