// Colours of terminals as they can be read on the page: the first 16 are those of the theme, the others keep their hue.

/** @typedef {import('./ansi.js').Colour} Colour */
/** @typedef {import('./ansi.js').Style} Style */

const LEVELS = [0, 95, 135, 175, 215, 255];
/** The least contrast of text, by WCAG AA. */
const CONTRAST = 4.5;

/** Red, green and blue of a colour above the first 16. @param {number} index @returns {[number, number, number]} */
function ofIndex(index) {
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return [grey, grey, grey];
  }
  const at = index - 16;
  return [LEVELS[Math.floor(at / 36)], LEVELS[Math.floor(at / 6) % 6], LEVELS[at % 6]];
}

/** @param {number[]} rgb */
function luminance(rgb) {
  const [r, g, b] = rgb.map((part) => {
    const value = part / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** @param {number} one @param {number} other */
const contrast = (one, other) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);

/** Moves a colour toward black or white until it can be read. @param {number[]} rgb @param {number[]} ground */
function readable(rgb, ground) {
  const under = luminance(ground);
  const toward = under > 0.18 ? 0 : 255;
  for (let step = 0; step <= 20; step += 1) {
    const mixed = rgb.map((part) => Math.round(part + ((toward - part) * step) / 20));
    if (contrast(luminance(mixed), under) >= CONTRAST) return mixed;
  }
  return [toward, toward, toward];
}

/** @param {Element} element @returns {number[]} */
export function groundOf(element) {
  const parts = getComputedStyle(element).backgroundColor.match(/[\d.]+/g);
  return parts && parts.length >= 3 ? parts.slice(0, 3).map(Number) : [17, 18, 20];
}

const cache = new Map();

/** @param {number[]} rgb @param {number[]} ground */
function css(rgb, ground) {
  const key = `${rgb}/${ground}`;
  let text = cache.get(key);
  if (text === undefined) {
    text = `rgb(${readable(rgb, ground).join(' ')})`;
    if (cache.size > 4096) cache.clear();
    cache.set(key, text);
  }
  return text;
}

/** Gives a span its style. @param {HTMLElement} span @param {Style} style @param {number[]} ground  The colour under the log. */
export function paint(span, style, ground) {
  const names = [];
  for (const name of /** @type {const} */ (["bold", "dim", "italic", "underline", "strike"])) {
    if (style[name]) names.push(`ansi-${name}`);
  }
  if (style.inverse && style.fg === undefined && style.bg === undefined) names.push("ansi-inverse");
  const [fg, bg] = style.inverse ? [style.bg, style.fg] : [style.fg, style.bg];
  let under = ground;
  if (typeof bg === "number" && bg < 16) names.push(`ansi-bg-${bg}`);
  else if (bg !== undefined) {
    under = typeof bg === "number" ? ofIndex(bg) : bg;
    span.style.backgroundColor = `rgb(${under.join(' ')})`;
    if (fg === undefined) span.style.color = luminance(under) > 0.18 ? "#000" : "#fff";
  }
  if (typeof fg === "number" && fg < 16) {
    // On a ground of its own a named colour is the text colour of that ground.
    if (bg === undefined) names.push(`ansi-${fg}`);
    else if (under !== ground) span.style.color = luminance(under) > 0.18 ? "#000" : "#fff";
  } else if (fg !== undefined && !(typeof bg === "number" && bg < 16)) {
    span.style.color = css(typeof fg === "number" ? ofIndex(fg) : fg, under);
  }
  if (names.length > 0) span.className = names.join(" ");
}
