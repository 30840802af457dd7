// A card: how tall it is before it is built, and how it is built.

import * as route from "../route.js";
import { h, icon } from "../dom.js";
import { now, short, stamp } from "../time.js";
import { usd } from "../money.js";
import { isBroken, waiting, worrying } from "./statuses.js";

/** The heights of a card's parts in pixels at the usual size of text; board.css has the same. */
const PART = { around: 20, head: 18, title: 18, wait: 19, foot: 27 };
/** What a card's paddings and border take of its width. */
const SIDES = 22;

let scale = 1;
let width = 0;
/** @type {CanvasRenderingContext2D | null} */
let canvas = null;
/** @type {WeakMap<import("./store.js").Card, number>} */
let heights = new WeakMap();

/** Says how wide cards are. Returns whether their heights may differ from before. @param {number} outer pixels */
export function setWidth(outer) {
  const root = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  if (outer - SIDES === width && root === scale) return false;
  width = outer - SIDES;
  scale = root;
  canvas = document.createElement("canvas").getContext("2d");
  canvas.font = `500 ${13 * scale}px ${getComputedStyle(document.body).fontFamily}`;
  heights = new WeakMap();
  return true;
}

/** Whether a title needs two lines. The measure decides the height, so a wrong one cuts a word but moves nothing. @param {string} title */
function long(title) {
  if (title.length * 13 * scale < width) return false;
  if (title.length * 4 * scale > width) return true;
  return canvas.measureText(title).width > width - 2;
}

/** @param {import("./store.js").Card} card */
const hasFoot = (card) => Boolean(card.priority || card.tenant || card.assignee || card.comments || card.links || card.children.total);

/** Returns the height of a card. @param {import("./store.js").Card} card */
export function heightOf(card) {
  let height = heights.get(card);
  if (height === undefined) {
    height = Math.round((PART.around + PART.head + PART.title * (long(card.title) ? 2 : 1) + (waiting(card) ? PART.wait : 0) + (hasFoot(card) ? PART.foot : 0)) * scale);
    heights.set(card, height);
  }
  return height;
}

/** @param {string} sign @param {string | number} text @param {string} label */
const counter = (sign, text, label) => h("span", { class: "counter", title: label }, icon(sign), h("span", { "aria-hidden": "true" }, text), h("span", { class: "unseen" }, label));

/** Returns who works on it, as a letter in a circle and the name. @param {string} name */
export const person = (name) => h("span", { class: "person", title: `Assigned to ${name}` },
  h("span", { class: "initial", "aria-hidden": "true" }, [...name][0].toUpperCase()), h("span", { class: "unseen" }, "Assigned to "), h("span", { class: "cut", dir: "auto" }, name));

/** @param {{done: number, total: number}} children */
function progress({ done, total }) {
  return h("span", { class: "counter progress", title: `${done} of ${total} children done` },
    h("span", { class: "pie", "aria-hidden": "true", style: { "--part": `${total ? Math.round((done / total) * 100) : 0}%` } }),
    h("span", { "aria-hidden": "true" }, `${done}/${total}`), h("span", { class: "unseen" }, `${done} of ${total} children done`));
}

/** Whether its line stands out. @param {import("./store.js").Card} card */
const isGrave = (card) => isBroken(card) || (card.status === "running" && worrying.has(card.id));

/** Returns a card. @param {import("./store.js").Card} card */
export function build(card) {
  const wait = waiting(card);
  const words = `${card.title}, ${card.id}`;
  return h("div", { class: ["card", long(card.title) && "long"], role: "listitem", dataset: { task: card.id, status: card.status } },
    h("div", { class: "card-head" },
      h("span", { class: "id" }, card.id),
      card.cost ? h("span", { class: "cost number", title: "Cost of its latest runs" }, usd(card.cost)) : null,
      h("span", { class: "age number", title: `Created ${stamp(card.created_at)}` }, short(now() - card.created_at)),
      h("input", { type: "checkbox", class: "card-check", tabindex: "-1", "aria-label": `Select ${words}` })),
    h("a", { class: "card-title", href: route.here({ task: card.id }), draggable: "false", tabindex: "-1", dir: "auto", title: long(card.title) ? card.title : null }, card.title),
    wait ? h("div", { class: ["card-wait", isGrave(card) && "broken"], dir: "auto", title: wait }, wait) : null,
    hasFoot(card) ? h("div", { class: "card-foot" },
      card.priority ? h("span", { class: "chip priority", dataset: { kind: card.priority > 0 ? "warn" : null }, title: `Priority ${card.priority}` }, h("span", { class: "unseen" }, "Priority "), `P${card.priority}`) : null,
      card.tenant ? h("span", { class: "chip", title: `Tenant ${card.tenant}` }, h("span", { class: "unseen" }, "Tenant "), h("span", { class: "cut" }, card.tenant)) : null,
      card.assignee ? person(card.assignee) : null,
      h("span", { class: "counters" },
        card.children.total ? progress(card.children) : null,
        card.links ? counter("link", card.links, `${card.links} ${card.links === 1 ? "link" : "links"}`) : null,
        card.comments ? counter("comment", card.comments, `${card.comments} ${card.comments === 1 ? "comment" : "comments"}`) : null)) : null);
}

/** Brings the times on a card up to date. @param {HTMLElement} element @param {import("./store.js").Card} card */
export function tick(element, card) {
  const age = element.querySelector(".age");
  const ageText = short(now() - card.created_at);
  if (age && age.textContent !== ageText) age.textContent = ageText;
  const wait = element.querySelector(".card-wait");
  const why = waiting(card);
  if (wait && why && wait.textContent !== why) { wait.textContent = why; wait.title = why; }
  wait?.classList.toggle("broken", isGrave(card));
}
