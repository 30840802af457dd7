// Has the daemon look at once for tasks to start.

import { call } from "../api.js";
import { verbs } from "../drawer/server.js";
import { problem, toast } from "../toast.js";

/** Whether the session may nudge the daemon, which is for operators: false until `nudging` is settled. */
export let mayNudge = false;
export const nudging = verbs().then((all) => { mayNudge = all.has("dispatch"); }, () => { mayNudge = true; });

/** Has the daemon look for tasks to start. */
export async function nudge() {
  try {
    await call("POST", "/dispatch");
    toast("The daemon looks for tasks to start");
  } catch (error) { problem(error); }
}
