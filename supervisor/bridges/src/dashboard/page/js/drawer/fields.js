// The rows of a task: who does it, how urgent, whose, where, with which limits. Each is edited in place.
import { h } from "../dom.js";
import { duration, stamp } from "../time.js";
import { link } from "../route.js";
import * as session from "../session.js";
import { editable } from "./edit.js";
import { since } from "./section.js";
import { names } from "./server.js";

/** Returns the rows. @param {import("./drawer.js").Desk} drawer */
export function fields(drawer) {
  const task = drawer.id;
  const edit = (key, parse = (text) => text) =>
    async (text) => drawer.act("edit", { task_id: task, [key]: parse(text) });
  const row = (of) => editable({ task, kind: "line", ...of });
  const named = (of) => (begins) => names(of, begins);
  const assignee = row({
    label: "Assignee", name: "assignee", empty: "nobody", help: "A lane, such as shell, or a profile", suggestions: async (begins) => {
      const found = await names("assignee", begins);
      return begins ? found : [...found, { value: "none", label: "nobody", about: "unassign" }];
    },
    save: (text) => drawer.act("assign", { task_id: task, profile: text || "none" }),
    offers: (problem, again) => reassign(drawer, problem, again, assignee),
  });
  const rows = {
    assignee,
    priority: row({ label: "Priority", name: "priority", kind: "number", save: edit("priority", number), help: "Higher goes first" }),
    tenant: row({ label: "Tenant", name: "tenant", help: "Whose task it is", suggestions: named("tenant"), save: edit("tenant") }),
    workspace: row({ label: "Workspace", name: "workspace", save: edit("workspace"), display: code, help: "scratch, dir:/path or worktree:/repository" }),
    policy: row({ label: "Policy", name: "policy", empty: "default of the configuration", help: "What its worker may touch", suggestions: named("policy"), save: edit("policy") }),
    check: row({ label: "Check", name: "check", save: edit("check"), display: code, help: "A command that proves the work done" }),
    max_checks: row({ label: "Check limit", name: "max_checks", kind: "number", empty: "default", save: edit("max_checks", number), help: "Failed checks in a row until it is blocked" }),
    commit: row({ label: "Commit", name: "commit", empty: "default of the lane", save: edit("commit"), help: "Changes left uncommitted in a worktree: auto, require or no" }),
    skills: row({ label: "Skills", name: "skills", save: edit("skills", words), help: "Separated by commas" }),
    pools: row({
      label: "Pools", name: "pools", help: "Separated by commas",
      save: (text) => drawer.act("edit", { task_id: task, clear_pools: true, pools: words(text) }),
    }),
  };
  const line = (label, value) => h("div", { class: "drawer-row" }, h("dt", null, label), h("dd", null, value));
  const fixed = h("dl", { class: "drawer-rows is-fixed" });
  const main = h("dl", { class: "drawer-rows" },
    line("Assignee", rows.assignee.element), line("Priority", rows.priority.element), line("Tenant", rows.tenant.element), line("Workspace", rows.workspace.element));
  const limits = h("dl", { class: "drawer-rows" },
    line("Policy", rows.policy.element),
    line("Check", rows.check.element), line("Check limit", rows.max_checks.element), line("Commit", rows.commit.element), line("Skills", rows.skills.element), line("Pools", rows.pools.element));
  /** The rows of the plain fields, by their names in the record. @type {Map<string, {of: session.Field, row: ReturnType<typeof row>}>} */
  const plain = new Map();
  /** @type {any} */
  let latest = null;
  void session.fields.then((all) => {
    for (const of of all) {
      const isNumber = of.kind === "number" || of.kind === "amount";
      plain.set(of.name, { of, row: row({
        label: of.label, name: of.request, help: of.note, kind: isNumber ? "number" : "line", empty: of.kind === "word" ? "none" : "default",
        save: isNumber ? edit(of.request, number) : edit(of.request),
      }) });
    }
    limits.prepend(...[...plain.values()].map((one) => line(one.of.label, one.row.element)));
    if (latest) updatePlain(latest);
  });
  const updatePlain = (shown) => {
    for (const [name, { of, row }] of plain) {
      const value = shown.task[name] ?? null;
      if (of.kind === "span") row.update(value === null ? null : written(value), of.request === "max_runtime" ? limit(shown) : "none");
      else row.update(value);
    }
  };
  const brief = h("span", { class: "drawer-brief" });
  const element = h("div", { class: "drawer-fields" }, main,
    h("details", { class: "drawer-more" }, h("summary", null, "Limits and details", brief), limits, fixed));
  return {
    element,
    update: (shown) => {
      const of = shown.task;
      latest = shown;
      updatePlain(shown);
      rows.assignee.update(of.assignee);
      rows.priority.update(of.priority);
      rows.tenant.update(of.tenant);
      rows.workspace.update(of.workspace);
      rows.policy.update(of.policy);
      rows.check.update(of.check);
      rows.max_checks.update(of.max_checks);
      rows.commit.update(of.commit);
      rows.skills.update((of.skills ?? []).join(", "));
      rows.pools.update((of.pools ?? []).join(", "));
      brief.textContent = shown.time_limit ? `up to ${duration(shown.time_limit.seconds)} a run` : "";
      fixed.replaceChildren(...facts(shown).map(([label, value]) => line(label, typeof value === "string" ? h("span", null, value) : value)));
    },
  };
}

/** What of a task nobody edits here. @param {any} shown */
function facts(shown) {
  const of = shown.task;
  /** @type {[string, string | Node][]} */
  const rows = [];
  const add = (label, value) => { if (value) rows.push([label, value]); };
  const when = (at) => at && since(at);
  add("Created", when(of.created_at));
  add("By", of.created_by);
  add("Started", when(of.started_at));
  add("Completed", when(of.completed_at));
  add("Not before", of.not_before && stamp(of.not_before));
  add("Mission", of.mission && h("a", { href: link(`/missions/${of.mission}`) }, of.mission));
  add("Project", of.project_id);
  add("Branch", of.branch_name && code(of.branch_name));
  add("Merge", of.branch_note);
  add("Directory", of.workspace_path && code(of.workspace_path));
  add("Reviewer", of.reviewer);
  add("Approver", of.approver);
  add("Goal", of.goal_mode && `turn by turn${of.goal_max_turns ? `, up to ${of.goal_max_turns}` : ""}`);
  add("Step", of.current_step_key);
  add("Model", of.model_override);
  add("Failures in a row", of.consecutive_failures ? String(of.consecutive_failures) : "");
  add("Last failure", of.last_failure_error);
  add("Notes for the next run", of.notes);
  return rows;
}

/** A worker that lives may be ended first. @param {import("./drawer.js").Desk} drawer @param {any} problem @param {any} again @param {any} row */
function reassign(drawer, problem, again, row) {
  if (problem.code !== "conflict" || drawer.shown()?.task.status !== "running" || !drawer.may("reassign")) return [];
  const typed = row.element.querySelector("input")?.value.trim() || "none";
  return [h("button", {
    type: "button", class: "button danger",
    onclick: () => again(() => drawer.act("reassign", { task_id: drawer.id, profile: typed, reclaim: true })),
  }, "End its run and reassign")];
}

/** @param {any} shown */
function limit(shown) {
  return shown.time_limit ? `${duration(shown.time_limit.seconds)} (${shown.time_limit.from})` : "none";
}

/** A number of seconds as `edit` reads it. @param {number} seconds */
function written(seconds) {
  const unit = [[86400, "d"], [3600, "h"], [60, "m"]].find(([length]) => seconds && seconds % Number(length) === 0);
  return unit ? `${seconds / Number(unit[0])}${unit[1]}` : `${seconds}s`;
}

/** @param {string} text */
function code(text) {
  return h("code", null, text);
}

/** @param {string} text */
function number(text) {
  if (!/^-?\d{1,15}$/.test(text)) throw new Error(`"${text}" is not a whole number.`);
  return Number(text);
}

/** @param {string} text */
function words(text) {
  return text.split(",").map((word) => word.trim()).filter(Boolean);
}
