// The page of a review: what a run has changed, its check, comments on lines, and the decision; or two tasks beside each other.

import { verb } from "../api.js";
import { h, put, text, withCode } from "../dom.js";
import { pageKeys } from "../parts/pagekeys.js";
import * as live from "../live.js";
import { here, link, set } from "../route.js";
import { problem } from "../toast.js";
import { checkOutput } from "../diff/check.js";
import { Drafts } from "../diff/drafts.js";
import { counts, fileView, statusOf } from "../diff/file.js";
import { totals } from "../diff/model.js";
import { plainText } from "../log/ansi.js";
import { siblings } from "../diff/siblings.js";
import { verdictBar } from "../diff/verdict.js";
import { restate, state } from "../parts/state.js";
import { waiting } from "../parts/waiting.js";
import { soon } from "../parts/soon.js";
import { counted } from "../parts/words.js";
import { seen } from "../diff/hidden.js";

const MODE = "supervisor.diff";

/** How the lines stand: as chosen before, else in two columns where there is room. @returns {"unified" | "split"} */
function chosenMode() {
  try {
    const kept = localStorage.getItem(MODE);
    if (kept === "unified" || kept === "split") return kept;
  } catch {
    // Without storage nothing was chosen before.
  }
  return "unified";
}

/** @param {HTMLElement} main */
export function mount(main) {
  let mode = chosenMode();
  /** @type {{task: string, run: string | undefined, other: string | undefined} | null} */
  let shown = null;
  /** @type {any} */
  let details = null;
  /** @type {ReturnType<typeof fileView>[]} */
  let views = [];
  let at = -1;
  /** How the runs stand now, and how they stood when the changes were read. */
  let standing = "";
  let read = "";
  /** Whether the changes could not be read. */
  let isUnread = false;
  /** @type {Drafts} */
  let drafts;
  /** @type {ReturnType<typeof verdictBar>} */
  let bar;

  const title = h("h1", null, "Review");
  const status = state("todo", "…");
  status.hidden = true;
  const id = h("a", { class: "id", hidden: true });
  const sum = h("span", { class: "muted number" });
  const runs = h("select", { class: "select", "aria-label": "Run", hidden: true, onchange: () => set({ run: runs.value || null }) });
  const others = h("select", { class: "select", "aria-label": "Compare with", hidden: true, onchange: () => set({ with: others.value || null }) });
  const modes = h("div", { class: "segments", role: "group", "aria-label": "View" },
    ["unified", "split"].map((name) => h("button", { type: "button", class: "button small", dataset: { mode: name }, onclick: () => setMode(/** @type {any} */ (name)) }, name === "unified" ? "One column" : "Side by side")));
  const again = h("button", { type: "button", class: "button small", hidden: true, onclick: () => readDiff(Promise.resolve()) }, "Show the new changes");
  const goesOn = h("span", { class: "chip", dataset: { kind: "warn" }, hidden: true }, "the work goes on");
  const fold = h("button", { type: "button", class: "button quiet small", onclick: () => foldAll() }, "Close all files");
  const summaryPart = h("div", { class: "review-said" });
  const list = h("nav", { class: "diff-list", "aria-label": "Files" });
  const files = h("div", { class: "diff-files" });
  const foot = h("div", { class: "review-foot" });
  const page = h("div", { class: "page review-page" },
    h("div", { class: "page-head" }, title, status, id, sum, goesOn, again, h("span", { class: "push" }), runs, others, fold, modes), summaryPart,
    h("div", { class: "review-body" }, list, files), foot);
  const reveal = waiting(page);
  put(main, page);
  // Messages are shown above the buttons of the decision.
  const footing = new ResizeObserver(() => document.body.style.setProperty("--foot-height", `${foot.offsetHeight}px`));
  footing.observe(foot);

  const observer = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting) continue;
      for (const view of views) if (view.element === target) view.build();
    }
  }, { root: main, rootMargin: "800px 0px" });

  /** @param {"unified" | "split"} value */
  function setMode(value) {
    mode = value;
    try {
      localStorage.setItem(MODE, value);
    } catch {
      // It is chosen for this page then.
    }
    for (const button of modes.children) button.setAttribute("aria-pressed", String(/** @type {HTMLElement} */ (button).dataset.mode === value));
    for (const view of views) view.again();
  }

  function foldAll() {
    const isAnyOpen = views.some((view) => view.isOpen);
    for (const view of views) view.open(!isAnyOpen);
    text(fold, isAnyOpen ? "Open all files" : "Close all files");
  }

  async function readTask() {
    const mine = shown;
    if (!mine) return;
    const answer = await verb("show", { task_id: mine.task });
    if (shown !== mine) return;
    details = answer;
    const { task } = answer;
    foot.hidden = Boolean(mine.other);
    text(title, task.title);
    document.title = `${task.title} · review · supervisor`;
    restate(status, task.status);
    text(id, task.id);
    id.hidden = false;
    status.hidden = false;
    id.setAttribute("href", here({ task: task.id }));
    const work = answer.runs.filter((/** @type {any} */ run) => run.purpose === "work");
    runs.hidden = work.length < 2;
    put(runs, h("option", { value: "" }, "Latest work"), work.map((/** @type {any} */ run) => h("option", { value: String(run.id) }, `Run ${run.id}: ${run.outcome ?? run.status}`)));
    /** @type {HTMLSelectElement} */ (runs).value = mine.run ?? "";
    const last = work.at(-1);
    standing = JSON.stringify(answer.runs.map((/** @type {any} */ run) => [run.id, run.outcome]));
    again.hidden = read === "" || read === standing;
    const check = answer.runs.findLast((/** @type {any} */ run) => run.purpose === "check");
    const summary = last?.summary ?? last?.error;
    const next = JSON.stringify([task.id, summary, check?.id, check?.outcome]);
    if (summaryPart.dataset.shape !== next) put(summaryPart, summary ? h("p", { class: "review-summary", tabindex: "0" }, plainText(summary)) : null, check ? checkOutput(task, check) : null);
    summaryPart.dataset.shape = next;
    bar.update();
  }

  /** @param {Promise<void>} told  Settles when the task is known. */
  async function readDiff(told) {
    const mine = shown;
    if (!mine) return;
    put(files, h("div", { class: "skeleton diff-skeleton" }), h("div", { class: "skeleton diff-skeleton" }));
    const ask = (/** @type {string} */ task, /** @type {string | undefined} */ run) => verb("diff", { task_id: task, ...(run ? { run: Number(run) } : {}) }, { timeout: 60_000 });
    try {
      const [own, beside, other] = await Promise.all([ask(mine.task, mine.run), mine.other ? ask(mine.other, undefined) : null, mine.other ? verb("show", { task_id: mine.other }) : null, told.catch(() => null)]);
      if (shown !== mine) return;
      isUnread = false;
      read = standing;
      again.hidden = true;
      goesOn.hidden = !own.live;
      draw(own, beside, other?.task.title ?? "");
    } catch (error) {
      if (shown !== mine) return;
      isUnread = true;
      const { message, hint, code } = /** @type {Error & {hint?: string, code?: string}} */ (error);
      const isUnknown = code === "not_found" && !details;
      const heading = isUnknown ? "There is no such task" : code === "not_found" ? "There are no changes to show" : "The changes cannot be read";
      put(files, h("div", { class: "empty" }, h("p", { class: "empty-title" }, heading), h("p", { class: "muted" }, withCode(message)), hint ? h("p", { class: "muted" }, withCode(hint)) : null,
        isUnknown ? h("a", { class: "button", href: link("/board") }, "Back to the board") : null));
      put(list);
      text(sum, "");
    }
  }

  /** @param {import("../diff/model.js").Diff} diff @param {import("../diff/model.js").Diff | null} beside @param {string} otherTitle */
  function draw(diff, beside, otherTitle) {
    for (const view of views) observer.unobserve(view.element);
    views = [];
    at = -1;
    const make = (/** @type {import("../diff/model.js").File} */ file, /** @type {boolean} */ isOwn) => {
      const view = fileView(file, views.length, { mode: () => (beside ? "unified" : mode), drafts: isOwn ? drafts : null, observer, of: isOwn ? "" : ` of ${shown?.other}` });
      views.push(view);
      return view.element;
    };
    const all = totals(diff);
    put(sum, `${counted(diff.files.length, "file")} `, counts(all));
    if (beside) drawBeside(diff, beside, otherTitle, make);
    else {
      put(files, diff.files.map((file) => make(file, true)), diff.truncated ? h("p", { class: "diff-none" }, "There are more changes than are shown.") : null);
      if (diff.files.length === 0) put(files, h("div", { class: "empty" }, h("p", { class: "empty-title" }, "Nothing was changed"), h("p", { class: "muted" }, "The work of this run differs in no file from where it began.")));
    }
    files.prepend(...(diff.warnings ?? []).map((warning) => h("p", { class: "diff-warning", role: "note" }, `${warning[0].toUpperCase()}${warning.slice(1)}.`)));
    put(list, h("h2", null, "Files"), h("ol", null, views.filter((view, at) => views.findIndex((one) => one.file.path === view.file.path) === at).map((view) =>
      h("li", null, h("button", { type: "button", class: "diff-link", title: view.file.path, dataset: { path: view.file.path }, onclick: () => show(views.indexOf(view)) },
        h("span", { class: "status-dot", dataset: { status: statusOf(view.file.status).dataset.status }, "aria-hidden": "true" }), h("span", { class: "diff-link-path" }, h("bdi", null, seen(view.file.path))), counts(view.file))))));
    setMode(mode);
  }

  /** The files of both tasks, each beside the same file of the other. */
  function drawBeside(/** @type {import("../diff/model.js").Diff} */ diff, /** @type {import("../diff/model.js").Diff} */ beside, /** @type {string} */ otherTitle, /** @type {(file: any, isOwn: boolean) => Element} */ make) {
    const paths = [...new Set([...diff.files, ...beside.files].map((file) => file.path))];
    const side = (/** @type {import("../diff/model.js").Diff} */ of, /** @type {string} */ path, /** @type {boolean} */ isOwn) => {
      const file = of.files.find((one) => one.path === path);
      return file ? make(file, isOwn) : h("p", { class: "diff-none panel" }, `${path} is not changed here.`);
    };
    put(files, h("div", { class: "diff-beside diff-beside-head" }, h("h2", null, h("a", { href: link(`/review/${shown?.task}`) }, details?.task.title ?? shown?.task)), h("h2", null, h("a", { href: link(`/review/${shown?.other}`) }, otherTitle))),
      paths.map((path) => h("div", { class: "diff-beside" }, side(diff, path, true), side(beside, path, false))));
  }

  /** @param {number} index */
  function show(index) {
    at = Math.max(0, Math.min(index, views.length - 1));
    const view = views[at];
    if (!view) return;
    view.build();
    view.element.scrollIntoView({ block: "start" });
    view.element.focus({ preventScroll: true });
    for (const item of list.querySelectorAll(".diff-link")) {
      if (/** @type {HTMLElement} */ (item).dataset.path === view.file.path) item.setAttribute("aria-current", "true");
      else item.removeAttribute("aria-current");
    }
  }

  /** Moves the focus by lines. @param {1 | -1} by */
  function move(by) {
    const all = [...files.querySelectorAll(".diff-line")];
    const from = all.indexOf(/** @type {Element} */ (document.activeElement?.closest(".diff-line")));
    const view = views[Math.max(0, at)];
    const start = from < 0 ? all.findIndex((line) => view?.element.contains(line)) - (by > 0 ? 1 : 0) : from;
    const line = all[start + by];
    if (line instanceof HTMLElement) {
      line.focus({ preventScroll: true });
      line.scrollIntoView({ block: "nearest" });
      at = views.findIndex((one) => one.element.contains(line));
    }
  }

  function comment() {
    const row = document.activeElement?.closest(".diff-line");
    if (!(row instanceof HTMLElement)) return false;
    views.find((view) => view.element.contains(row))?.write(row);
    return true;
  }

  /** @param {import("../diff/drafts.js").Comment} comment */
  function goTo(comment) {
    const index = views.findIndex((view) => view.file.path === comment.path);
    if (index < 0) return;
    views[index].open(true);
    show(index);
    const row = views[index].rowAt(comment);
    if (row) {
      row.scrollIntoView({ block: "center" });
      row.focus({ preventScroll: true });
    }
  }

  /** @param {import("../route.js").State} now */
  function update(now) {
    const [task] = now.params;
    const next = { task: task ?? "", run: now.query.run, other: now.query.with };
    if (shown && shown.task === next.task && shown.run === next.run && shown.other === next.other) {
      if (details) id.setAttribute("href", here({ task: details.task.id }));
      return;
    }
    const isOther = shown?.task !== next.task;
    shown = next;
    read = "";
    if (isOther) {
      details = null;
      drafts = new Drafts(next.task, () => bar.update());
      bar = verdictBar(drafts, { task: () => details?.task, go: goTo, decided: () => readTask().catch(problem) });
      put(foot, bar.element);
      bar.update();
      /** @type {HTMLSelectElement} */ (others).hidden = true;
    }
    // What may be decided is known with the task.
    foot.hidden = details === null || Boolean(next.other);
    fold.hidden = false;
    modes.hidden = Boolean(next.other);
    const told = readTask();
    told.then(async () => {
      if (!isOther || !details) return;
      const found = await siblings(details);
      if (shown?.task !== next.task) return;
      put(others, h("option", { value: "" }, "Compare with …"), found.map((one) => h("option", { value: one.id }, one.title)));
      if (next.other && !found.some((one) => one.id === next.other)) others.append(h("option", { value: next.other }, next.other));
      /** @type {HTMLSelectElement} */ (others).value = next.other ?? "";
      others.hidden = found.length === 0 && !next.other;
    }).catch((error) => {
      // That there is no such task is shown in the place of its changes.
      if (error.code !== "not_found" || details) problem(error);
    });
    readDiff(told).finally(reveal);
  }

  const news = soon(() => readTask().catch(problem));
  const stopLive = live.on((events) => {
    if (shown && events.some((event) => event.task_id === shown?.task)) news.ask();
  });
  const stopGap = live.onGap(() => {
    if (isUnread) readDiff(readTask().catch(problem));
    else news.ask();
  });
  const group = "Review";
  const stopKeys = pageKeys(
    { keys: "n", label: "Next file", group, run: () => show(at + 1) },
    { keys: "p", label: "Previous file", group, run: () => show(at - 1) },
    { keys: "j", label: "Next line", group, run: () => move(1) },
    { keys: "k", label: "Previous line", group, run: () => move(-1) },
    { keys: "c", label: "Comment on the line", group, run: comment },
    { keys: "o", label: "Open or close the file", group, run: () => { const view = views[Math.max(0, at)]; view?.open(!view.isOpen); } },
    { keys: "v", label: "One column or side by side", group, run: () => setMode(mode === "split" ? "unified" : "split") },
    { keys: "A", label: "Approve", group, run: () => void bar.accept().catch(problem) },
    { keys: "R", label: "Request changes", group, run: () => void bar.sendBack().catch(problem) },
    { keys: "e", label: "Open the task", group, run: () => id.click() },
  );
  return {
    update,
    unmount() {
      observer.disconnect();
      footing.disconnect();
      document.body.style.removeProperty("--foot-height");
      news.stop();
      stopLive();
      stopGap();
      stopKeys();
      shown = null;
    },
  };
}
