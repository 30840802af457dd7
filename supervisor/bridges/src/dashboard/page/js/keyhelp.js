// The list of keys, and what the colours mean. It is loaded when it is first asked for.

import { show } from "./dialog.js";
import { h, statusWord } from "./dom.js";

/** @param {string} keys */
function caps(keys) {
  const words = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", " ": "Space" };
  const parts = keys === " " || keys === "+" ? [keys] : keys.split(/[ +]/);
  return h("span", { class: "caps" }, parts.map((part) => h("kbd", null, words[part] ?? part)));
}

/** What a colour says, wherever it is. What can be pressed or is chosen has the colour of links. */
const COLOURS = {
  triage: "an idea", todo: "waits for other tasks, or was stopped", scheduled: "starts or goes on later", ready: "may start", running: "runs", review: "in review",
  blocked: "blocked, failed or an error; a button that destroys", warning: "a warning; asks you", done: "done; all is well",
};

/** Shows the keys that work on this page, and what colours mean. @param {import("./keys.js").Binding[]} table */
export function help(table) {
  const groups = new Map();
  for (const binding of [...table].reverse()) {
    if (binding.hidden) continue;
    const group = binding.group ?? "Everywhere";
    groups.set(group, [...(groups.get(group) ?? []), binding]);
  }
  show({ title: "Keyboard shortcuts and colours", wide: true, content: h("div", null, h("div", { class: "keys-help" }, [...groups].map(([group, bindings]) =>
    h("section", null, h("h3", null, group), h("ul", null, bindings.map((binding) => h("li", null, h("span", null, binding.label), caps(binding.keys))))))),
    h("h3", null, "Colours, on all pages"), h("div", { class: "keys-colours" }, Object.entries(COLOURS).map(([status, words]) => statusWord(status, words)))) });
}
