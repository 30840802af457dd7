// Does something at once, and then not more often than a page can show it, however many events come.

/**
 * @param {() => unknown} act
 * @param {number} [pause]  The least time from one to the next, in milliseconds.
 * @returns {{ask: () => void, stop: () => void}}
 */
export function soon(act, pause = 600) {
  let at = 0;
  let timer = 0;
  const run = () => {
    timer = 0;
    at = performance.now();
    act();
  };
  return {
    ask() {
      if (timer === 0) timer = setTimeout(run, Math.max(0, at + pause - performance.now()));
    },
    stop() {
      clearTimeout(timer);
      timer = -1;
    },
  };
}
