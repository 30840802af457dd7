// Does something at once, and then not more often than a page can show it, however many events come.

/** The least time from the end of one to the begin of the next, in milliseconds, and as a multiple of what one takes. */
const LEAST = 40;
const SHARE = 3;

/**
 * @param {() => unknown} act  What it returns is waited for.
 * @returns {{ask: () => void, stop: () => void}}
 */
export function soon(act) {
  let next = 0;
  let timer = 0;
  let isRunning = false;
  let isWanted = false;
  let isStopped = false;
  const run = async () => {
    timer = 0;
    isRunning = true;
    isWanted = false;
    const began = performance.now();
    try {
      await act();
    } finally {
      isRunning = false;
      const ended = performance.now();
      next = ended + Math.max(LEAST, SHARE * (ended - began));
    }
    if (isWanted) ask();
  };
  const ask = () => {
    if (isStopped) return;
    if (isRunning) {
      isWanted = true;
      return;
    }
    if (timer !== 0) return;
    const early = next - performance.now();
    if (early > 0) timer = setTimeout(run, early);
    else run();
  };
  return {
    ask,
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
