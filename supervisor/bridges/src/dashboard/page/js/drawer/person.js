// What a task needs of a person: an answer, an approval, a review, or a look at why it gave up.
import { seen } from "../diff/hidden.js";
import { h } from "../dom.js";
import { link } from "../route.js";
import { form } from "./form.js";
import { refusal } from "./refusal.js";
import { whenChanged } from "./section.js";

/** Returns what a person is to do now, or null. @param {any} shown */
export function need(shown) {
  const { status, block_kind: kind, question } = shown.task;
  if (status === "review") return "review";
  if (status !== "blocked") return null;
  if (kind === "approval" || shown.why?.code === "approval") return "approval";
  if (question) return "question";
  return kind === "gave_up" ? "gave_up" : null;
}

/** Returns the part above all others that says what is needed and does it. @param {import("./drawer.js").Desk} drawer */
export function person(drawer) {
  const element = h("section", { class: "drawer-need", "aria-label": "Needs a person", hidden: true });
  const update = whenChanged(
    // Only what is shown: what is being typed into the part stays.
    (shown) => {
      const { question, block_reason: reason, approver, approval_class: of, reviewer, work_by: worker, last_failure_error: failure } = shown.task;
      const asks = need(shown);
      const facts = {
        question: [question], approval: [question, reason, approver, of], review: [reviewer, worker, shown.latest_summary], gave_up: [failure, reason],
      }[asks];
      return { need: asks, facts };
    },
    (asked, shown) => {
      element.hidden = !asked.need;
      element.className = `drawer-need is-${asked.need}`;
      const paint = { question: answer, approval, review, gave_up: gaveUp }[asked.need];
      element.replaceChildren(...(paint ? paint(drawer, shown) : []));
    },
  );
  return { element, update };
}

/** @param {import("./drawer.js").Desk} drawer @param {any} shown @returns {(Node | string)[]} */
function answer(drawer, shown) {
  const { question } = shown.task;
  const choices = question.choices ?? [];
  const refused = refusal();
  const send = (text) => drawer.act("answer", { task_id: drawer.id, answer: text });
  const buttons = choices.map((choice, at) => h("button", {
    type: "button", class: "button drawer-choice", onclick: async () => {
      busy(buttons, true);
      refused.clear();
      try {
        // The words of the choice, so that another question that was asked meanwhile refuses them. A number would be read as one.
        await send(/^\s*[+-]?\d+\s*$/.test(choice) ? String(at + 1) : choice);
      } catch (problem) {
        refused.show(problem);
      } finally {
        busy(buttons, false);
      }
    },
  }, h("span", { class: "drawer-choice-number", "aria-hidden": "true" }, String(at + 1)), h("span", null, seen(choice))));
  const free = choices.length === 0 || question.free_text;
  return [
    h("h3", null, "Question"),
    h("p", { class: "drawer-question" }, written(question.text)),
    choices.length ? h("div", { class: "drawer-choices", role: "group", "aria-label": "Answers" }, ...buttons) : "",
    refused.element,
    free ? form(drawer.id, "answer", { label: "Answer", ask: choices.length ? "Another answer" : "Your answer", required: true }, send).element : "",
  ];
}

/** @param {import("./drawer.js").Desk} drawer @param {any} shown @returns {(Node | string)[]} */
function approval(drawer, shown) {
  const { question, approver, approval_class: of, block_reason: reason } = shown.task;
  const refused = refusal();
  const approve = (more) => async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    refused.clear();
    try {
      await drawer.act("approve", { task_id: drawer.id, ...more });
    } catch (problem) {
      const offer = approver && problem.code && !("override_approver" in more)
        ? [h("button", { type: "button", class: "button", onclick: approve({ override_approver: true }) }, `Approve in place of ${approver}`)]
        : [];
      refused.show(problem, ...offer);
    } finally {
      button.disabled = false;
    }
  };
  const place = h("div", null);
  const deny = form(drawer.id, "deny", { label: "Deny", ask: "Why not", placeholder: "Why not. The worker reads it.", destructive: true },
    (text) => drawer.act("deny", { task_ids: [drawer.id], reason: text || null }), () => {
      place.replaceChildren();
      open.focus();
    });
  const open = h("button", {
    type: "button", class: "button drawer-careful", onclick: () => {
      place.replaceChildren(deny.element);
      deny.focus();
    },
  }, "Deny…");
  const facts = [of ? `class ${of}` : "", approver ? `approver ${approver}` : ""].filter(Boolean).join(" · ");
  return [
    h("h3", null, "Approval"),
    h("p", { class: "drawer-question" }, written(question?.text ?? reason ?? "It waits for approval.")),
    facts ? h("p", { class: "drawer-hint" }, facts) : "",
    h("div", { class: "drawer-actions" }, h("button", { type: "button", class: "button primary", onclick: approve({}) }, "Approve"), open),
    refused.element,
    place,
  ];
}

/** @param {import("./drawer.js").Desk} drawer @param {any} shown @returns {(Node | string)[]} */
function review(drawer, shown) {
  const { reviewer, work_by: worker } = shown.task;
  const place = h("div", null);
  const close = (button) => () => {
    place.replaceChildren();
    button.focus();
  };
  /** @type {(made: any) => () => void} */
  const opens = (made) => () => {
    place.replaceChildren(made.element);
    made.focus();
  };
  const approved = h("button", { type: "button", class: "button primary" }, "Approve…");
  const changes = h("button", { type: "button", class: "button" }, "Request changes…");
  approved.addEventListener("click", opens(form(drawer.id, "approve", { label: "Approve the work", ask: "Comment (optional)", about: "The task is then done." },
    (text) => drawer.act("approve", { task_id: drawer.id, comment: text || null }), close(approved))));
  changes.addEventListener("click", opens(form(drawer.id, "changes", { label: "Request changes", ask: "What has to change", required: true },
    (text) => drawer.act("request-changes", { task_id: drawer.id, reason: text }), close(changes))));
  return [
    h("h3", null, "Review"),
    h("p", { class: "drawer-question" }, `${worker ? `The work of ${worker.replace(/^\w+:/, "")} waits` : "The work waits"} for ${reviewer ?? "a person"} to look at it.`),
    shown.latest_summary ? h("p", { class: "drawer-hint drawer-wrap" }, shown.latest_summary) : "",
    h("div", { class: "drawer-actions" }, h("a", { class: "button", href: link(`/review/${drawer.id}`) }, "Open the diff"), approved, changes),
    place,
  ];
}

/** @param {import("./drawer.js").Desk} drawer @param {any} shown @returns {(Node | string)[]} */
function gaveUp(drawer, shown) {
  const { last_failure_error: failure, consecutive_failures: times, block_reason: reason } = shown.task;
  return [
    h("h3", null, "It gave up"),
    h("p", { class: "drawer-question" }, times === 1 ? "It failed, and is not tried again." : `It failed ${times || "several"} times in a row, and is not tried again.`),
    h("pre", { class: "drawer-error" }, failure ?? reason ?? ""),
    h("div", { class: "drawer-actions" }, h("button", { type: "button", class: "button primary", onclick: () => drawer.offer("retry") }, "Retry…")),
  ];
}

/** A question with its lines; characters that are hidden or turn the text round are shown, because a person decides by it. @param {string} text */
function written(text) {
  return text.split("\n").flatMap((line, at) => [at ? "\n" : "", ...seen(line)]);
}

/** @param {any[]} buttons @param {boolean} is */
function busy(buttons, is) {
  for (const button of buttons) button.disabled = is;
}
