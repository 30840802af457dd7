// The head of the drawer: id, status, title, and why the task waits.
import { announce, copy, h, icon, put, statusWord } from "../dom.js";
import { reason } from "../parts/reason.js";
import { here } from "../route.js";
import { editable } from "./edit.js";
import { need } from "./person.js";
import { whenChanged, withCode } from "./section.js";

/** Returns the bar with the id and the buttons, and the title below it. @param {import("./drawer.js").Desk} drawer */
export function head(drawer) {
  const status = h("span", { class: "drawer-status" });
  const id = h("button", { type: "button", class: "drawer-id", "aria-label": `Copy the id ${drawer.id}`, title: "Copy the id", onclick: () => copied(drawer.id, "The id is copied") }, drawer.id, icon("copy"));
  const bar = h("div", { class: "drawer-bar" }, status, id, h("span", { class: "drawer-space" }),
    h("button", { type: "button", class: "icon-button", "aria-label": "Copy the link", title: "Copy the link", onclick: () => copied(new URL(here({ task: drawer.id }), location.href).href, "The link is copied") }, icon("link")),
    h("button", { type: "button", class: "icon-button", "aria-label": "Close the task", title: "Close (Esc)", onclick: drawer.close }, icon("close")));
  const title = editable({
    label: "Title", name: "title", task: drawer.id, kind: "lines", empty: "no title", button: "editable-value drawer-title",
    save: (text) => drawer.act("edit", { task_id: drawer.id, title: text }),
  });
  const why = h("div", { class: "drawer-why" });
  const heading = h("h2", { class: "drawer-heading", id: "drawer-heading" }, title.element);
  const paint = whenChanged(
    // What needs a person says below what it waits for.
    (shown) => [shown.task.status, need(shown) ? null : shown.why, shown.task.status === "blocked" ? shown.task.block_reason : null],
    ([now, waits, blocked]) => {
      put(status, statusWord(now));
      put(why, waits ? [h("span", { class: "drawer-why-word" }, now === "blocked" ? "Blocked" : "Why"), h("p", null, ...withCode(reason(waits, blocked)))] : null);
      why.hidden = !waits;
    },
  );
  return {
    bar,
    element: h("div", { class: "drawer-top" }, heading, why),
    update: (shown) => {
      title.update(shown.task.title);
      paint(shown);
    },
  };
}

/** @param {string} what @param {string} announcement */
async function copied(what, announcement) {
  announce(await copy(what) ? announcement : "The browser did not allow copying");
}
