// The thread of a task: the latest comments, older ones on demand, and a place to write the next one.
import { call } from "../api.js";
import { h } from "../dom.js";
import { markdown } from "../markdown.js";
import { later } from "../parts/later.js";
import { problem as failed, toast } from "../toast.js";
import { draft, keepDraft } from "./drafts.js";
import { refusal } from "./refusal.js";
import { folded, keyed, section, since, some } from "./section.js";
import { commentsBefore } from "./server.js";

/** How many comments are shown at first; twice as many more at each demand. */
export const FIRST_COMMENTS = 20;

/** Returns the thread. @param {import("./drawer.js").Desk} drawer */
export function comments(drawer) {
  const part = section("Comments");
  const older = h("button", { type: "button", class: "drawer-older", hidden: true, onclick: () => showOlder() }, "Show older comments");
  const list = h("ol", { class: "comments" });
  const paint = keyed(list, (entry) => entry.key, (entry) => entryElement(drawer, entry));
  const writer = composer(drawer);
  part.body.append(older, list, writer.element);
  /** @type {Map<number, any>} */
  const known = new Map();
  /** @type {any[]} */
  let messages = [];
  let limit = FIRST_COMMENTS;
  let more = false;
  let first = Infinity;

  const show = () => {
    const all = [...known.values()].sort((a, b) => a.id - b.id);
    const sent = messages.filter((message) => !message.comment_id);
    const entries = [
      ...all.slice(-limit).map((comment) => ({ ...comment, key: `c${comment.id}` })),
      ...sent.map((message) => ({ ...message, key: `m${message.run_id}-${message.number}`, message: true })),
    ].sort((a, b) => a.created_at - b.created_at);
    paint(entries);
    const left = all.length - limit;
    older.hidden = left <= 0 && !more;
    older.textContent = left > 0 && !more ? `Show ${some(left, 2 * FIRST_COMMENTS)} older comments` : "Show older comments";
    part.count(more ? `${all.length}+` : all.length + sent.length);
  };
  const showOlder = async () => {
    limit += 2 * FIRST_COMMENTS;
    if (limit > known.size && more) {
      older.disabled = true;
      try {
        const page = await commentsBefore(drawer.id, first);
        for (const comment of page.comments) known.set(comment.id, comment);
        more = page.more;
        first = Math.min(first, ...page.comments.map((comment) => comment.id));
      } catch (problem) {
        limit -= 2 * FIRST_COMMENTS;
        failed(problem);
      }
      older.disabled = false;
    }
    const top = list.firstElementChild;
    const before = top?.getBoundingClientRect().top ?? 0;
    show();
    // What was being read stays where it was.
    if (top) drawer.scroller.scrollTop += top.getBoundingClientRect().top - before;
    if (older.hidden) list.querySelector("li")?.focus();
  };
  return {
    element: part.element,
    update: (shown) => {
      for (const comment of shown.comments) known.set(comment.id, comment);
      messages = shown.messages ?? [];
      const oldest = Math.min(...shown.comments.map((comment) => comment.id));
      if (oldest < first) {
        first = oldest;
        more = (shown.more ?? []).includes("comments");
      }
      show();
    },
    focus: writer.focus,
  };
}

const STATES = { queued: "not read yet", delivered: "read by the agent", written: "written to the agent", not_delivered: "not delivered" };

/** @param {import("./drawer.js").Desk} drawer @param {any} entry */
function entryElement(drawer, entry) {
  const isPerson = entry.author_kind === "person" || entry.message;
  return h("li", { class: `comment${entry.message ? " is-message" : ""}`, tabindex: "-1" },
    h("span", { class: `avatar${isPerson ? "" : " is-worker"}`, "aria-hidden": "true" }, [...(entry.author || "?")][0]),
    h("div", { class: "comment-head" },
      h("strong", null, entry.author ?? "unknown"),
      isPerson ? "" : h("span", { class: "comment-kind" }, entry.author_kind ?? ""),
      entry.message ? h("span", { class: "comment-kind" }, `to the agent of run ${entry.run_id}: ${STATES[entry.state] ?? entry.state}`) : "",
      since(entry.created_at)),
    h("div", { class: "comment-body" }, folded(markdown(entry.body, { plain: !drawer.context.config.render_markdown }), entry.body)));
}

/** The place to write: Enter sends, Shift+Enter is a new line, @ completes a profile. @param {import("./drawer.js").Desk} drawer */
function composer(drawer) {
  const refused = refusal();
  const input = h("textarea", {
    class: "drawer-input", rows: "1", "aria-label": "Write a comment", placeholder: "Write a comment. @ mentions a profile", "aria-describedby": "comment-keys",
  });
  const button = h("button", { type: "submit", class: "button primary" }, "Comment");
  const grow = () => {
    input.style.height = "auto";
    input.style.height = `${Math.min(input.scrollHeight + 2, 320)}px`;
  };
  const line = h("div", { class: "editable-input" }, input);
  input.addEventListener("focus", async () => {
    const { mentions } = await later(import("./mention.js"));
    line.append(mentions(input).element);
    // What was typed meanwhile may have begun a name.
    input.dispatchEvent(new Event("input"));
  }, { once: true });
  const element = h("form", { class: "composer" }, line, refused.element,
    h("div", { class: "drawer-actions" }, button, h("span", { class: "drawer-hint", id: "comment-keys" }, "Enter sends, Shift+Enter is a new line")));
  let sending = false;
  input.value = draft(drawer.id, "comment") ?? "";
  input.addEventListener("input", () => {
    keepDraft(drawer.id, "comment", input.value);
    grow();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    element.requestSubmit();
  });
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (!text || sending) return;
    sending = true;
    button.disabled = true;
    refused.clear();
    try {
      const made = await call("POST", `/tasks/${drawer.id}/comments`, { body: { body: text } });
      // What was typed while it was sent stays.
      input.value = input.value.trim() === text ? "" : input.value;
      keepDraft(drawer.id, "comment", input.value);
      grow();
      for (const mention of made.mentioned ?? []) toast(`${mention.profile} is mentioned: ${mention.task ?? ""}`);
      await drawer.reload();
    } catch (problem) {
      refused.show(problem);
    } finally {
      sending = false;
      button.disabled = false;
    }
  });
  queueMicrotask(grow);
  return { element, focus: () => input.focus() };
}
