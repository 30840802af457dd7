// A page that has no data yet keeps its place empty, so that nothing moves when the data comes.

/** Hides what a page has until it is shown. @param {HTMLElement} page @returns {() => void} shows it */
export function waiting(page) {
  page.classList.add("is-waiting");
  page.setAttribute("aria-busy", "true");
  return () => {
    page.classList.remove("is-waiting");
    page.removeAttribute("aria-busy");
  };
}
