// The page of health: whether all is well, rates, what this host promises, holds and breakers, queues, problems, disk and spend.

import { verb } from "../api.js";
import { h, put, text } from "../dom.js";
import { pageKeys } from "../parts/pagekeys.js";
import * as live from "../live.js";
import { tenant as chosenTenant } from "../route.js";
import { duration } from "../time.js";
import { problem } from "../toast.js";
import { verbs } from "../drawer/server.js";
import { checks } from "../health/checks.js";
import { disk } from "../health/disk.js";
import { holdList } from "../health/holds.js";
import { problems } from "../health/problems.js";
import { queues } from "../health/queues.js";
import { rates } from "../health/rates.js";
import { spend } from "../health/spend.js";
import { capital } from "../parts/reason.js";
import { repeat } from "../parts/repeat.js";
import { waiting } from "../parts/waiting.js";
import { restate, state } from "../parts/state.js";

/** The pause between two looks, in milliseconds. */
const PAUSE = 4000;

/** @param {HTMLElement} main */
export function mount(main) {
  const status = state("ok", "…");
  const daemon = h("span", { class: "muted number" });
  const troubles = h("ul", { class: "troubles", "aria-live": "polite", "aria-label": "Troubles", hidden: true });
  const [figures, host, wrong, queue, used, room] = [rates(), checks(), problems(), queues(), spend(), disk()];
  const held = holdList(() => polled.now());
  const rated = h("section", { class: "work-section", "aria-labelledby": "rates-title" }, h("h2", { id: "rates-title" }, "Rates ", h("span", { class: "page-count" }, "since this page was opened")), figures.element);
  const page = h("div", { class: "page health-page" },
    h("div", { class: "page-head" }, h("h1", null, "Health"), status, daemon), troubles,
    rated,
    h("div", { class: "health-columns" },
      h("div", { class: "health-column" }, wrong.element, host.element),
      h("div", { class: "health-column" }, held.element, queue.element, used.element, room.element)));
  const reveal = waiting(page);
  put(main, page);

  // A session of a tenant is shown what it may ask for, and asks for nothing else.
  const ask = () => verbs().then((may) => {
    for (const [name, part] of /** @type {const} */ ([["doctor", host], ["spend", used], ["gc", room], ["diagnostics", wrong]])) part.element.hidden = !may.has(name);
    rated.hidden = !may.has("metrics");
    held.allow({ hold: may.has("hold"), release: may.has("release") });
    if (may.has("doctor")) host.read();
    return { may, spent: may.has("spend") ? used.read(chosenTenant()) : undefined };
  });
  let allowed = ask();
  allowed.catch(() => undefined);
  let failed = false;
  let isClosed = false;
  const polled = repeat(async () => {
    const tenant = chosenTenant();
    const own = tenant ? { tenant } : {};
    try {
      const { may, spent } = await allowed;
      const [report, holds, stats, diagnosed] = await Promise.all([verb("status", own), verb("holds"), verb("stats", own), may.has("diagnostics") ? verb("diagnostics") : []]);
      if (isClosed) return;
      failed = false;
      restate(status, report.health);
      text(daemon, report.daemon ? `supervisor ${report.daemon.version}, up ${duration(report.daemon.uptime_seconds)}, pid ${report.daemon.pid}` : "no daemon runs");
      const all = [...report.troubles, ...(report.daemon?.paused ? [`Nothing is started: ${report.daemon.paused}`] : []), ...(report.daemon?.stopping ? [`The daemon is stopping: ${report.daemon.stopping}`] : [])];
      if (troubles.textContent !== all.join("")) put(troubles, all.map((trouble) => h("li", null, capital(trouble))));
      troubles.hidden = all.length === 0;
      held.update(Array.isArray(holds) ? holds : [], report.broken);
      wrong.update(diagnosed, report);
      queue.update(report, stats);
      room.update(report);
      if (may.has("metrics")) await figures.update(report);
      await spent;
    } catch (error) {
      // The connection of the page says that it is lost; one message is enough.
      if (!failed) problem(error);
      failed = true;
    }
    reveal();
  }, PAUSE);
  const stopLive = live.on(() => polled.now());
  const stopGap = live.onGap(() => {
    allowed = ask();
    allowed.catch(() => undefined);
    polled.now();
  });
  const stopKeys = pageKeys({ keys: "r", label: "Check this host again", group: "Health", run: () => void host.read() });
  return {
    update() {
      polled.now();
    },
    unmount() {
      isClosed = true;
      polled.stop();
      stopLive();
      stopGap();
      stopKeys();
    },
  };
}
