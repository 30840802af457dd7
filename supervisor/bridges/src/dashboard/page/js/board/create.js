// The form that makes a task in a column. It stays open for the next one.

import { call, verb } from "../api.js";
import { h, icon, put, withCode } from "../dom.js";
import { problem, toast } from "../toast.js";
import { choices } from "./ondemand.js";
import { COLUMN } from "./statuses.js";

let serial = 0;

/** What the body of the request says of the column. @param {string} status @param {string} when */
function ofColumn(status, when) {
  if (status === "triage") return { triage: true };
  if (status === "blocked") return { initial_status: "blocked" };
  if (status === "scheduled") return { not_before: when };
  return {};
}

/** Asks whose a task is. @param {string} id */
async function assign(id) {
  const assignee = await (await choices()).assignee(`Assign ${id}`);
  if (!assignee) return;
  await call("PATCH", `/tasks/${id}`, { body: { assignee } });
  toast(`Assigned to ${assignee}`);
}

/**
 * Returns a form for a column.
 * @param {{status: string, tenant: string, assignees: Iterable<string>, close: () => void, made: (id: string) => void}} of
 */
export function form({ status, tenant, assignees, close, made }) {
  serial += 1;
  const id = (name) => `create-${serial}-${name}`;
  /** @type {Map<string, string>} */
  const parents = new Map();
  const title = h("textarea", { class: "textarea create-title", rows: 2, maxlength: 500, required: true, "aria-label": `Title of a new task in ${COLUMN[status].word}`, placeholder: "What is to be done", dir: "auto" });
  const details = h("textarea", { class: "textarea create-body", id: id("body"), rows: 2, dir: "auto", placeholder: "the prompt or the script" });
  const who = h("input", { class: "input", id: id("assignee"), list: id("names"), autocomplete: "off", spellcheck: "false", placeholder: "nobody" });
  const priority = h("input", { class: "input", id: id("priority"), type: "number", step: 1, value: "0" });
  const skills = h("input", { class: "input", id: id("skills"), autocomplete: "off", spellcheck: "false", placeholder: "none" });
  const workspace = h("input", { class: "input", id: id("workspace"), list: id("places"), autocomplete: "off", spellcheck: "false", placeholder: "scratch" });
  const when = status === "scheduled" ? h("input", { class: "input", id: id("when"), required: true, autocomplete: "off", placeholder: "2h, tomorrow 09:00" }) : null;
  const chips = h("span", { class: "create-parents" });
  const wrong = h("p", { class: "field-error", role: "alert", hidden: true });
  const send = h("button", { type: "submit", class: "button primary small" }, "Create");
  const field = (name, label, input, hint) => {
    if (hint) input.setAttribute("aria-describedby", id(`${name}-hint`));
    return h("div", { class: "field" }, h("label", { for: id(name) }, label), input, hint ? h("p", { class: "field-hint", id: id(`${name}-hint`) }, withCode(hint)) : null);
  };
  const people = h("datalist", { id: id("names") });
  const offer = (names) => put(people, [...new Set(names)].sort().map((name) => h("option", { value: name })));
  offer(assignees);
  // Lanes and profiles to which no task belongs so far.
  verb("names", { of: "assignee", begins: "" }).then((found) => offer([...assignees, ...found.names.map((one) => one.name)]), () => { /* those of the board are offered */ });

  const drawParents = () => put(chips, [...parents].map(([parent, words]) => h("span", { class: "chip", title: parent }, h("span", { class: "cut", dir: "auto" }, words),
    h("button", { type: "button", class: "icon-button small", "aria-label": `Remove the parent ${words}`, onclick: () => { parents.delete(parent); drawParents(); } }, icon("close")))),
    h("button", { type: "button", class: "button small quiet", onclick: async () => {
      const chosen = await (await choices()).task("Parent: a task that has to be done first", new Set(parents.keys()));
      if (chosen) { parents.set(chosen.id, chosen.title); drawParents(); }
      title.focus();
    } }, icon("plus"), "Parent"));
  drawParents();

  const submit = async () => {
    const text = title.value.replace(/\s+/g, " ").trim();
    if (!text || send.disabled) return;
    send.disabled = true;
    wrong.hidden = true;
    try {
      const body = { title: text, ...ofColumn(status, when?.value.trim()), parents: [...parents.keys()], skills: skills.value.split(",").map((skill) => skill.trim()).filter(Boolean), priority: Number(priority.value) || 0 };
      if (details.value.trim()) body.body = details.value;
      if (who.value.trim()) body.assignee = who.value.trim();
      if (workspace.value.trim()) body.workspace = workspace.value.trim();
      if (tenant && !parents.size) body.tenant = tenant;
      const created = await call("POST", "/tasks", { body });
      made(created.id);
      title.value = "";
      details.value = "";
      const to = created.status && created.status !== status ? ` It is ${COLUMN[created.status]?.word.toLowerCase() ?? created.status}.` : "";
      toast(`Created ${created.id}.${to}`, { hint: (created.warnings ?? []).join("\n"), action: created.assignee || status === "triage" ? undefined : { label: "Assign", run: () => { assign(created.id).catch(problem); } } });
      title.focus();
    } catch (error) {
      // What was typed stays, with the daemon's words beside it.
      if (error?.detail) { put(wrong, withCode([error.detail, error.hint].filter(Boolean).join(". "))); wrong.hidden = false; title.focus(); } else problem(error);
    } finally { send.disabled = false; }
  };
  const element = h("form", { class: "create", onsubmit: (event) => { event.preventDefault(); submit(); }, onkeydown: (event) => {
    if (event.key === "Escape") { event.stopPropagation(); event.preventDefault(); close(); }
    if (event.key === "Enter" && !event.shiftKey && (event.target === title || event.ctrlKey || event.metaKey) && !event.isComposing) { event.preventDefault(); element.requestSubmit(); }
  } },
    title,
    when ? field("when", "Starts at", when, "`2h`, `tomorrow 09:00` or `2026-12-24 09:00`") : null,
    field("assignee", "Assignee", who, "A lane, such as `shell`, or a profile. Without one it waits."),
    field("body", "Description", details, "What the worker gets: Markdown, or for `shell` the script."),
    h("div", { class: "field" }, chips, h("p", { class: "field-hint" }, "It starts when its parents are done.")),
    field("priority", "Priority", priority, "Higher priorities start first."),
    field("workspace", "Workspace", workspace, "`scratch`: an empty directory. `dir:/path`: that one. `worktree:/repository`: a branch of its own."),
    field("skills", "Skills", skills, "What the agent loads, separated by commas."),
    people, h("datalist", { id: id("places") }, ["scratch", "dir:/", "worktree:/"].map((value) => h("option", { value }))),
    wrong,
    h("div", { class: "create-actions" }, h("button", { type: "button", class: "button small quiet", onclick: close }, "Cancel"), send));
  return { element, focus: () => title.focus() };
}
