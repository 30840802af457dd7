// Markdown that the server has rendered and sanitized: the one place of the page that takes HTML.
import { call } from "./api.js";
import { h } from "./dom.js";

/** How many rendered texts are kept, so that a reload of a task asks for none of them again. */
const KEPT = 400;
/** How many texts are rendered at once. */
const AT_ONCE = 4;

const policy = window.trustedTypes?.createPolicy("markdown", { createHTML: (html) => html }) ?? { createHTML: (html) => html };

/** What became of each text; null where it is shown as it is written. @type {Map<string, string | null>} */
const rendered = new Map();
/** @type {(() => void)[]} */
const waiting = [];
let busy = 0;
let offered = true;

/** Whether a text may look other than it is written once it is rendered. */
const MARKS = /[*_`#[\]<>|~\\]|^\s*([-+]|\d+[.)])\s|https?:|\n\s*\n/m;

/**
 * Returns an element with the text, as written at first, and as Markdown once the server has rendered it.
 * @param {string} text
 * @param {{plain?: boolean}} [how] plain: leave it as it is written
 */
export function markdown(text, { plain = false } = {}) {
  const known = rendered.get(text);
  if (known && !plain) return filled(h("div", { class: "markdown" }), known);
  const element = h("div", { class: "markdown is-plain" }, h("pre", null, text));
  if (!plain && offered && known === undefined && MARKS.test(text)) {
    render(text).then(
      (html) => {
        if (html !== null) filled(element, html);
      },
      () => undefined,
    );
  }
  return element;
}

/**
 * Renders texts ahead, so that they stand as they are at once; it waits no longer than `most`.
 * @param {(string | null | undefined)[]} texts the first ones first
 * @param {number} most in milliseconds
 */
export async function prepare(texts, most) {
  const open = texts.filter((text) => text && offered && MARKS.test(text) && !rendered.has(text));
  if (!open.length) return;
  await Promise.race([Promise.all(open.map((text) => render(/** @type {string} */ (text)))), new Promise((resolve) => setTimeout(resolve, most))]);
}

/** @param {HTMLElement} element @param {string} html */
function filled(element, html) {
  element.classList.remove("is-plain");
  element.innerHTML = policy.createHTML(html);
  // Its headings stand below those of the page, and no level is left out.
  let level = 3;
  for (const heading of element.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    level = Math.min(6, level + 1, Number(heading.tagName[1]) + 3);
    heading.setAttribute("aria-level", String(level));
  }
  for (const box of element.querySelectorAll("input")) box.setAttribute("aria-label", box.checked ? "done" : "open");
  // What scrolls is reached by the keyboard.
  for (const block of element.querySelectorAll("pre, table")) block.setAttribute("tabindex", "0");
  return element;
}

/**
 * Returns the HTML of a text, or null where this server renders none.
 * @param {string} text
 * @returns {Promise<string | null>}
 */
async function render(text) {
  if (busy >= AT_ONCE) await new Promise((resolve) => waiting.push(() => resolve(undefined)));
  busy += 1;
  try {
    const known = rendered.get(text);
    if (known !== undefined) return known;
    if (!offered) return null;
    const { html } = await call("POST", "/markdown", { body: { text } });
    keep(text, html);
    return html;
  } catch (problem) {
    if (problem.status === 404 || problem.status === 405) offered = false;
    // The daemon does not render this one: it is too long.
    if (problem.status === 413 || problem.status === 422) keep(text, null);
    return null;
  } finally {
    busy -= 1;
    waiting.shift()?.();
  }
}

/** @param {string} text @param {string | null} html */
function keep(text, html) {
  if (rendered.size >= KEPT) rendered.delete(rendered.keys().next().value ?? "");
  rendered.set(text, html);
}
