// Asks again and again while the page is seen: for figures that no event announces, such as memory and processor time.

/**
 * @param {() => Promise<void>} act
 * @param {number} pause  Between the end of one and the next, in milliseconds.
 * @returns {{now: () => void, stop: () => void}}
 */
export function repeat(act, pause) {
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
    isRunning = true;
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
