// Who there is to do the work: which lanes and profiles can run here, and whose agents take messages.

import { verb } from "../api.js";
import { verbs } from "../drawer/server.js";

/** How long what is known of lanes and profiles is used again, in milliseconds. */
const KEPT = 60_000;

/** How long a page waits for the lanes and profiles, in milliseconds. */
const SOON = 500;

/** Asks the board of a worker. @param {string | undefined} board */
const on = (board) => (board ? { headers: { "X-Supervisor-Board": board } } : {});

/** Returns what a verb answers; null where the session may not call it. @param {string} name @param {object} [body] @param {object} [options] */
async function allowed(name, body, options) {
  return (await verbs()).has(name) ? verb(name, body, options) : null;
}

/** @type {{at: number, all: Promise<[any[] | null, any[] | null]>} | null} */
let known = null;

/** Returns the lanes and the profiles, each null where the session may not list them. */
function roster() {
  if (known === null || performance.now() - known.at > KEPT) {
    known = { at: performance.now(), all: Promise.all([allowed("lanes"), allowed("profiles")]) };
    known.all.catch(() => { known = null; });
  }
  return known.all;
}

/** Returns whether a profile only works on the board itself. @param {any} profile */
const isSystem = ({ profile, proposes }) => proposes || profile?.role === "orchestrator";

/** Returns whether this host has what a lane needs. @param {string} lane @returns {Promise<boolean>} */
async function canStart(lane) {
  const report = await allowed("check-lane", { name: lane }).catch(() => null);
  return report?.ok ?? true;
}

/**
 * Returns the names of the lanes and profiles whose workers can start here, in order; none where the session may not list them.
 * @param {string | undefined} board @returns {Promise<string[]>}
 */
export async function startable(board) {
  const [found, [lanes, profiles]] = await Promise.all([allowed("assignees", {}, on(board)), roster()]);
  if (found === null) return [];
  const rows = /** @type {{name: string, on_disk: boolean}[]} */ (Array.isArray(found) ? found : found.assignees);
  const can = async (/** @type {string} */ name) => {
    const profile = profiles?.find((one) => one.name === name);
    if (profile) return !profile.defect && !profile.cannot_run && !isSystem(profile);
    const lane = lanes?.find((one) => one.name === name);
    if (lane && !lane.lane) return false;
    return canStart(name);
  };
  const names = rows.filter((row) => row.on_disk).map((row) => row.name);
  const here = await Promise.all(names.map(can));
  return names.filter((_, at) => here[at]);
}

/** Returns whether the agents of a lane or a profile take messages; true where it is not known. @param {string | null | undefined} name @returns {Promise<boolean>} */
export async function takesMessages(name) {
  if (!name) return true;
  // The programs of profiles may be in a directory that does not answer: a page does not wait for that.
  const unknown = new Promise((resolve) => setTimeout(resolve, SOON, [null, null]));
  const [lanes, profiles] = await Promise.race([roster().catch(() => [null, null]), unknown]);
  const lane = profiles?.find((one) => one.name === name)?.lane ?? name;
  const found = lanes?.find((one) => one.name === lane)?.lane;
  return !found || Boolean(found.session);
}
