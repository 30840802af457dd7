// The text of a task and its result, in Markdown, each edited in place.
import { h } from "../dom.js";
import { markdown } from "../markdown.js";
import { editable } from "./edit.js";
import { folded, section, whenChanged } from "./section.js";

/** Returns the description. @param {import("./drawer.js").Desk} drawer */
export function description(drawer) {
  return text(drawer, "Description", "body", (shown) => shown.task.body, "No description. Add one.", () => true);
}

/** Returns the result, where there is one or the task is done. @param {import("./drawer.js").Desk} drawer */
export function result(drawer) {
  return text(drawer, "Result", "result", (shown) => shown.task.result, "No result. Add one.",
    (shown) => Boolean(shown.task.result) || shown.task.status === "done");
}

/** Returns what the last run handed over, where it is not the result itself. @param {import("./drawer.js").Desk} drawer */
export function summary(drawer) {
  const part = section("Summary");
  const update = whenChanged(
    (shown) => [shown.latest_summary === shown.task.result ? null : shown.latest_summary, drawer.context.config.render_markdown],
    ([bodyText, rendered]) => {
      part.element.hidden = !bodyText;
      part.body.replaceChildren(bodyText ? folded(markdown(bodyText, { plain: !rendered }), bodyText) : "");
    },
  );
  return { element: part.element, update };
}

/**
 * @param {import("./drawer.js").Desk} drawer @param {string} label @param {string} field @param {(shown: any) => string | null} pick @param {string} empty
 * @param {(shown: any) => boolean} isShown
 */
function text(drawer, label, field, pick, empty, isShown) {
  const edit = h("button", { type: "button", class: "button quiet small", onclick: () => value.edit() }, "Edit");
  edit.setAttribute("aria-label", `Edit: ${label}`);
  const part = section(label, { actions: [edit] });
  const value = editable({
    label, name: field, task: drawer.id, kind: "text", empty, rich: true,
    // The body of a task of the shell is a script.
    display: (written) => {
      if (field !== "body" || drawer.shown()?.task.assignee !== "shell") return folded(markdown(written, { plain: !drawer.context.config.render_markdown }), written);
      const script = markdown(written, { plain: true });
      script.classList.add("is-script");
      return script;
    },
    save: (written) => drawer.act("edit", { task_id: drawer.id, [field]: written }),
  });
  part.body.append(value.element);
  return {
    element: part.element,
    edit: value.edit,
    update: (shown) => {
      part.element.hidden = !isShown(shown);
      value.update(pick(shown));
    },
  };
}
