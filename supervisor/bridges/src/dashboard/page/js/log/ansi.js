// The escape sequences of terminals in a line of a log: colours become styles, everything else is left out.

/**
 * @typedef {number | [number, number, number]} Colour  An index of the 256 colours, or red, green and blue.
 * @typedef {{fg?: Colour, bg?: Colour, bold?: boolean, dim?: boolean, italic?: boolean, underline?: boolean,
 *   strike?: boolean, inverse?: boolean}} Style
 * @typedef {{text: string, style: Style | null}} Span
 */

const ESC = "\x1b";
// CSI sequences, strings (OSC, DCS, APC, PM, SOS) up to BEL or ST, two-character escapes, and other control
// characters but tab, with those that turn the direction of a text.
const SEQUENCE =
  // eslint-disable-next-line no-control-regex
  /\x1b\[([0-9;:?<=>]*)([ -/]*)([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/** Whether a line has anything that a terminal would not print. @param {string} line */
// eslint-disable-next-line no-control-regex
const isPlain = (line) => !/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/.test(line);

/** The part of a line that stays visible: a carriage return begins it anew. @param {string} line */
function last(line) {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line;
  const at = text.lastIndexOf("\r");
  return at < 0 ? text : text.slice(at + 1);
}

/** The text of a line without its escape sequences. @param {string} line @returns {string} */
export function plain(line) {
  return isPlain(line) ? line : last(line).replace(SEQUENCE, "");
}

/** The same for a text of several lines. @param {string} text */
export const plainText = (text) => text.split("\n").map(plain).join("\n");

/** Takes one colour of the codes of an SGR sequence. @param {number[]} codes @param {number} at @returns {[Colour | null, number]} */
function extended(codes, at) {
  if (codes[at + 1] === 5) {
    const index = codes[at + 2];
    return [index >= 0 && index <= 255 ? index : null, at + 2];
  }
  if (codes[at + 1] === 2) {
    const parts = codes.slice(at + 2, at + 5);
    const isWhole = parts.length === 3 && parts.every((part) => part >= 0 && part <= 255);
    return [isWhole ? /** @type {Colour} */ (parts) : null, at + 4];
  }
  return [null, at];
}

/** The style after an SGR sequence. @param {Style} before @param {string} parameters @returns {Style} */
function styled(before, parameters) {
  const style = { ...before };
  // The form with colons may have an empty colour space: 38:2::r:g:b.
  const codes = parameters.replace(/([34]8:2):[0-9]*:(?=[0-9]+:[0-9]+:[0-9]+)/g, "$1:").split(/[;:]/).map(Number);
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) for (const key of Object.keys(style)) delete style[key];
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.inverse = true;
    else if (code === 9) style.strike = true;
    else if (code === 22) delete style.bold, delete style.dim;
    else if (code === 23) delete style.italic;
    else if (code === 24) delete style.underline;
    else if (code === 27) delete style.inverse;
    else if (code === 29) delete style.strike;
    else if (code >= 30 && code <= 37) style.fg = code - 30;
    else if (code >= 90 && code <= 97) style.fg = code - 90 + 8;
    else if (code >= 40 && code <= 47) style.bg = code - 40;
    else if (code >= 100 && code <= 107) style.bg = code - 100 + 8;
    else if (code === 39) delete style.fg;
    else if (code === 49) delete style.bg;
    else if (code === 38 || code === 48) {
      const [colour, end] = extended(codes, at);
      if (colour !== null) style[code === 38 ? "fg" : "bg"] = colour;
      at = end;
    }
  }
  return style;
}

/** Divides a line into spans of one style each. @param {string} line @param {Style} [start] @returns {Span[]} */
export function spans(line, start = {}) {
  const isStyled = Object.keys(start).length > 0;
  if (isPlain(line)) return [{ text: line, style: isStyled ? start : null }];
  const text = last(line);
  const parts = [];
  let [style, from] = [start, 0];
  const push = (/** @type {number} */ to) => {
    if (to > from) parts.push({ text: text.slice(from, to), style: Object.keys(style).length > 0 ? style : null });
  };
  for (const match of text.matchAll(SEQUENCE)) {
    push(match.index);
    from = match.index + match[0].length;
    if (match[3] === "m" && !match[2]) style = styled(style, match[1]);
  }
  push(text.length);
  return parts;
}

/** The style at the end of a line, for the next one. @param {string} line @param {Style} start @returns {Style} */
export function styleAfter(line, start) {
  if (!line.includes(ESC)) return start;
  let style = start;
  for (const match of line.matchAll(SEQUENCE)) if (match[3] === "m" && !match[2]) style = styled(style, match[1]);
  return style;
}
