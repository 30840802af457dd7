// Where the tasks of a mission stand in its graph: in layers from left to right, each after what it waits for, with few crossings.

/**
 * @typedef {{id: string, title: string, status: string, assignee: string | null, under: string | null, after: string[], needs?: any, command?: string, summary?: string}} Task
 * @typedef {{from: string, to: string, kind: "after" | "under"}} Edge
 * @typedef {{layer: number, row: number}} Place
 */

/** How often the layers are put in order. */
const SWEEPS = 6;

/** Finds what comes after each task, through all others. @param {Map<string, string[]>} next @param {string} from @param {string} to */
function reaches(next, from, to) {
  const seen = new Set([from]);
  const open = [from];
  while (open.length > 0) {
    const id = /** @type {string} */ (open.pop());
    if (id === to) return true;
    for (const other of next.get(id) ?? []) {
      if (!seen.has(other)) {
        seen.add(other);
        open.push(other);
      }
    }
  }
  return false;
}

/** The lines of the graph. @param {Task[]} tasks @returns {Edge[]} */
export function edges(tasks) {
  const known = new Set(tasks.map((task) => task.id));
  /** @type {Edge[]} */
  const found = [];
  const next = new Map();
  const add = (/** @type {Edge} */ edge) => {
    found.push(edge);
    if (!next.has(edge.from)) next.set(edge.from, []);
    next.get(edge.from).push(edge.to);
  };
  for (const task of tasks) for (const before of task.after) if (known.has(before)) add({ from: before, to: task.id, kind: "after" });
  for (const { id, under, after } of tasks) {
    // A task that waits for nothing stands after the one under which it was made, unless that one waits for it.
    if (under && known.has(under) && !after.some((before) => known.has(before)) && !reaches(next, id, under)) add({ from: under, to: id, kind: "under" });
  }
  return found;
}

/** @param {Task[]} tasks @param {Edge[]} lines @returns {Map<string, Place>} */
export function places(tasks, lines) {
  const before = new Map(tasks.map((task) => [task.id, /** @type {string[]} */ ([])]));
  const after = new Map(tasks.map((task) => [task.id, /** @type {string[]} */ ([])]));
  for (const { from, to } of lines) {
    before.get(to)?.push(from);
    after.get(from)?.push(to);
  }
  /** @type {Map<string, number>} */
  const layer = new Map();
  const left = new Map([...before].map(([id, ids]) => [id, ids.length]));
  const open = tasks.filter((task) => left.get(task.id) === 0).map((task) => task.id);
  for (let at = 0; at < open.length; at += 1) {
    const id = open[at];
    layer.set(id, Math.max(0, ...(before.get(id) ?? []).map((other) => (layer.get(other) ?? 0) + 1)));
    for (const other of after.get(id) ?? []) {
      left.set(other, (left.get(other) ?? 0) - 1);
      if (left.get(other) === 0) open.push(other);
    }
  }
  // The board has no cycles; what an older one may have imported stands in the first layer.
  for (const task of tasks) if (!layer.has(task.id)) layer.set(task.id, 0);
  /** @type {string[][]} */
  const layers = [];
  for (const task of tasks) (layers[layer.get(task.id) ?? 0] ??= []).push(task.id);
  const row = new Map();
  const number = () => layers.forEach((ids) => ids?.forEach((id, at) => row.set(id, at - (ids.length - 1) / 2)));
  number();
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const beside = sweep % 2 === 0 ? before : after;
    const order = sweep % 2 === 0 ? layers : [...layers].reverse();
    for (const ids of order) {
      const middle = new Map(ids.map((id) => {
        const near = beside.get(id) ?? [];
        return [id, near.length > 0 ? near.reduce((sum, other) => sum + row.get(other), 0) / near.length : row.get(id)];
      }));
      ids.sort((one, other) => (middle.get(one) ?? 0) - (middle.get(other) ?? 0));
      ids.forEach((id, at) => row.set(id, at - (ids.length - 1) / 2));
    }
  }
  return new Map(tasks.map((task) => [task.id, { layer: layer.get(task.id) ?? 0, row: row.get(task.id) }]));
}
