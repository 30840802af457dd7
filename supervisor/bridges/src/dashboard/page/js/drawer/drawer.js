// The drawer of a task: reads it, lays its parts out, and keeps them up to date without losing what is being typed.
import { Problem, verb } from "../api.js";
import { h, put } from "../dom.js";
import { prepare } from "../markdown.js";
import * as live from "../live.js";
import * as keys from "../keys.js";
import { soon } from "../parts/soon.js";
import { problem as failed, toast } from "../toast.js";
import { description, result, summary } from "./body.js";
import { FIRST_COMMENTS, comments } from "./comments.js";
import { events } from "./events.js";
import { fields } from "./fields.js";
import { files } from "./files.js";
import { head } from "./head.js";
import { links } from "./links.js";
import { moves } from "./moves.js";
import { person } from "./person.js";
import { runs } from "./runs.js";
import { words } from "./refusal.js";
import { age, withCode } from "./section.js";
import { show, verbs } from "./server.js";
import { trap } from "./trap.js";

/**
 * What the parts of the drawer get.
 * @typedef {object} Desk
 * @property {string} id of the task
 * @property {import("../app.js").Context} context
 * @property {HTMLElement} scroller what scrolls
 * @property {() => void} close
 * @property {() => any} shown the task as it was read last: the answer of `show`
 * @property {(verb: string) => boolean} may whether the session may call a verb
 * @property {() => Promise<void>} reload
 * @property {(move: string) => void} offer opens the form of a move
 * @property {(verb: string, body: object) => Promise<any>} act calls a verb, reads the task again, and returns the answer
 */

/** How long the first view waits for its Markdown, and how long a later one, in milliseconds. */
const RENDERING = 250;
const RENDERING_LATER = 50;
/** How often ages are brought up to date, in milliseconds. */
const AGES = 20_000;

/**
 * Opens the drawer of a task.
 * @param {string} id
 * @param {import("../app.js").Context} context
 */
export function open(id, context) {
  const place = context.drawer;
  const scroller = h("div", { class: "drawer-scroll" });
  const ended = new AbortController();
  /** @type {any} */
  let shown = null;
  /** @type {Set<string> | null} */
  let callable = null;
  /** @type {Promise<void> | null} */
  let reading = null;
  let again = false;
  let parts = null;

  /** @type {Desk} */
  const drawer = {
    id,
    context,
    scroller,
    close: context.close,
    shown: () => shown,
    may: (name) => callable === null || callable.has(name),
    reload,
    offer: (move) => parts?.offer(move),
    act: async (name, body) => {
      const reply = await verb(name, body);
      for (const warning of reply?.warnings ?? []) toast(warning, { kind: "info" });
      await reload();
      // The button that was pressed may be gone.
      if (document.activeElement === document.body) place.focus({ preventScroll: true });
      return reply;
    },
  };

  /** Reads the task. The returned promise is settled once a reading that began after the call is shown. */
  function reload() {
    again = true;
    reading ??= read().finally(() => { reading = null; });
    return reading;
  }

  async function read() {
    while (again && !ended.signal.aborted) {
      again = false;
      try {
        const now = await show(id, ended.signal);
        if (context.config.render_markdown) await prepare(texts(now), shown ? RENDERING_LATER : RENDERING);
        if (ended.signal.aborted) return;
        shown = now;
        paint();
      } catch (problem) {
        if (ended.signal.aborted) return;
        refused(problem);
      }
    }
  }

  function refused(problem) {
    if (shown && !(problem instanceof Problem && problem.status === 404)) {
      // What is shown stays; the page itself says that the connection is lost.
      if (problem.code !== "unreachable") failed(problem);
      return;
    }
    const { detail, hint } = words(problem);
    parts?.end();
    parts = null;
    shown = null;
    put(place, h("div", { class: "drawer-gone" },
      h("h2", null, problem.status === 404 ? "This task does not exist" : "The task could not be read"),
      h("p", null, ...withCode(detail)), hint ? h("p", { class: "drawer-hint" }, ...withCode(hint)) : null,
      h("div", { class: "drawer-actions" },
        h("button", { type: "button", class: "button", onclick: () => reload() }, "Try again"),
        h("button", { type: "button", class: "button primary", onclick: context.close }, "Close"))));
  }

  function paint() {
    if (!parts) {
      parts = lay(drawer, place, scroller);
      place.setAttribute("aria-busy", "false");
    }
    parts.update(shown);
  }

  const news = soon(reload);
  const stops = [
    live.on((batch) => {
      if (batch.some((event) => event.task_id === id)) news.ask();
      if (shown) parts?.refresh(new Set(batch.map((event) => event.task_id)));
    }),
    live.onGap(() => { allowed(); news.ask(); }),
    keys.add(
      { keys: "m", label: "Write a comment", group: "Task", run: () => void parts?.comment(), when: () => parts !== null },
      { keys: "e", label: "Edit the description", group: "Task", run: () => void parts?.edit(), when: () => parts !== null },
    ),
    trap(place),
  ];

  const ages = setInterval(() => age(place), AGES);
  put(place, skeleton());
  place.setAttribute("aria-busy", "true");
  const allowed = () => callable ?? verbs().then((all) => {
    callable = all;
    if (shown && !ended.signal.aborted) paint();
  }, () => undefined);
  allowed();
  reload();

  return {
    close: () => {
      ended.abort();
      news.stop();
      clearInterval(ages);
      parts?.end();
      for (const stop of stops) stop();
    },
  };
}

/** Returns the texts of a task that are shown first. @param {any} shown */
function texts(shown) {
  const { body, assignee, result: ended } = shown.task;
  return [assignee === "shell" ? null : body, ended, shown.latest_summary, ...shown.comments.slice(-FIRST_COMMENTS).map((comment) => comment.body)];
}

/** Lays the parts out. @param {import("./drawer.js").Desk} drawer @param {HTMLElement} place @param {HTMLElement} scroller */
function lay(drawer, place, scroller) {
  const top = head(drawer);
  const body = description(drawer);
  const thread = comments(drawer);
  const dependencies = links(drawer);
  const row = moves(drawer);
  const all = [
    top, person(drawer), row, fields(drawer), body, result(drawer), summary(drawer), dependencies, files(drawer, scroller),
    runs(drawer), thread, events(drawer),
  ];
  put(scroller, all.map((part) => part.element));
  put(place, top.bar, scroller);
  return {
    update: (shown) => {
      for (const part of all) part.update(shown);
    },
    refresh: dependencies.refresh,
    offer: row.open,
    comment: () => thread.focus(),
    edit: () => body.edit(),
    end: () => { for (const part of all) part.end?.(); },
  };
}

/** What stands there until the task is read. */
function skeleton() {
  return h("div", { class: "drawer-waits" }, ["30%", "80%", "100%", "60%"].map((width) => h("div", { class: "skeleton", style: { width } })));
}
