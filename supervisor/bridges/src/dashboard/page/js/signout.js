// The sheet of the session, with the way to end it. It is loaded when it is first asked for.

import { KEY, Problem, request } from "./api.js";
import { sheet } from "./dialog.js";
import { h } from "./dom.js";
import { stamp } from "./time.js";
import { problem } from "./toast.js";

/** Ends the session of this browser. */
async function signOut() {
  try {
    await request("DELETE", "/session");
  } catch (error) {
    // Without its last session the dashboard listens no more, and its answer may be lost. The key goes in any case.
    if (!(error instanceof Problem) || (error.code !== "unreachable" && error.status !== 401)) throw error;
  }
  try { localStorage.removeItem(KEY); } catch { /* storage is off: no key is kept */ }
}

/** @param {import("./session.js").Owner} owner @param {() => void} ended  Called once the session has ended. */
export async function open({ actor, tenant, ends }, ended) {
  const fact = (name, value) => h("div", null, h("dt", null, name), h("dd", null, value));
  const facts = h("dl", { class: "session-facts" }, fact("Signed in as", actor), fact("Tenant", tenant ?? "all tenants"), ends ? fact("Ends at the latest", stamp(ends)) : null);
  const { closed } = sheet({ title: "Session", content: [facts], actions: [
    h("button", { type: "submit", class: "button", value: "" }, "Close"),
    h("button", { type: "submit", class: "button danger", value: "out" }, "Sign out")] });
  if (await closed !== "out") return;
  try {
    await signOut();
  } catch (error) {
    problem(error);
    return;
  }
  ended();
}
