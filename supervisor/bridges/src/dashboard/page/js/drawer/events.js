// The events of a task: the last 20, and more on demand.
import { h } from "../dom.js";
import { at, stamp } from "../time.js";
import { problem as failed } from "../toast.js";
import { details, keyed, section, some } from "./section.js";
import { events as page } from "./server.js";

/** How many events are shown at first. */
const FIRST = 20;
const STEP = 100;
/** How many events are read at most. */
const MOST = 20_000;

/** Returns the list, the newest first. @param {import("./drawer.js").Desk} drawer */
export function events(drawer) {
  const part = section("Events");
  const list = h("ol", { class: "events" });
  const older = h("button", { type: "button", class: "drawer-older", hidden: true, onclick: () => showOlder() });
  part.body.append(list, older);
  const paint = keyed(list, (event) => event.id, row);
  /** @type {Map<number, any>} */
  const known = new Map();
  let limit = FIRST;
  let more = false;

  const show = () => {
    const all = [...known.values()].sort((a, b) => b.id - a.id);
    paint(all.slice(0, limit));
    const left = all.length - limit;
    older.hidden = left <= 0 && !more;
    older.textContent = more ? "Show more events" : `Show ${some(left, STEP)} more events`;
    part.count(more ? `${all.length}+` : all.length);
  };
  const showOlder = async () => {
    limit += limit === FIRST ? STEP - FIRST : STEP;
    if (more) {
      older.disabled = true;
      try {
        const newest = Math.max(...known.keys());
        let since = 0;
        let isLast = false;
        while (!isLast && known.size < MOST) {
          const reply = await page(drawer.id, since);
          for (const event of reply.events) known.set(event.id, event);
          isLast = !reply.events.length || reply.cursor <= since || reply.cursor >= newest;
          since = reply.cursor;
        }
        more = !isLast;
      } catch (problem) {
        failed(problem);
      }
      older.disabled = false;
    }
    show();
  };
  return {
    element: part.element,
    update: (shown) => {
      const newest = Math.max(0, ...known.keys());
      const ids = shown.events.map((event) => event.id);
      // Where there are more, and the oldest here is newer than the newest that is known, some between them are missing.
      if ((shown.more ?? []).includes("events") && Math.min(...ids) > newest) more = true;
      for (const event of shown.events) known.set(event.id, event);
      show();
    },
  };
}

/** How many characters of a field stand in the row. */
const TOLD = 200;
/** The fields of a payload that say most, in the order in which they are shown. */
const TELLING = ["reason", "note", "text", "title", "status", "from", "to", "assignee", "profile", "outcome", "verdict", "summary", "error", "by", "choice", "answer", "parent", "child", "filename", "kind", "exit_code", "signal", "until"];

/** @param {any} event */
function row(event) {
  const payload = event.payload && typeof event.payload === "object" ? event.payload : {};
  const names = Object.keys(payload).filter((name) => payload[name] !== null && payload[name] !== "" && !(Array.isArray(payload[name]) && !payload[name].length));
  const told = TELLING.filter((name) => names.includes(name) && typeof payload[name] !== "object").slice(0, 3);
  const [who] = [...(event.actor ?? "").split(":").slice(1), event.actor ?? ""];
  const summary = h("summary", null,
    h("time", { class: "number", datetime: new Date(event.created_at * 1000).toISOString(), title: stamp(event.created_at) }, at(event.created_at)),
    h("span", { class: "event-kind" }, event.kind.replaceAll("_", " ")),
    h("span", { class: "event-told cut" }, told.map((name) => `${name.replaceAll("_", " ")}: ${String(payload[name]).slice(0, TOLD)}`).join(" · ")),
    h("span", { class: "event-who cut" }, who));
  return h("li", { class: "event" }, details(summary, () =>
    h("pre", { tabindex: "0", role: "group", "aria-label": `Event ${event.id}` }, JSON.stringify({ id: event.id, actor: event.actor, run: event.run_id ?? undefined, ...payload }, null, 2))));
}
