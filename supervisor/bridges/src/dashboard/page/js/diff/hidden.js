// Characters that are not seen or turn the text around them: a reviewer has to see them, or a line may read as another one than it is.

import { h } from "../dom.js";

// Controls but tab, soft hyphen, Arabic letter mark, zero-width and direction marks, embeddings, overrides, isolates, invisible operators, variation (but that of emoji) and tag characters.
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** A text with a mark in the place of each hidden character. @param {string} text @returns {(string | HTMLElement)[]} */
export function seen(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > from) parts.push(text.slice(from, match.index));
    const code = `U+${/** @type {number} */ (match[0].codePointAt(0)).toString(16).toUpperCase().padStart(4, "0")}`;
    // A line that ends with a carriage return is one of another system.
    if (match[0] === "\r" && match.index === text.length - 1) parts.push(h("span", { class: "diff-hidden", title: "carriage return" }, "CR"));
    else parts.push(h("span", { class: "diff-hidden", title: "a hidden character" }, code));
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

/** The same of a text with several lines. @param {string} text @returns {(string | HTMLElement)[]} */
export const seenLines = (text) => text.split("\n").flatMap((line, at) => [...(at > 0 ? ["\n"] : []), ...seen(line)]);
