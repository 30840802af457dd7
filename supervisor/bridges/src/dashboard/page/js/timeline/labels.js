// The words of bars: inside where they fit, else beside the bar where nothing else stands. None overlaps another, and none is cut to a few letters.

/** The room around the words in a bar, and between a bar and words beside it or the next bar, in pixels. */
const INSIDE = 12;
const BESIDE = 12;
/** Longer words are cut, with a sign that they are. The whole of them is in the name of the bar and in what is shown of it. */
const LONGEST = 220;
/** Words that are cut keep at least so much. */
const SHORTEST = 72;

/** @typedef {{left: number, right: number, text: string, label?: {text: string, side: "in" | "after" | "before", width: number} | null}} Spot */

/** @type {CanvasRenderingContext2D | null} */
let canvas = null;
/** @type {Map<string, number>} */
const widths = new Map();

/** How wide words are at the size of labels, in pixels. @param {string} text */
export function widthOf(text) {
  let width = widths.get(text);
  if (width === undefined) {
    if (!canvas) {
      canvas = document.createElement("canvas").getContext("2d");
      const size = parseFloat(getComputedStyle(document.documentElement).fontSize) * 0.6875;
      if (canvas) canvas.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
    }
    width = Math.ceil(canvas?.measureText(text).width ?? text.length * 8) + 1;
    if (widths.size > 5000) widths.clear();
    widths.set(text, width);
  }
  return width;
}

/** Puts bars into as few rows as they need. @template {Spot} S @param {S[]} spots @param {(spot: S) => [number, number]} extent @returns {S[][]} */
function packed(spots, extent) {
  /** @type {S[][]} */
  const rows = [];
  /** @type {number[]} */
  const ends = [];
  for (const spot of spots) {
    const [from, to] = extent(spot);
    let at = ends.findIndex((end) => end <= from);
    if (at < 0) at = rows.push([]) - 1;
    rows[at].push(spot);
    ends[at] = to;
  }
  return rows;
}

/** The words of a bar with all the room of a row. @param {Spot} spot @param {number} width */
function alone({ left, right, text }, width) {
  const wanted = Math.min(LONGEST, widthOf(text));
  if (wanted + INSIDE <= right - left) return { text, side: /** @type {const} */ ("in"), width: right - left - INSIDE };
  if (right + wanted + BESIDE <= width) return { text, side: /** @type {const} */ ("after"), width: wanted };
  if (left - wanted - BESIDE >= 0) return { text, side: /** @type {const} */ ("before"), width: wanted };
  return null;
}

/** From where to where a bar goes with its words. @param {Spot} spot @returns {[number, number]} */
const extent = ({ left, right, label }) => [
  label?.side === "before" ? left - label.width - BESIDE : left,
  (label?.side === "after" ? right + label.width + BESIDE : right) + 1,
];

/** Gives the bars of a row the words for which it has room between them. @param {Spot[]} row @param {number} width */
function spare(row, width) {
  row.forEach((spot, at) => {
    const before = at > 0 ? extent(row[at - 1])[1] : 0;
    const after = at + 1 < row.length ? row[at + 1].left : width;
    const wanted = Math.min(LONGEST, widthOf(spot.text));
    const least = Math.min(wanted, SHORTEST);
    const [inside, behind, ahead] = [spot.right - spot.left - INSIDE, after - spot.right - BESIDE, spot.left - before - BESIDE];
    const label = (/** @type {"in" | "after" | "before"} */ side, /** @type {number} */ room) => ({ text: spot.text, side, width: side === "in" ? room : Math.min(wanted, room) });
    if (inside >= least && (inside >= wanted || inside >= behind)) spot.label = label("in", inside);
    else if (behind >= least) spot.label = label("after", behind);
    else if (ahead >= least) spot.label = label("before", ahead);
    else spot.label = inside >= least ? label("in", inside) : null;
  });
}

/**
 * Puts the bars of one name into rows, with the words for which there is room.
 * @template {Spot} S @param {S[]} spots  In the order of their beginnings. @param {number} width  Of a row, in pixels.
 * @param {number} most  How many rows there may be for the sake of words: with more of them, bars that have no room have none. @returns {S[][]}
 */
export function fit(spots, width, most) {
  for (const spot of spots) spot.label = alone(spot, width);
  const whole = packed(spots, extent);
  if (whole.length <= most) return whole;
  const dense = packed(spots, ({ left, right }) => [left, right + 1]);
  for (const row of dense) spare(row, width);
  return dense;
}
