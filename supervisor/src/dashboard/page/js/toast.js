// Short messages at the bottom of the page, which screen readers say too.

import { announce, h, icon, withCode } from "./dom.js";
import { Problem } from "./api.js";

const MOST = 4;

/**
 * Shows a message. An error stays until it is closed.
 * @param {string} text @param {{kind?: "ok" | "error" | "info", hint?: string, action?: {label: string, run: () => void}}} [options]
 */
export function toast(text, { kind = "ok", hint = "", action } = {}) {
  const place = document.getElementById("toasts");
  const close = () => element.remove();
  const element = h("div", { class: "toast", dataset: { kind } },
    h("div", { class: "toast-text" }, withCode(text), hint ? h("div", { class: "toast-hint" }, withCode(hint)) : null),
    action ? h("button", { type: "button", class: "button small", onclick: () => { close(); action.run(); } }, action.label) : null,
    h("button", { type: "button", class: "icon-button small", "aria-label": "Close the message", onclick: close }, icon("close")));
  while (place.children.length >= MOST) place.firstElementChild.remove();
  place.append(element);
  announce((hint ? `${text}. ${hint}` : text).replaceAll("`", ""), kind === "error" ? "assertive" : "polite");
  setTimeout(close, kind === "error" ? 15_000 : action ? 8_000 : 4_000);
}

/** Shows what went wrong. What the page itself has cancelled is nothing to show. @param {unknown} error */
export function problem(error) {
  if (error instanceof DOMException && error.name === "AbortError") return;
  if (error instanceof Problem) {
    if (error.status !== 401) toast(error.detail, { kind: "error", hint: error.hint });
    return;
  }
  console.error(error);
  toast(`The page failed: ${error instanceof Error ? error.message : error}`, { kind: "error", hint: "Reload the page." });
}
