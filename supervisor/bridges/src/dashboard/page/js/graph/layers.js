// Where the tasks of a mission stand in its graph: in layers from left to right, each after what it waits for, with few crossings.

/**
 * @typedef {{id: string, title: string, status: string, assignee: string | null, under: string | null, after: string[], needs?: any, command?: string, summary?: string}} Task
 * @typedef {{from: string, to: string, kind: "after" | "under"}} Edge
 * @typedef {{layer: number, row: number}} Place
 */

/** How often the layers are put in order. */
const SWEEPS = 6;
/** With more lines than these none is led around tasks. */
const BENT = 400;

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

/** The layer of each task: one after the last of what it waits for. @param {string[]} ids @param {Edge[]} lines @returns {Map<string, number>} */
function layersOf(ids, lines) {
  const before = new Map(ids.map((id) => [id, /** @type {string[]} */ ([])]));
  const after = new Map(ids.map((id) => [id, /** @type {string[]} */ ([])]));
  for (const { from, to } of lines) {
    before.get(to)?.push(from);
    after.get(from)?.push(to);
  }
  const layer = new Map();
  const left = new Map([...before].map(([id, own]) => [id, own.length]));
  const open = ids.filter((id) => left.get(id) === 0);
  for (let at = 0; at < open.length; at += 1) {
    const id = open[at];
    layer.set(id, Math.max(0, ...(before.get(id) ?? []).map((other) => (layer.get(other) ?? 0) + 1)));
    for (const other of after.get(id) ?? []) {
      left.set(other, (left.get(other) ?? 0) - 1);
      if (left.get(other) === 0) open.push(other);
    }
  }
  // The board has no cycles; what an older one may have imported stands in the first layer.
  for (const id of ids) if (!layer.has(id)) layer.set(id, 0);
  return layer;
}

/** Puts each layer in the order of what its members stand beside. @param {string[][]} layers @param {[string, string][]} steps @returns {Map<string, number>} */
function rowsOf(layers, steps) {
  const before = new Map();
  const after = new Map();
  const add = (/** @type {Map<string, string[]>} */ map, /** @type {string} */ key, /** @type {string} */ value) => map.set(key, [...(map.get(key) ?? []), value]);
  for (const [from, to] of steps) {
    add(before, to, from);
    add(after, from, to);
  }
  const row = new Map();
  const number = (/** @type {string[]} */ ids) => ids.forEach((id, at) => row.set(id, at - (ids.length - 1) / 2));
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const beside = sweep % 2 === 0 ? before : after;
    for (const ids of sweep % 2 === 0 ? layers : [...layers].reverse()) {
      const middle = new Map(ids.map((id) => {
        const near = beside.get(id) ?? [];
        return [id, near.length > 0 ? near.reduce((/** @type {number} */ sum, /** @type {string} */ other) => sum + row.get(other), 0) / near.length : row.get(id)];
      }));
      ids.sort((one, other) => middle.get(one) - middle.get(other));
      number(ids);
    }
  }
  return row;
}

/**
 * The places of the tasks, and of the bends of lines that pass layers: these have rows of their own, so that no line runs behind a task.
 * @param {Task[]} tasks @param {Edge[]} lines @returns {{tasks: Map<string, Place>, bends: Place[][]}}
 */
export function places(tasks, lines) {
  const ids = tasks.map((task) => task.id);
  const layer = layersOf(ids, lines);
  /** @type {string[][]} */
  const layers = [];
  const put = (/** @type {string} */ id, /** @type {number} */ at) => (layers[at] ??= []).push(id);
  for (const id of ids) put(id, layer.get(id) ?? 0);
  /** @type {[string, string][]} */
  const steps = [];
  const chains = lines.map(({ from, to }, number) => {
    const chain = [];
    const last = layer.get(to) ?? 0;
    let previous = from;
    // With too many lines the bends would fill the graph.
    for (let at = (layer.get(from) ?? 0) + 1; at < last && lines.length <= BENT; at += 1) {
      const bend = `${number}/${at}`;
      layer.set(bend, at);
      put(bend, at);
      chain.push(bend);
      steps.push([previous, bend]);
      previous = bend;
    }
    steps.push([previous, to]);
    return chain;
  });
  const row = rowsOf(layers, steps);
  const place = (/** @type {string} */ id) => ({ layer: layer.get(id) ?? 0, row: row.get(id) ?? 0 });
  return { tasks: new Map(ids.map((id) => [id, place(id)])), bends: chains.map((chain) => chain.map(place)) };
}
