// The bar of a review: the comments that are written so far, what else is said, and both decisions.

import { verb } from "../api.js";
import { h, put, text } from "../dom.js";
import { ask } from "../parts/ask.js";
import { counted } from "../parts/words.js";
import { link } from "../route.js";
import { problem, toast } from "../toast.js";
import { named } from "./drafts.js";

/**
 * @param {import("./drafts.js").Drafts} drafts
 * @param {{task: () => any, go: (comment: import("./drafts.js").Comment) => void, decided: () => void}} of
 */
export function verdictBar(drafts, { task, go, decided }) {
  const field = /** @type {HTMLTextAreaElement} */ (h("textarea", { class: "textarea", rows: "1", "aria-label": "Comment, or what has to change", placeholder: "Comment, or what has to change", oninput: () => drafts.say(field.value) }));
  field.value = drafts.reason;
  const approve = h("button", { type: "button", class: "button primary", onclick: () => accept().catch(problem) }, "Approve");
  const send = h("button", { type: "button", class: "button", onclick: () => sendBack().catch(problem) }, "Request changes");
  const list = h("ul", { class: "verdict-comments" });
  const written = h("details", { class: "verdict-written", hidden: true }, h("summary", null, ""), list);
  const why = h("p", null, "");
  const over = h("div", { class: "verdict-over", hidden: true }, why, h("a", { class: "button", href: link("/board") }, "Back to the board"));
  const row = h("div", { class: "verdict-row", hidden: true }, field, send, approve);
  const element = h("section", { class: "verdict", "aria-label": "Decision" }, written, over, row);

  async function accept() {
    if (task()?.status !== "review") return;
    const { id, title } = task();
    const left = drafts.comments.length;
    const done = await ask({
      title: `Approve “${title}”?`,
      text: left > 0 ? `${counted(left, "comment")} on lines would not be sent: they are dropped.` : "",
      action: "Approve",
      act: async () => {
        await verb("approve", { task_id: id, comment: field.value.trim() || null });
        return true;
      },
    });
    if (done) finish("Approved");
  }

  async function sendBack() {
    if (task()?.status !== "review") return;
    const { id } = task();
    const reason = field.value.trim();
    const { comments } = drafts;
    if (reason === "" && comments.length === 0) {
      field.focus();
      toast("Say what has to change, here or on a line", { kind: "info" });
      return;
    }
    const buttons = [send, approve];
    for (const button of buttons) button.setAttribute("disabled", "");
    try {
      await verb("request-changes", { task_id: id, reason: reason || null, ...(comments.length > 0 ? { comments } : {}) });
      finish("Sent back for changes");
    } finally {
      for (const button of buttons) button.removeAttribute("disabled");
    }
  }

  /** @param {string} message */
  function finish(message) {
    drafts.clear();
    field.value = "";
    toast(message);
    decided();
  }

  return {
    element,
    accept,
    sendBack,
    focus: () => field.focus(),
    update() {
      const { comments } = drafts;
      written.hidden = comments.length === 0;
      text(/** @type {Element} */ (written.firstElementChild), `${counted(comments.length, "comment")} on lines, not sent yet`);
      put(list, comments.map((comment) => h("li", null, h("button", { type: "button", class: "link", onclick: () => go(comment) }, named(comment)), " ", comment.text)));
      const status = task()?.status;
      const isAsked = status === "review";
      over.hidden = !status || isAsked;
      row.hidden = !isAsked;
      const kept = comments.length > 0 ? " Comments are kept in this tab." : "";
      text(why, status ? `This task is ${status}. There is nothing to review.${kept}` : "");
    },
  };
}
