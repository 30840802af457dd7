// Asks again and again while the page is seen: for figures that no event announces, such as memory and processor time.

/**
 * @param {() => Promise<void>} act
 * @param {number} pause  Between the end of one and the next, in milliseconds.
 * @returns {{now: () => void, stop: () => void}}
 */
export function repeat(act, pause) {
  /** The least time between two looks that events ask for, in milliseconds, and as a multiple of what a look takes. */
  const [least, share] = [100, 3];
  let askedAt = Number.NEGATIVE_INFINITY;
  let took = 0;
  let timer = 0;
  let isStopped = false;
  let isRunning = false;
  let isWanted = false;
  const round = async () => {
    clearTimeout(timer);
    if (isStopped || isRunning) return;
    isRunning = true;
    const began = performance.now();
    try {
      await act();
    } finally {
      isRunning = false;
      took = performance.now() - began;
    }
    if (isStopped) return;
    if (isWanted) {
      isWanted = false;
      now();
    } else if (document.visibilityState === "visible") {
      timer = setTimeout(round, pause);
    }
  };
  const now = () => {
    if (isStopped) return;
    if (isRunning) {
      isWanted = true;
      return;
    }
    // The first event has its look at once; of many that come together, the rest have one together.
    const early = askedAt + Math.max(least, share * took) - performance.now();
    clearTimeout(timer);
    if (early > 0) {
      timer = setTimeout(now, early);
      return;
    }
    askedAt = performance.now();
    round();
  };
  const seen = () => {
    if (document.visibilityState === "visible") round();
  };
  document.addEventListener("visibilitychange", seen);
  round();
  return {
    now,
    stop() {
      isStopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    },
  };
}
