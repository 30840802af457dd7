// The board: a column per status.

/** @param {HTMLElement} main */
export function mount(main) {
  main.textContent = "";
  return {};
}
