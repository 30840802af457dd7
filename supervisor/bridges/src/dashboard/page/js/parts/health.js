// How a live worker is, in a word: what wants a look stands out.

import { h, text } from "../dom.js";
import { duration, now } from "../time.js";

/** The words that stand out, and what they mean. @type {Record<string, {kind: string, title: string}>} */
const GRAVE = {
  quiet: { kind: "warn", title: "It has shown no progress for 10 minutes" },
  overdue: { kind: "bad", title: "Its time is over, and it is being ended" },
  stuck: { kind: "bad", title: "Something keeps its end from the board, or its processes from ending" },
};
/** What the state says already. */
const SAID = new Set(["starting", "ending"]);

/** @returns {{element: HTMLElement, set: (worker: {health?: string, last_heartbeat_at: number | null}) => void}} */
export function health() {
  const element = h("span", { class: "worker-health" });
  return {
    element,
    set({ health: word, last_heartbeat_at: at }) {
      const is = word ? GRAVE[word] : undefined;
      element.hidden = !word || SAID.has(word);
      element.className = is ? "worker-health chip" : "worker-health";
      element.dataset.health = word ?? "";
      if (is) element.dataset.kind = is.kind; else delete element.dataset.kind;
      text(element, word ?? "");
      element.title = is ? (word === "quiet" && at ? `No progress for ${duration(now() - at)}` : is.title) : "It shows progress";
    },
  };
}
