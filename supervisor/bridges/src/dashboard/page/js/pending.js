// How many tasks are in review: the number beside "Review" in the navigation.

import { verb } from "./api.js";
import * as live from "./live.js";
import { tenant } from "./route.js";

/** The pause before a change is counted, in milliseconds: many come together. */
const PAUSE = 500;
/** Events after which a task is in the status that it had. */
const QUIET = new Set(["heartbeat", "commented", "spawned", "edited", "linked", "unlinked", "attached", "tool_called", "egress", "egress_denied", "mentioned"]);

/** How many there are; null until that is known. @type {number | null} */
export let reviews = null;

/** Counts now and after changes. @param {() => void} changed  Called where the number is another one. @returns {() => void} counts anew, for another board or tenant */
export function start(changed) {
  let timer = 0;
  const read = async () => {
    timer = 0;
    const own = tenant();
    // The number is an aid: where it cannot be read, the connection of the page says why.
    const stats = await verb("stats", own ? { tenant: own } : {}).catch(() => null);
    const now = stats ? stats.by_status.review ?? 0 : reviews;
    if (now === reviews) return;
    reviews = now;
    changed();
  };
  const ask = (pause = PAUSE) => { timer ||= setTimeout(read, pause); };
  live.on((events) => { if (events.some((event) => event.task_id && !QUIET.has(event.kind))) ask(); });
  live.onGap(() => ask());
  ask(0);
  return () => ask(0);
}
