// How runs stand in rows, by profile or by task, and which times stand above them.

/** @typedef {import("./runs.js").Bar} Bar @typedef {{name: string, bars: Bar[]}} Group */

/** @param {Bar[]} bars @param {"profile" | "task"} by @returns {Group[]} */
export function groups(bars, by) {
  /** @type {Map<string, Group>} */
  const found = new Map();
  for (const bar of bars) {
    const key = by === "profile" ? bar.who : bar.task;
    if (!found.has(key)) found.set(key, { name: by === "profile" ? key : bar.title, bars: [] });
    found.get(key)?.bars.push(bar);
  }
  const all = [...found.values()];
  return by === "profile" ? all.sort((a, b) => (a.name < b.name ? -1 : 1)) : all;
}

const STEPS = [1, 5, 10, 30, 60, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_419_200];

/**
 * The times that are written over the rows, as far apart as their words need.
 * @param {number} from @param {number} to @param {(step: number) => number} least  How long the words of a time are, in seconds of the row.
 * @returns {{time: number, step: number}[]}
 */
export function ticks(from, to, least) {
  const step = STEPS.find((each) => each >= least(each)) ?? STEPS.at(-1) ?? 1;
  // Hours and days begin where the clock of the person has them.
  const shift = new Date(from * 1000).getTimezoneOffset() * 60;
  const found = [];
  for (let time = Math.ceil((from - shift) / step) * step + shift; time <= to; time += step) found.push({ time, step });
  return found;
}
