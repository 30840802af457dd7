// The group above the columns: what needs a person, with what to say to it.

import * as route from "../route.js";
import { seen, seenLines } from "../diff/hidden.js";
import { h, icon, text } from "../dom.js";
import { attachCommand } from "../parts/attach.js";
import { reason } from "../parts/reason.js";
import { ago, stamp } from "../time.js";
import { replies } from "./ondemand.js";
import { needed } from "./statuses.js";

/** @typedef {import("./store.js").Card} Card */

/** The words of a kind: of one, of several, and the colour of its chip. */
const KINDS = {
  question: ["Question", "questions", "warn"],
  approval: ["Approval", "approvals", "warn"],
  review: ["Review", "reviews", "review"],
  gave_up: ["Gave up", "gave up", "bad"],
  blocked: ["Blocked", "blocked", "bad"],
};
const MOST = 40;
const FOLDED = "supervisor.needs";
const KEPT = "supervisor.needed";

/** What is decided about. @param {Card} card @param {string} kind */
function matter(card, kind) {
  if (card.question) return card.question.text;
  if (kind === "gave_up" && card.failure) return card.failure;
  return card.block_reason ?? (card.waits ? reason(card.waits, null) : "");
}

export class Needs {
  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Map<string, {element: HTMLElement, signature: string}>} */
    this.shown = new Map();
    this.list = h("ul", { class: "needs-list", id: "needs-list" });
    this.words = h("span", { class: "muted needs-words cut" });
    this.count = h("span", { class: "count number" });
    this.fold = h("button", { type: "button", class: "needs-fold", "aria-controls": "needs-list", onclick: () => this.folded(!this.list.hidden) }, icon("right"), h("span", null, "Needs a person"), this.count);
    this.element = h("section", { class: "needs", "aria-label": "Needs a person" }, h("div", { class: "needs-head" }, h("h2", null, this.fold), this.words), this.list);
    let folded = false;
    let kept = null;
    try {
      folded = localStorage.getItem(FOLDED) === "1";
      kept = localStorage.getItem(KEPT);
    } catch { /* storage is off: it is open */ }
    this.folded(folded, false);
    this.list.toggleAttribute("data-kept", kept === "1");
    this.element.toggleAttribute("data-unknown", kept === null);
    this.element.dataset.empty = String(kept !== "1");
  }

  /** @param {boolean} folded @param {boolean} [keep] */
  folded(folded, keep = true) {
    this.list.hidden = folded;
    this.fold.setAttribute("aria-expanded", String(!folded));
    if (keep) try { localStorage.setItem(FOLDED, folded ? "1" : "0"); } catch { /* storage is off: it is open next time */ }
  }

  /** @param {Card[]} cards @param {boolean} loaded */
  set(cards, loaded) {
    // What is answered at a glance goes first.
    const rank = Object.keys(KINDS);
    const sorted = cards.sort((a, b) => b.priority - a.priority || rank.indexOf(needed(a)) - rank.indexOf(needed(b)) || a.updated_at - b.updated_at);
    const kinds = {};
    for (const card of sorted) kinds[needed(card)] = (kinds[needed(card)] ?? 0) + 1;
    text(this.count, loaded ? sorted.length.toLocaleString("en-US") : "");
    text(this.words, loaded && sorted.length ? Object.keys(KINDS).filter((kind) => kinds[kind]).map((kind) => `${kinds[kind].toLocaleString("en-US")} ${kinds[kind] === 1 ? KINDS[kind][0].toLowerCase() : KINDS[kind][1]}`).join(" · ") : loaded ? "Nothing waits for a person" : "");
    if (loaded || sorted.length) {
      this.element.dataset.empty = String(sorted.length === 0);
      this.list.removeAttribute("data-kept");
      this.element.removeAttribute("data-unknown");
      try { localStorage.setItem(KEPT, sorted.length ? "1" : "0"); } catch { /* storage is off: nothing is reserved next time */ }
    }
    const first = sorted.slice(0, MOST);
    const ids = new Set(first.map((card) => card.id));
    for (const [id, one] of this.shown) if (!ids.has(id)) { one.element.remove(); this.shown.delete(id); }
    let before = null;
    for (const card of first) before = this.place(card, before);
    this.rest?.remove();
    this.rest = null;
    if (sorted.length > MOST) {
      this.rest = h("li", { class: "needs-rest muted" }, `and ${(sorted.length - MOST).toLocaleString("en-US")} more in Blocked and Review`);
      this.list.append(this.rest);
    }
  }

  /** @param {Card} card @param {HTMLElement | null} before */
  place(card, before) {
    const kind = needed(card);
    const signature = JSON.stringify([kind, card.title, matter(card, kind), card.question, card.tenant, card.run]);
    let one = this.shown.get(card.id);
    // What somebody types an answer into is left alone, unless it asks something else now.
    if (!one || one.signature !== signature) {
      const element = this.build(card, kind);
      if (one) one.element.replaceWith(element);
      one = { element, signature };
      this.shown.set(card.id, one);
    }
    const there = before ? before.nextElementSibling : this.list.firstElementChild;
    if (there !== one.element && !one.element.contains(document.activeElement)) { if (before) before.after(one.element); else this.list.prepend(one.element); }
    return one.element;
  }

  /** @param {Card} card @param {string} kind */
  build(card, kind) {
    const [word, , colour] = KINDS[kind];
    const matterText = matter(card, kind);
    return h("li", { class: "need", dataset: { task: card.id, kind } },
      h("div", { class: "need-head" }, h("span", { class: "chip", dataset: { kind: colour } }, word), h("span", { class: "id" }, card.id), card.tenant ? h("span", { class: "chip" }, h("span", { class: "cut" }, card.tenant)) : null,
        h("span", { class: "age", title: stamp(card.updated_at), dataset: { at: card.updated_at } }, ago(card.updated_at)),
        h("button", { type: "button", class: "icon-button small", title: "Peek", "aria-label": `Peek at ${card.id}`, onclick: async () => (await replies()).peek(card.id) }, icon("eye")),
        card.run === null ? null : h("button", { type: "button", class: "icon-button small", title: `Copy: ${attachCommand(card.id)}`, "aria-label": `Copy the command that attaches to ${card.id}`, onclick: async () => (await replies()).attach(card.id) }, icon("terminal"))),
      h("a", { class: "need-title cut", href: route.here({ task: card.id }), dir: "auto" }, card.title),
      h("p", { class: "need-matter", dir: "auto", title: matterText }, seenLines(matterText)),
      h("div", { class: "need-acts" }, this.acts(card, kind)));
  }

  /** @param {Card} card @param {string} kind */
  acts(card, kind) {
    const button = (label, act, look = "") => h("button", { type: "button", class: `button small ${look}`, onclick: async (event) => {
      const all = event.currentTarget.closest(".need-acts").querySelectorAll("button");
      for (const one of all) one.disabled = true;
      await act();
      for (const one of all) one.disabled = false;
    } }, label);
    const { store } = this;
    if (kind === "approval") return [button("Approve", async () => (await replies()).approve(store, card), "primary"), button("Deny", async () => (await replies()).deny(store, card))];
    if (kind === "review") return [h("a", { class: "button small", href: route.link(`/review/${card.id}`) }, "Diff"), button("Approve", async () => (await replies()).approve(store, card), "primary"), button("Request changes", async () => (await replies()).requestChanges(store, card))];
    // A reason without a question is a question as well: `answer` takes words for it.
    if (kind === "blocked" && card.block_kind === "needs_input" && !card.cancelled) return this.inWords(card);
    if (kind === "gave_up" || kind === "blocked") return [button("Retry", async () => (await replies()).retry(store, card), "primary")];
    const choices = card.question?.choices ?? [];
    if (!choices.length) return this.inWords(card);
    const place = h("div", { class: "need-choices" }, h("div", { class: "need-options" }, choices.map((choice) => button(h("span", { dir: "auto" }, seen(choice)), async () => (await replies()).answer(store, card, choice)))),
      card.question.free_text ? h("button", { type: "button", class: "button small quiet", onclick: () => { const typed = this.inWords(card); place.replaceWith(typed); typed.querySelector("input").focus(); } }, "Other…") : null);
    return place;
  }

  /** A line for an answer in words. @param {Card} card */
  inWords(card) {
    const input = h("input", { class: "input need-answer", "aria-label": `Answer to ${card.id}`, placeholder: card.question ? "Answer" : "Reply", autocomplete: "off", dir: "auto" });
    const send = h("button", { type: "submit", class: "button small primary" }, "Send");
    return h("form", { class: "need-form", onsubmit: async (event) => {
      event.preventDefault();
      if (!input.value.trim() || send.disabled) return;
      send.disabled = true;
      if (await (await replies()).answer(this.store, card, input.value.trim())) input.value = "";
      send.disabled = false;
    } }, input, send);
  }

  /** Puts the keyboard on the first of them. */
  focus() {
    this.folded(false);
    const first = this.list.firstElementChild;
    (first?.querySelector("input") ?? first?.querySelector(".need-acts :is(a, button)") ?? this.fold).focus();
  }

  /** Brings the times up to date. */
  tick() {
    for (const { element } of this.shown.values()) { const age = element.querySelector(".age"); text(age, ago(Number(age.dataset.at))); }
  }
}
