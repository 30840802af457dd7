// One changed file: its head with counts, and its lines, which are built when they come near.

import { h, icon, put, text } from "../dom.js";
import { counted } from "../parts/words.js";
import { editor, note } from "./comment.js";
import { named } from "./drafts.js";
import { seen } from "./hidden.js";
import { lines } from "./lines.js";
import { lineCount } from "./model.js";

/** A file with more lines is closed at first. */
const LARGE = 1500;
const STATUS = { added: "done", modified: "ready", deleted: "blocked", renamed: "review" };

/** The counts of added and deleted lines. @param {{additions: number, deletions: number}} of */
export const counts = ({ additions, deletions }) =>
  h("span", { class: "diff-counts number" },
    h("span", { class: "diff-plus", "aria-label": counted(additions, "line added", "lines added"), role: "img" }, `+${additions}`),
    h("span", { class: "diff-minus", "aria-label": counted(deletions, "line deleted", "lines deleted"), role: "img" }, `−${deletions}`));

/** A file's status as a dot and a word. @param {string} status */
export const statusOf = (status) => h("span", { class: "status", dataset: { status: STATUS[status] ?? "todo" } }, status);

/**
 * @param {import("./model.js").File} file
 * @param {number} index
 * @param {{mode: () => "unified" | "split", drafts: import("./drafts.js").Drafts | null, observer: IntersectionObserver, of?: string}} of
 *   `of`: whose file it is, where there are two of the same name
 */
export function fileView(file, index, { mode, drafts, observer, of = "" }) {
  const size = lineCount(file);
  let isOpen = size <= LARGE;
  let isBuilt = false;
  const id = `file-${index}`;
  const body = h("div", { class: "diff-body", id });
  const toggle = h("button", { type: "button", class: "diff-toggle", "aria-expanded": "true", "aria-controls": id, onclick: () => open(!isOpen) }, icon("down"),
    h("span", { class: "diff-path" }, seen(file.old_path && file.old_path !== file.path ? `${file.old_path} → ${file.path}` : file.path)));
  const written = h("span", { class: "chip", dataset: { kind: "accent" }, hidden: true });
  const element = h("section", { class: "diff-file panel", "aria-label": `${file.path}${of}`, tabindex: "-1" },
    h("header", { class: "diff-head" }, toggle, statusOf(file.status), written, counts(file)), body);

  function build() {
    if (!isOpen || isBuilt) return;
    isBuilt = true;
    body.style.minBlockSize = "";
    if (file.binary) put(body, h("p", { class: "diff-none" }, "A binary file is not shown."));
    else if (size === 0) put(body, h("p", { class: "diff-none" }, file.truncated ? "The changes are too large to be shown." : file.mode ? `The mode was changed: ${file.mode}` : "No line was changed."));
    else {
      put(body, lines(file, mode()));
      if (file.truncated) body.append(h("p", { class: "diff-none" }, "There are more changes in this file than are shown."));
      showNotes();
    }
  }

  /** @param {boolean} value */
  function open(value) {
    isOpen = value;
    toggle.setAttribute("aria-expanded", String(value));
    element.classList.toggle("is-closed", !value);
    if (value) build();
  }

  function showNotes() {
    const own = drafts?.comments.filter((comment) => comment.path === file.path) ?? [];
    written.hidden = own.length === 0;
    text(written, counted(own.length, "comment"));
    for (const before of body.querySelectorAll(".diff-comment:not(.is-open)")) before.remove();
    for (const comment of own) {
      const row = rowAt(comment);
      if (row) note(row, { side: comment.side, text: comment.text, edit: () => write(row, comment) });
    }
  }

  /** @param {import("./drafts.js").Place} place @returns {HTMLElement | null} */
  const rowAt = ({ side, line }) => body.querySelector(`.diff-line[data-side="${side}"][data-line="${line}"]`) ?? (side === "old" ? body.querySelector(`.diff-line[data-old="${line}"]`) : null);

  /** Opens the field for a comment on a line, or on another place that is in its row. @param {HTMLElement} row @param {import("./drafts.js").Place} [place] */
  function write(row, place = { side: row.dataset.side === "old" ? "old" : "new", line: Number(row.dataset.line) }) {
    if (!drafts) return;
    editor(row, {
      name: named({ path: file.path, ...place }),
      side: place.side,
      text: drafts.at(file.path, place)?.text ?? "",
      save(commentText) {
        drafts.set(file.path, place, commentText);
        showNotes();
      },
    });
  }

  body.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const row = target.closest(".diff-line");
    if (!(row instanceof HTMLElement)) return;
    const isLeft = row.dataset.old && target.closest(".diff-side") === row.firstElementChild;
    if (target.closest(".diff-number")) write(row, isLeft ? { side: "old", line: Number(row.dataset.old) } : undefined);
    else if (getSelection()?.isCollapsed !== false) row.focus({ preventScroll: true });
  });
  // The place of the lines is kept until they are there.
  body.style.minBlockSize = `${Math.min(size, 400) * 20}px`;
  toggle.setAttribute("aria-expanded", String(isOpen));
  element.classList.toggle("is-closed", !isOpen);
  observer.observe(element);
  return {
    file,
    element,
    build,
    write,
    open,
    get isOpen() {
      return isOpen;
    },
    rowAt,
    /** Builds the lines again, in another form. */
    again() {
      if (!isBuilt) return;
      isBuilt = false;
      build();
    },
  };
}
