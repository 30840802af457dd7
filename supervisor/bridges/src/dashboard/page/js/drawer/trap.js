// Where the drawer covers the whole page, the focus stays inside it and screen readers get nothing of what is behind it.

const NARROW = "(max-width: 767px)";
const FOCUSABLE = "a[href], button, input, textarea, select, summary, [tabindex]:not([tabindex='-1'])";

/** Keeps the focus in the drawer as long as it covers the page. Returns a function that ends it. @param {HTMLElement} place */
export function trap(place) {
  const query = matchMedia(NARROW);
  const behind = document.querySelectorAll("#main, #top, #banner, .skip");
  const apply = () => {
    for (const element of behind) (element).inert = query.matches;
    if (query.matches) {
      place.setAttribute("role", "dialog");
      place.setAttribute("aria-modal", "true");
    } else {
      place.setAttribute("role", "complementary");
      place.removeAttribute("aria-modal");
    }
  };
  const pressed = (event) => {
    if (event.key !== "Tab" || !query.matches || event.defaultPrevented) return;
    const all = [...place.querySelectorAll(FOCUSABLE)].filter((element) => element.checkVisibility() && !element.disabled);
    const first = all[0];
    const last = all.at(-1);
    const at = document.activeElement;
    if (event.shiftKey && (at === first || at === place)) last?.focus();
    else if (!event.shiftKey && at === last) first?.focus();
    else return;
    event.preventDefault();
  };
  query.addEventListener("change", apply);
  place.addEventListener("keydown", pressed);
  apply();
  return () => {
    query.removeEventListener("change", apply);
    place.removeEventListener("keydown", pressed);
    for (const element of behind) (element).inert = false;
    place.setAttribute("role", "complementary");
    place.removeAttribute("aria-modal");
  };
}
