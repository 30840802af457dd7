// The rates of the daemon while the page is open: workers, events, commits and memory.

import { call } from "../api.js";
import { h } from "../dom.js";
import { bytes } from "../money.js";
import { figure } from "../chart/figure.js";

/** A sum of the metric with a name, in the text of OpenMetrics. @param {string} all @param {string} name */
function metric(all, name) {
  let sum = null;
  for (const line of all.split("\n")) {
    if (!line.startsWith(name) || !/^[{ ]/.test(line.slice(name.length))) continue;
    const value = Number(line.slice(line.lastIndexOf(" ") + 1));
    if (Number.isFinite(value)) sum = (sum ?? 0) + value;
  }
  return sum;
}

const perSecond = (/** @type {number} */ value) => `${value < 10 ? value.toFixed(1) : Math.round(value)}/s`;

export function rates() {
  const [workers, events, commits, memory] = [
    figure("Workers", String), figure("Events", perSecond), figure("Commits", perSecond), figure("Daemon memory", bytes, { most: 1 << 20 }),
  ];
  const element = h("div", { class: "figures" }, [workers, events, commits, memory].map((one) => one.element));
  /** @type {{at: number, events: number | null, commits: number | null} | null} */
  let before = null;
  return {
    element,
    /** @param {any} status */
    async update(status) {
      if (!status.daemon) return;
      const all = await call("GET", "/metrics");
      const now = { at: performance.now(), events: metric(all, "supervisor_events_total"), commits: metric(all, "supervisor_commits_total") };
      workers.add(status.daemon.taken);
      if (status.daemon.memory_bytes) memory.add(status.daemon.memory_bytes);
      if (before && now.at > before.at) {
        const seconds = (now.at - before.at) / 1000;
        if (now.events !== null && before.events !== null) events.add(Math.max(0, now.events - before.events) / seconds);
        if (now.commits !== null && before.commits !== null) commits.add(Math.max(0, now.commits - before.commits) / seconds);
      }
      before = now;
    },
  };
}
