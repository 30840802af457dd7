// Builds elements from plain values. Text becomes text nodes; nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {Node | string | number | null | undefined | false | Child[]} Child
 */

/** @param {Element} element @param {Record<string, any> | null} props */
function assign(element, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.setAttribute("class", Array.isArray(value) ? value.filter(Boolean).join(" ") : value);
    else if (name === "dataset") for (const [key, text] of Object.entries(value)) { if (text !== null && text !== undefined) element.dataset[key] = String(text); }
    // The policy of the page allows no style attribute; properties set by a script are fine.
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, String(text));
    else if (name.startsWith("on")) element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name === "value" || name === "checked" || name === "indeterminate" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {Element} parent @param {Child[]} children */
function fill(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) fill(parent, child);
    else parent.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Returns an element: `h("button", {class: "button", onclick: f}, "Save")`.
 * A prop named `on…` is a listener; null, undefined and false leave a prop or a child out.
 * @param {string} tag @param {Record<string, any> | null} [props] @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, props = null, ...children) {
  const element = document.createElement(tag);
  fill(element, children);
  assign(element, props);
  return element;
}

/** Returns an SVG element. @param {string} tag @param {Record<string, any> | null} [props] @param {...Child} children @returns {SVGElement} */
export function svg(tag, props = null, ...children) {
  const element = document.createElementNS(SVG, tag);
  fill(element, children);
  assign(element, props);
  return element;
}

/** Replaces what an element contains. @param {Element} parent @param {...Child} children */
export function put(parent, ...children) {
  parent.replaceChildren();
  fill(parent, children);
  return parent;
}

/** Sets the text of a node only where it differs, so that nothing is laid out again. @param {Node} node @param {string} text */
export function text(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const PATHS = {
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3 3",
  copy: "M6 6h7v7H6zM10 6V3H3v7h3",
  check: "M3 8.5l3.5 3.5L13 4.5",
  comment: "M3 3.5h10v7H7.5L4.5 13v-2.5H3z",
  link: "M6.5 9.5l3-3M5 8L3.5 9.5a2.1 2.1 0 0 0 3 3L8 11M8 5l1.5-1.5a2.1 2.1 0 0 1 3 3L11 8",
  tree: "M4 3v7a2 2 0 0 0 2 2h3M4 6h5M9 4.5h4v3H9zM9 10.5h4v3H9z",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.5l2.2 1.3",
  play: "M5 3.5v9l7-4.5z",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  left: "M10 3L5 8l5 5",
  right: "M6 3l5 5-5 5",
  down: "M3 6l5 5 5-5",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  screen: "M2.5 3.5h11v7h-11zM6 13h4M8 10.5V13",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  person: "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 13.5c.6-2.5 2.6-3.5 5-3.5s4.4 1 5 3.5",
  terminal: "M3 4l4 4-4 4M8.5 12H13",
  reload: "M13 5.5A5.5 5.5 0 1 0 13.5 9M13 2v3.5H9.5",
};

/** Returns a small line icon, hidden from screen readers. @param {keyof typeof PATHS} name */
export function icon(name) {
  return svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, fill: "none", stroke: "currentColor", "stroke-width": "1.5", "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true", class: "icon" },
    svg("path", { d: PATHS[name] }));
}

/** Returns a status as a dot and its word. @param {string} status @param {string} [word] */
export const statusWord = (status, word = status) => h("span", { class: "status", dataset: { status } }, word);

/** Returns a text whose parts in backticks are code. @param {string} text */
export const withCode = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", null, part) : part));

/** Returns a command with a button that copies it. @param {string} command */
export function command(command) {
  const button = h("button", { type: "button", class: "icon-button small", "aria-label": "Copy the command", onclick: async (event) => {
    event.stopPropagation();
    const copied = await copy(command);
    put(button, icon(copied ? "check" : "close"));
    announce(copied ? "Copied" : "The browser did not allow copying");
    setTimeout(() => put(button, icon("copy")), 1500);
  } }, icon("copy"));
  return h("span", { class: "command" }, h("code", { tabindex: "0" }, command), button);
}

/** Copies a text. @param {string} what @returns {Promise<boolean>} */
export async function copy(what) {
  try { await navigator.clipboard.writeText(what); return true; } catch { return false; }
}

/** Has screen readers say a text. @param {string} what @param {"polite" | "assertive"} [how] */
export function announce(what, how = "polite") {
  const region = document.getElementById(how);
  if (!region) return;
  region.textContent = "";
  requestAnimationFrame(() => { region.textContent = what; });
}
