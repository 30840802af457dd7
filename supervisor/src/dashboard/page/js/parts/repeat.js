// Asks again and again while the page is seen: for figures that no event announces, such as memory and processor time.

/**
 * @param {() => Promise<void>} act
 * @param {number} pause  Between the end of one and the next, in milliseconds.
 * @returns {{now: () => void, stop: () => void}}
 */
export function repeat(act, pause) {
  /** Events may ask for a look between two, and many come at once. */
  const least = pause / 3;
  let at = Number.NEGATIVE_INFINITY;
  let timer = 0;
  let isStopped = false;
  let isRunning = false;
  let isWanted = false;
  const round = async () => {
    clearTimeout(timer);
    if (isStopped) return;
    if (isRunning) {
      isWanted = true;
      return;
    }
    const early = at + least - performance.now();
    if (early > 0) {
      timer = setTimeout(round, early);
      return;
    }
    isRunning = true;
    at = performance.now();
    try {
      await act();
    } finally {
      isRunning = false;
    }
    if (isStopped) return;
    if (isWanted) {
      isWanted = false;
      round();
    } else if (document.visibilityState === "visible") {
      timer = setTimeout(round, pause);
    }
  };
  const seen = () => {
    if (document.visibilityState === "visible") round();
  };
  document.addEventListener("visibilitychange", seen);
  round();
  return {
    now: round,
    stop() {
      isStopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    },
  };
}
