// The lines of a file's changes, in one column or in two, with the comments that are written on them.

import { h } from "../dom.js";
import { seen } from "./hidden.js";
import { changedParts, pairs, placeOf } from "./model.js";

/** @typedef {import("./model.js").Line} Line @typedef {import("./model.js").File} File */

/** So many lines are one block: the browser lays out those that are seen. */
const BLOCK = 100;
const LONGEST = 5000;
const SIGNS = { "+": "added", "-": "deleted", " ": "" };

/** @param {Line} line @param {[number, number] | undefined} part */
function code(line, part) {
  const text = line.text.length > LONGEST ? `${line.text.slice(0, LONGEST)} …` : line.text;
  if (!part) return h("span", { class: "diff-code" }, text === "" ? " " : seen(text));
  return h("span", { class: "diff-code" }, seen(text.slice(0, part[0])), h("span", { class: "diff-part" }, seen(text.slice(part[0], part[1]))), seen(text.slice(part[1])));
}

const number = (/** @type {number | null} */ value) => h("span", { class: "diff-number", "aria-hidden": "true" }, value === null ? "" : String(value));

/** What screen readers say of a line. @param {Line} line */
const spoken = (line) => `${SIGNS[line.kind]} line ${placeOf(line).line}: ${line.text.trim() || "empty"}`.trim();

/** @param {Line} line @param {[number, number] | undefined} part */
function unified(line, part) {
  return h("div", { class: "diff-line", tabindex: "-1", role: "group", "aria-label": spoken(line), dataset: { kind: line.kind, ...placeOf(line) } },
    number(line.old), number(line.new), h("span", { class: "diff-sign", "aria-hidden": "true" }, line.kind), code(line, part));
}

/** Two lines beside each other. A comment is on the right one, and by the number of the left one on a line that was deleted. @param {import("./model.js").Pair} pair @param {Map<Line, [number, number]>} parts */
function split({ left, right }, parts) {
  const side = (/** @type {Line | null} */ line, /** @type {"old" | "new"} */ of) =>
    h("div", { class: "diff-side", dataset: { kind: line ? line.kind : "none" } }, number(line ? line[of] : null), h("span", { class: "diff-sign", "aria-hidden": "true" }, line?.kind ?? ""), line ? code(line, parts.get(line)) : h("span", { class: "diff-code" }));
  const lineLabel = [left !== right && left ? spoken(left) : "", right ? spoken(right) : ""].filter(Boolean).join("; ");
  return h("div", { class: "diff-line diff-pair", tabindex: "-1", role: "group", "aria-label": lineLabel, dataset: { ...placeOf(/** @type {Line} */ (right ?? left)), old: left && left !== right && right ? left.old : null } }, side(left, "old"), side(right, "new"));
}

/** The lines of a file. @param {File} file @param {"unified" | "split"} mode @returns {HTMLElement} */
export function lines(file, mode) {
  const hunks = file.hunks.map((hunk) => {
    const parts = changedParts(hunk);
    const rows = mode === "split"
      ? pairs(hunk).map((pair) => split(pair, parts))
      : hunk.lines.map((line) => unified(line, parts.get(line)));
    const blocks = [];
    for (let at = 0; at < rows.length; at += BLOCK) {
      const block = h("div", { class: "diff-block" }, rows.slice(at, at + BLOCK));
      block.style.containIntrinsicBlockSize = `auto ${Math.min(BLOCK, rows.length - at) * 20}px`;
      blocks.push(block);
    }
    return h("div", { class: "diff-hunk" }, h("div", { class: "diff-header" }, hunk.header), blocks);
  });
  return h("div", { class: `diff-lines diff-${mode}` }, hunks);
}
