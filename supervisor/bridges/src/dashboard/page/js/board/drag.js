// Cards are dragged by mouse, pen or finger: one way for all pointers. A finger drags after a long press, so that it can scroll.

import { announce, h } from "../dom.js";
import { COLUMN } from "./statuses.js";

const SLOP = 6;
const LONG_PRESS = 320;
const EDGE = 56;

/**
 * @param {HTMLElement} root the board
 * @param {{ids: (id: string) => string[], drop: (ids: string[], status: string) => void}} of `ids`: all that go along with a card
 * @returns {() => void} a function that ends it
 */
export function draggable(root, { ids, drop }) {
  /** @type {{card: HTMLElement, x: number, y: number, touch: boolean, pointer: number, timer: number} | null} */
  let pressed = null;
  /** @type {{ids: string[], ghost: HTMLElement, from: string, over: HTMLElement | null} | null} */
  let dragging = null;
  let frame = 0;
  let at = { x: 0, y: 0 };

  const begin = () => {
    const { card } = pressed;
    const moved = ids(card.dataset.task);
    const ghost = card.cloneNode(true);
    ghost.classList.add("ghost");
    ghost.removeAttribute("data-task");
    ghost.setAttribute("aria-hidden", "true");
    ghost.style.width = `${card.offsetWidth}px`;
    if (moved.length > 1) ghost.append(h("span", { class: "ghost-count" }, `${moved.length} tasks`));
    document.body.append(ghost);
    document.body.classList.add("dragging");
    dragging = { ids: moved, ghost, from: card.dataset.status, over: null };
    announce(`Dragging ${moved.length === 1 ? card.dataset.task : `${moved.length} tasks`}. Escape cancels.`);
    follow();
  };

  const follow = () => {
    frame = 0;
    if (!dragging) return;
    dragging.ghost.style.transform = `translate(${at.x - 40}px, ${at.y - 16}px) rotate(1.2deg)`;
    const under = document.elementFromPoint(at.x, at.y)?.closest("[data-column]") ?? null;
    const over = under instanceof HTMLElement && root.contains(under) ? under : null;
    if (over !== dragging.over) {
      dragging.over?.removeAttribute("data-over");
      dragging.over = over;
      if (over) over.dataset.over = COLUMN[over.dataset.column].drop === "none" && over.dataset.column !== dragging.from ? "no" : "yes";
    }
    // Near an edge the board scrolls along.
    const box = root.getBoundingClientRect();
    const by = at.x < box.left + EDGE ? -12 : at.x > box.right - EDGE ? 12 : 0;
    if (by) { root.scrollLeft += by; frame = requestAnimationFrame(follow); }
  };

  const end = (dropped) => {
    clearTimeout(pressed?.timer);
    pressed = null;
    if (!dragging) return;
    const { ids: moved, ghost, over, from } = dragging;
    dragging = null;
    ghost.remove();
    over?.removeAttribute("data-over");
    document.body.classList.remove("dragging");
    cancelAnimationFrame(frame);
    frame = 0;
    const status = over?.dataset.column;
    if (dropped && status && (status !== from || moved.length > 1)) drop(moved, status);
    // The click that follows the release opens nothing.
    const swallow = (event) => { event.preventDefault(); event.stopPropagation(); };
    addEventListener("click", swallow, { capture: true, once: true });
    setTimeout(() => removeEventListener("click", swallow, { capture: true }), 50);
  };

  const down = (event) => {
    if (!(event.target instanceof Element) || event.button !== 0 || !event.isPrimary || pressed) return;
    const card = event.target.closest(".card");
    if (!card || event.target.closest("input, button")) return;
    const touch = event.pointerType === "touch";
    at = { x: event.clientX, y: event.clientY };
    pressed = { card, x: event.clientX, y: event.clientY, touch, pointer: event.pointerId, timer: touch ? setTimeout(() => { if (pressed && !dragging) { navigator.vibrate?.(10); begin(); } }, LONG_PRESS) : 0 };
  };
  const move = (event) => {
    if (!pressed || event.pointerId !== pressed.pointer) return;
    at = { x: event.clientX, y: event.clientY };
    if (!dragging) {
      if (Math.hypot(at.x - pressed.x, at.y - pressed.y) < SLOP) return;
      if (pressed.touch) { end(false); return; }
      begin();
    }
    event.preventDefault();
    if (!frame) frame = requestAnimationFrame(follow);
  };
  const up = (event) => { if (pressed && event.pointerId === pressed.pointer) { if (dragging) { at = { x: event.clientX, y: event.clientY }; follow(); } end(true); } };
  const cancel = (event) => { if (pressed && event.pointerId === pressed.pointer) end(false); };
  const key = (event) => { if (event.key === "Escape" && dragging) { event.preventDefault(); event.stopPropagation(); end(false); announce("Nothing was moved"); } };
  // While a finger drags, the page does not scroll and no menu opens.
  const still = (event) => { if (dragging) event.preventDefault(); };
  const menu = (event) => { if (pressed?.touch || dragging) event.preventDefault(); };
  const native = (event) => event.preventDefault();

  const listeners = [
    [root, "pointerdown", down, undefined], [document, "pointermove", move, undefined], [document, "pointerup", up, undefined], [document, "pointercancel", cancel, undefined],
    [document, "keydown", key, { capture: true }], [root, "touchmove", still, { passive: false }], [root, "contextmenu", menu, undefined], [root, "dragstart", native, undefined],
  ];
  for (const [target, name, listener, options] of listeners) target.addEventListener(name, listener, options);
  return () => { end(false); for (const [target, name, listener, options] of listeners) target.removeEventListener(name, listener, options); };
}
