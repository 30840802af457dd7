// Room on the disk: how much of the file system of the root is free, and what `gc` would remove, shown before anything is removed.

import { verb } from "../api.js";
import { h, put, text } from "../dom.js";
import { bytes } from "../money.js";
import { problem, toast } from "../toast.js";
import { confirm } from "../dialog.js";
import { filling, meter } from "../parts/meter.js";
import { counted } from "../parts/words.js";

const SHOWN = 50;

/** Calls `gc` until it is through. @param {boolean} isDry */
async function collect(isDry) {
  const all = { removed: /** @type {any[]} */ ([]), kept: /** @type {any[]} */ ([]), freed: 0 };
  let cursor = null;
  do {
    const piece = await verb("gc", { dry_run: isDry, ...(cursor ? { cursor } : {}) }, { timeout: 60_000 });
    all.removed.push(...piece.removed);
    all.kept.push(...piece.kept);
    all.freed += piece.freed_bytes;
    cursor = piece.cursor;
  } while (cursor);
  return all;
}

export function disk() {
  const place = h("div", { class: "disk" });
  const free = h("span", { class: "number" });
  const bar = meter("Disk");
  const room = h("div", { class: "disk-room", hidden: true }, free, bar);
  const look = h("button", { type: "button", class: "button small", onclick: () => run(show) }, "See what can be removed");
  const remove = h("button", { type: "button", class: "button small", hidden: true, onclick: () => run(clear) }, "Remove …");
  const element = h("section", { class: "work-section", "aria-labelledby": "disk-title" }, h("div", { class: "section-head" }, h("h2", { id: "disk-title" }, "Disk"), h("span", { class: "disk-acts" }, remove, look)), room, place);
  put(place, h("p", { class: "muted" }, "Workspaces of archived tasks, logs older than 30 days and the rest of interrupted removals."));
  let freed = 0;

  /** @param {() => Promise<void>} act */
  async function run(act) {
    look.setAttribute("disabled", "");
    remove.setAttribute("disabled", "");
    try {
      await act();
    } catch (error) {
      problem(error);
    }
    look.removeAttribute("disabled");
    remove.removeAttribute("disabled");
  }

  async function show() {
    const found = await collect(true);
    freed = found.freed;
    remove.hidden = found.removed.length === 0;
    put(place, h("p", null, found.removed.length === 0 ? "Nothing is left over." : `${counted(found.removed.length, "leftover")}: ${bytes(found.freed)} would be freed.`, found.kept.length > 0 ? ` ${counted(found.kept.length, "thing stays", "things stay")} for a reason.` : ""),
      h("ul", { class: "disk-list" }, found.removed.slice(0, SHOWN).map((one) => h("li", null, h("span", { class: "number muted" }, bytes(one.bytes ?? 0)), " ", one.path)),
        found.kept.slice(0, SHOWN).map((one) => h("li", { class: "muted" }, `kept: ${one.path}: ${one.why ?? ""}`))));
  }

  async function clear() {
    if (!(await confirm({ title: "Remove what is left over?", text: `${bytes(freed)} are freed. Work that is not merged stays.`, action: "Remove", danger: true }))) return;
    const done = await collect(false);
    toast(`${bytes(done.freed)} freed`);
    await show();
  }
  return {
    element,
    /** @param {{root: string, disk?: {total_bytes: number, free_bytes: number}}} status */
    update({ root, disk: known }) {
      room.hidden = !known;
      if (!known) return;
      const label = `${bytes(known.free_bytes)} free of ${bytes(known.total_bytes)}`;
      text(free, label);
      room.title = `The file system of ${root}`;
      const used = known.total_bytes > 0 ? 1 - known.free_bytes / known.total_bytes : 0;
      bar.set(used, label, filling(used));
    },
  };
}
