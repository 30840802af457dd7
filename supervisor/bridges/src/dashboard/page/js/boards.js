// The switch of boards in the header.

import * as route from "./route.js";
import { Problem, call } from "./api.js";
import { h, put } from "./dom.js";

let place = null;
let known = [];

async function read() {
  try {
    known = await call("GET", "/boards");
    draw();
  } catch (error) {
    // A session of a tenant does not list boards: it has the one that it was opened for.
    if (!(error instanceof Problem)) throw error;
  }
}

function draw() {
  if (!place) return;
  const current = route.state().query.board ?? "";
  const names = known.filter((board) => !board.archived);
  if (names.length < 2 && !current) { put(place, names.length ? h("span", { class: "board-name cut" }, names[0].name || names[0].slug) : null); return; }
  const chosen = current || names.find((board) => board.slug === "default")?.slug || names[0]?.slug || "";
  const select = h("select", { class: "select quiet-select", "aria-label": "Board", onchange: () => route.go("/board", { board: select.value === "default" ? null : select.value, tenant: null }) },
    names.map((board) => h("option", { value: board.slug, selected: board.slug === chosen }, board.name || board.slug)),
    names.some((board) => board.slug === chosen) ? null : h("option", { value: chosen, selected: true }, chosen));
  put(place, select);
}

export const boards = {
  /** @param {HTMLElement} where */
  start(where) { place = where; return read(); },
  draw,
  read,
};
