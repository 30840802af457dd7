// The page of missions: all of them with how far they are, or one of them.

import { Problem, verb } from "../api.js";
import { h, put } from "../dom.js";
import { pageKeys } from "../parts/pagekeys.js";
import * as live from "../live.js";
import { link, set, state as route, tenant as chosenTenant } from "../route.js";
import { ago } from "../time.js";
import { usd } from "../money.js";
import { problem } from "../toast.js";
import { create } from "../missions/acts.js";
import { progress } from "../missions/limits.js";
import { state } from "../parts/state.js";
import { waiting } from "../parts/waiting.js";
import { soon } from "../parts/soon.js";
import { open } from "./mission.js";

/** The list of all missions. @param {HTMLElement} place */
function all(place) {
  const list = h("ul", { class: "missions", "aria-label": "Missions" });
  const empty = h("div", { class: "empty", hidden: true }, h("p", { class: "empty-title" }, "No missions"),
    h("p", { class: "muted" }, "A mission is a goal: its tasks share limits, and are shown, paused and cancelled as one."), h("button", { type: "button", class: "button primary", onclick: () => create().catch(problem) }, "New mission"));
  const over = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", onchange: () => set({ all: over.checked || null }) }));
  const more = h("p", { class: "muted", hidden: true }, "There are more, older ones.");
  const page = h("div", { class: "page" },
    h("div", { class: "page-head" }, h("h1", null, "Missions"), h("span", { class: "push" }), h("label", { class: "check" }, over, "Done and cancelled"), h("button", { type: "button", class: "button", onclick: () => create().catch(problem) }, "New mission")),
    list, empty, more);
  const reveal = waiting(page);
  put(place, page);
  let isClosed = false;
  async function read() {
    const { all: isAll } = route().query;
    const tenant = chosenTenant();
    let answer;
    try {
      answer = await verb("missions", { all: Boolean(isAll), ...(tenant ? { tenant } : {}) });
    } catch (error) {
      // What is shown stays, and the connection of the page says that it is lost.
      if (!(error instanceof Problem) || error.code !== "not_permitted" || isClosed) throw error;
      put(list);
      empty.hidden = false;
      put(empty, h("p", { class: "empty-title" }, "Missions are for operators"), h("p", { class: "muted" }, error.detail));
      return;
    }
    if (isClosed) return;
    put(list, answer.missions.map((/** @type {any} */ mission) =>
      h("li", { class: "mission" },
        h("div", { class: "mission-name" }, h("a", { href: link(`/missions/${mission.id}`) }, mission.title), h("span", { class: "muted" }, `${mission.created_by ?? "somebody"}, ${ago(mission.created_at)}`)),
        state(mission.question ? "waiting" : mission.state, mission.question ? "asks you" : undefined),
        h("div", { class: "mission-progress" }, h("span", { class: "number" }, `${mission.done} of ${mission.tasks} done`), progress(mission.by_status, mission.done, mission.tasks)),
        h("span", { class: "number muted" }, `${usd(mission.use.cost_micros.used)} of ${usd(mission.use.cost_micros.limit)}`))));
    empty.hidden = answer.missions.length > 0;
    more.hidden = !answer.more;
  }
  read().catch(problem).finally(reveal);
  const stopKeys = pageKeys({ keys: "c", label: "New mission", group: "Missions", run: () => void create().catch(problem) });
  return {
    read,
    update(/** @type {import("../route.js").State} */ now) {
      if (over.checked !== Boolean(now.query.all)) over.checked = Boolean(now.query.all);
      read().catch(problem);
    },
    unmount() {
      isClosed = true;
      stopKeys();
    },
  };
}

/** @param {HTMLElement} main */
export function mount(main) {
  /** @type {{id: string | undefined, page: ReturnType<typeof all>} | null} */
  let shown = null;
  const again = soon(() => shown?.page.read().catch(problem));
  const stopLive = live.on(again.ask);
  const stopGap = live.onGap(again.ask);
  return {
    update(/** @type {import("../route.js").State} */ now) {
      const id = now.params[0];
      if (!shown || shown.id !== id) {
        shown?.page.unmount();
        shown = { id, page: id ? open(main, id) : all(main) };
        if (!id) document.title = "Missions · supervisor";
        if (!id) return;
      }
      shown.page.update(now);
    },
    unmount() {
      shown?.page.unmount();
      again.stop();
      stopLive();
      stopGap();
    },
  };
}
