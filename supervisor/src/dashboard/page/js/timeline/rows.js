// How runs stand in rows: by profile, with as many rows as run at once, or by task.

/** @typedef {import("./runs.js").Bar} Bar @typedef {{name: string, task: string | null, lanes: Bar[][]}} Group */

/** Puts runs into as few rows as they need. A run of no time has the width of a mark. @param {Bar[]} bars @param {number} now @param {number} least  Of a bar, in seconds. */
function packed(bars, now, least) {
  /** @type {Bar[][]} */
  const lanes = [];
  /** @type {number[]} */
  const ends = [];
  for (const bar of bars) {
    const from = bar.from ?? Number.NEGATIVE_INFINITY;
    let at = ends.findIndex((end) => end <= from);
    if (at < 0) at = lanes.push([]) - 1;
    lanes[at].push(bar);
    ends[at] = Math.max(bar.to ?? now, from + least);
  }
  return lanes;
}

/** @param {Bar[]} bars @param {"profile" | "task"} by @param {number} now @param {number} least @returns {Group[]} */
export function groups(bars, by, now, least) {
  /** @type {Map<string, Bar[]>} */
  const found = new Map();
  for (const bar of bars) {
    const key = by === "profile" ? bar.who : bar.task;
    if (!found.has(key)) found.set(key, []);
    found.get(key)?.push(bar);
  }
  const all = [...found].map(([key, own]) => ({ name: by === "profile" ? key : own[0].title, task: by === "task" ? key : null, lanes: packed(own, now, by === "task" ? 0 : least) }));
  return by === "profile" ? all.sort((a, b) => (a.name < b.name ? -1 : 1)) : all;
}

const STEPS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 604_800];

/** The times that are written over the rows. @param {number} from @param {number} to @param {number} most @returns {number[]} */
export function ticks(from, to, most) {
  const step = STEPS.find((each) => (to - from) / each <= most) ?? 604_800;
  // Hours and days begin where the clock of the person has them.
  const shift = new Date(from * 1000).getTimezoneOffset() * 60;
  const found = [];
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) found.push(at);
  return found;
}
