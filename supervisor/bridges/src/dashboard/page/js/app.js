// Starts the page: routes, keys, the live connection, the navigation, and the place of the drawer.

import * as api from "./api.js";
import * as dialog from "./dialog.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import * as route from "./route.js";
import { announce, command, h, icon, put, withCode } from "./dom.js";
import { problem, toast } from "./toast.js";
import { boards } from "./boards.js";
import * as pending from "./pending.js";
import * as session from "./session.js";

/**
 * What a page or the drawer gets. Everything in it can be imported as well.
 * @typedef {{config: Config, drawer: HTMLElement, close: () => void}} Context
 *   `drawer`: its place; `close`: closes it, as Escape does
 * @typedef {{default_tenant: string | null, lane_by_profile: boolean, include_archived_by_default: boolean, render_markdown: boolean}} Config
 * @typedef {{update?: (state: route.State) => void, unmount?: () => void}} Page
 * @typedef {{close?: () => void, mayClose?: () => boolean | Promise<boolean>}} Drawer `mayClose`: whether nothing would be lost
 */

/** The styles of the pages about work, which share parts, and those of a page with changes or a log. */
const WORK = ["work", "log", "diff", "missions", "charts"];
const TEXTS = ["work", "log", "diff"];
/** The pages: their names in the URL and of their modules, their words in the navigation, and their styles. */
const PAGES = {
  board: { label: "Board", key: "b", styles: ["board"] },
  work: { label: "Work", key: "w", styles: WORK },
  reviews: { label: "Review", key: "r", styles: TEXTS },
  missions: { label: "Missions", key: "m", styles: WORK, ofOperators: true },
  timeline: { label: "Timeline", key: "t", styles: WORK },
  health: { label: "Health", key: "h", styles: WORK },
  runs: { of: "work", styles: TEXTS },
  review: { of: "reviews", styles: TEXTS },
};
const DEFAULTS = { default_tenant: null, lane_by_profile: true, include_archived_by_default: false, render_markdown: true };

const main = document.getElementById("main");
const drawer = document.getElementById("drawer");
/** @type {Context} */
const context = { config: DEFAULTS, drawer, close: () => route.set({ task: null }) };
/** @type {{name: string, board: string, page: Page | null} | null} */
let shown = null;
/** @type {{id: string, board: string, handle: Drawer | null, from: Element | null} | null} */
let opened = null;
let signedOut = false;
/** Whether a module did not load. A browser may remember that, so only a new page loads it. */
let isBroken = false;

/** @type {Map<string, Promise<void>>} */
const styles = new Map();

/** Loads a stylesheet once. A page without its style is shown all the same. @param {string} name */
function style(name) {
  if (!styles.has(name)) {
    styles.set(name, new Promise((resolve) => {
      document.head.append(h("link", { rel: "stylesheet", href: new URL(`../css/${name}.css`, import.meta.url).href, onload: () => resolve(), onerror: () => { styles.delete(name); resolve(); } }));
    }));
  }
  return styles.get(name);
}

/** @param {string} title @param {...any} content */
function notice(title, ...content) {
  put(main, h("section", { class: "notice" }, h("h1", null, title), content));
  announce(title);
}

/** How long a page may take before its place says that it is read, and how long after a failure it is read again. */
const SHORT = 200;
const AGAIN = 3000;

/** @param {string} name @param {unknown} error */
function notLoaded(name, error) {
  if (signedOut) return;
  if (!(error instanceof api.Problem)) {
    console.error(error);
    if (isBroken && document.getElementById("connection").dataset.state === "live" && !opened) {
      location.reload();
      return;
    }
    isBroken = true;
    notice("The page did not load", h("p", null, `The module of the page "${name}" did not load. The daemon does not answer, or was upgraded meanwhile. It is loaded again when the connection is back.`),
      h("button", { type: "button", class: "button primary", onclick: () => location.reload() }, "Reload"));
    return;
  }
  const away = error.code === "unreachable" || error.code === "timeout";
  if (away) notice(error.detail, h("p", null, withCode(error.hint)), h("p", null, "This page tries again by itself."));
  else {
    notice("The page could not be read", h("p", null, withCode(error.detail)), error.hint ? h("p", null, withCode(error.hint)) : null,
      route.state().query.board ? h("a", { class: "button primary", href: "/board" }, "Go to the default board") : h("button", { type: "button", class: "button primary", onclick: () => location.reload() }, "Reload"));
  }
  if (away) setTimeout(() => { if (!shown && !signedOut) { begun = begin(); begun.catch(ignore); boards.read(); showPage(route.state()); } }, AGAIN);
}

/** Reads again what did not load while the connection was lost. A page that is shown reads its own part itself. */
function again() {
  if (signedOut) return;
  const state = route.state();
  boards.read();
  if (!session.owner) whose();
  if (opened) style("drawer");
  else showDrawer(state.query.task, state.query.board ?? "");
  if (shown) PAGES[shown.name]?.styles.forEach(style);
  else if (!isBroken) showPage(state);
  // What is typed into an open task stays: then the person loads the page again.
  else if (!opened) location.reload();
}

/** Whether a page is for this session: one of a tenant has no pages about all tenants. @param {{label?: string, ofOperators?: boolean}} page */
const isOffered = (page) => Boolean(page.label) && !(page.ofOperators && session.owner?.tenant);

const ignore = () => { /* the page that waits for it shows the error */ };

/** @param {route.State} state */
async function showPage(state) {
  const name = state.page;
  const board = state.query.board ?? "";
  if (shown && shown.name === name && shown.board === board) {
    shown.page?.update?.(state);
    return;
  }
  shown?.page?.unmount?.();
  const mine = { name, board, page: null };
  shown = mine;
  navigation();
  const page = PAGES[name];
  document.title = `${page ? page.label ?? PAGES[page.of].label : "Not found"} · supervisor`;
  if (!page) {
    notice("No such page", h("p", null, `There is no page "/${name}".`), h("a", { class: "button", href: route.link("/board") }, "Go to the board"));
    return;
  }
  const wait = setTimeout(() => put(main, h("div", { class: "wait", role: "status" }, h("span", { class: "unseen" }, "Loading"), h("div", { class: "skeleton" }), h("div", { class: "skeleton" }), h("div", { class: "skeleton" }))), SHORT);
  try {
    const [module] = await Promise.all([import(`./pages/${name}.js`), ...page.styles.map(style), begun]);
    if (shown !== mine || signedOut) return;
    clearTimeout(wait);
    put(main);
    main.scrollTop = 0;
    mine.page = module.mount(main, context) ?? null;
    mine.page?.update?.(route.state());
  } catch (error) {
    if (shown === mine) { shown = null; clearTimeout(wait); notLoaded(name, error); }
  } finally { clearTimeout(wait); }
}

/** @param {string | undefined} id @param {string} board */
async function showDrawer(id, board) {
  if (opened && opened.id === id && opened.board === board) return;
  if (opened) {
    const before = opened;
    opened = null;
    before.handle?.close?.();
    put(drawer);
    if (!id) {
      drawer.hidden = true;
      const card = document.querySelector(`[data-task="${CSS.escape(before.id)}"] a, [data-task="${CSS.escape(before.id)}"]`);
      const back = before.from?.isConnected && before.from !== document.body ? before.from : card;
      if (back instanceof HTMLElement) {
        back.focus();
        // A press on nothing that is worked takes it away once more.
        requestAnimationFrame(() => { if ([document.body, main].includes(document.activeElement)) back.focus({ preventScroll: true }); });
      }
    }
  }
  if (!id) return;
  const mine = { id, board, handle: null, from: document.activeElement };
  opened = mine;
  drawer.hidden = false;
  drawer.setAttribute("aria-label", `Task ${id}`);
  try {
    const [module] = await Promise.all([import("./drawer/drawer.js"), style("drawer"), begun]);
    if (opened !== mine) return;
    drawer.focus({ preventScroll: true });
    mine.handle = module.open(id, context) ?? null;
  } catch (error) {
    if (opened !== mine) return;
    opened = null;
    drawer.hidden = true;
    console.error(error);
    if (!(error instanceof api.Problem)) toast("The details of the task did not load", { kind: "error", hint: "Reload the page. The daemon may have been upgraded meanwhile." });
  }
}

async function closeDrawer() {
  if (!opened) return;
  if (opened.handle?.mayClose && !(await opened.handle.mayClose())) return;
  route.set({ task: null });
}

/** How many tasks wait for a review, where there are some. */
function reviews() {
  const { reviews: count } = pending;
  const words = `${count === 1 ? "1 task is" : `${count} tasks are`} in review`;
  return count ? h("span", { class: "nav-count number", title: words }, h("span", { "aria-hidden": "true" }, count > 99 ? "99+" : String(count)), h("span", { class: "unseen" }, `, ${words}`)) : null;
}

function navigation() {
  const state = route.state();
  const current = PAGES[state.page]?.of ?? state.page;
  put(document.getElementById("nav"), Object.entries(PAGES).filter(([, page]) => isOffered(page)).map(([name, page]) =>
    h("a", { href: route.link(`/${name}`), "aria-current": name === current ? "page" : null }, page.label, name === "reviews" ? reviews() : null)));
  document.querySelector(".brand").href = route.link("/board");
}

function themeSwitch() {
  const button = document.getElementById("theme");
  const names = { system: ["screen", "as the system"], dark: ["moon", "dark"], light: ["sun", "light"] };
  const draw = () => {
    const [sign, word] = names[document.documentElement.dataset.themeChoice] ?? names.system;
    put(button, icon(sign));
    button.setAttribute("aria-label", `Theme: ${word}`);
    button.title = `Theme: ${word}`;
  };
  const next = () => {
    const order = Object.keys(names);
    const chosen = order[(order.indexOf(document.documentElement.dataset.themeChoice) + 1) % order.length];
    try { localStorage.setItem("supervisor.theme", chosen); } catch { toast("The browser does not keep the theme: its storage is off", { kind: "error" }); }
    dispatchEvent(new Event("supervisor:theme"));
    draw();
    announce(`Theme: ${names[chosen][1]}`);
  };
  button.addEventListener("click", next);
  draw();
  keys.add({ keys: "T", label: "Change the theme", run: next });
}

function connectionState() {
  const button = document.getElementById("connection");
  const banner = document.getElementById("banner");
  const words = { connecting: "…", live: "Live", reconnecting: "Reconnecting", lost: "Connection lost" };
  let before = "connecting";
  button.addEventListener("click", live.retry);
  live.on((events) => { button.dataset.event = String(events.at(-1)?.id); });
  live.onState((state) => {
    if (signedOut) return;
    button.dataset.state = state;
    button.title = state === "live" ? "Changes appear as they happen" : state === "lost" ? "Try again now" : "Connecting to the daemon";
    button.setAttribute("aria-label", state === "connecting" ? "Connecting" : words[state]);
    button.lastElementChild.textContent = words[state];
    banner.hidden = state !== "lost";
    if (state === "lost") put(banner, h("span", null, "The daemon does not answer. Run: ", h("code", null, "supervisor status")),
      h("button", { type: "button", class: "button small", onclick: live.retry }, "Try now"));
    if (state === "live" && (before === "lost" || before === "reconnecting")) announce("The connection is back");
    if (state !== "connecting") before = state;
  });
}

/** Shows that the session has ended, and how to get another. */
function showSignedOut() {
  signedOut = true;
  shown?.page?.unmount?.();
  shown = { name: "", board: "", page: null };
  drawer.hidden = true;
  document.getElementById("banner").hidden = true;
  document.getElementById("connection").hidden = true;
  document.getElementById("account").hidden = true;
  notice("This browser has no session", h("p", null, "Sessions end after a time, when they are revoked, or when the address changes. Get a new link on the daemon's host:"),
    command("supervisor dashboard"), h("p", null, "The link works once. Open it in this browser."));
}

/** Begins to follow a board. */
async function begin() {
  const board = route.state().query.board ?? "";
  api.setBoard(board);
  const [, config] = await Promise.all([live.restart(), api.call("GET", "/config")]);
  context.config = { ...DEFAULTS, ...config };
}

function go() {
  for (const [name, page] of Object.entries(PAGES)) {
    if (page.key) keys.add({ keys: `g ${page.key}`, label: `Go to: ${page.label}`, group: "Pages", get hidden() { return !isOffered(page); }, when: () => isOffered(page), run: () => route.go(`/${name}`) });
  }
  keys.add({ keys: "Escape", label: "Close the task", get hidden() { return opened === null; }, run: () => (opened ? void closeDrawer() : false), when: () => opened !== null });
  document.getElementById("help").addEventListener("click", keys.help);
  // A press on the page beside the drawer closes it. A press on something that opens a task changes it instead.
  document.addEventListener("pointerdown", (event) => {
    if (!opened || !(event.target instanceof Element) || event.target.closest("#drawer, #toasts, #top, dialog, [data-task]")) return;
    closeDrawer();
  });
}

function changed(state, before) {
  if (signedOut) return;
  if (state.query.board !== before?.query.board) { begun = begin(); begun.catch(ignore); boards.draw(); begun.then(recount, ignore); }
  if (state.query.tenant !== before?.query.tenant) { navigation(); recount(); }
  showPage(state);
  showDrawer(state.query.task, state.query.board ?? "");
}

api.whenUnauthorized(() => { if (!signedOut) showSignedOut(); });
addEventListener("unhandledrejection", (event) => { event.preventDefault(); problem(event.reason); });
if (/^\/review\/?$/.test(location.pathname)) history.replaceState(null, "", `/reviews${location.search}`);
if (location.pathname === "/") history.replaceState(null, "", `/board${location.search}`);
route.start();
keys.start();
themeSwitch();
connectionState();
go();
let begun = begin();
begun.catch(ignore);
let recount = () => { /* the number is asked for once the board is known */ };
const count = () => { recount = pending.start(navigation); };
begun.then(count, () => { const stop = live.onGap(() => { stop(); count(); }); });
route.on(changed);
boards.start(document.getElementById("boards"));
const whose = () => session.start(document.getElementById("account"), { known: navigation, ended: showSignedOut });
whose();
live.onGap(again);
showPage(route.state());
showDrawer(route.state().query.task, route.state().query.board ?? "");
