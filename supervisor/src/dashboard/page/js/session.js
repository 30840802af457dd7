// Whose session this is, as a button in the header, and the way to end it.

import * as api from "./api.js";
import { sheet } from "./dialog.js";
import { h, icon, put } from "./dom.js";
import { problem } from "./toast.js";
import { stamp } from "./time.js";

/** @typedef {{actor: string, tenant: string | null, ends: number}} Owner */

/** Whose session it is; null until that is known. @type {Owner | null} */
export let owner = null;

/** @param {() => void} ended  Called once the session has ended. */
async function open(ended) {
  const { actor, tenant, ends } = owner;
  const fact = (name, value) => h("div", null, h("dt", null, name), h("dd", null, value));
  const facts = h("dl", { class: "session-facts" }, fact("Signed in as", actor), fact("Tenant", tenant ?? "all tenants"), ends ? fact("Ends at the latest", stamp(ends)) : null);
  const { closed } = sheet({ title: "Session", content: [facts], actions: [
    h("button", { type: "submit", class: "button", value: "" }, "Close"),
    h("button", { type: "submit", class: "button danger", value: "out" }, "Sign out")] });
  if (await closed !== "out") return;
  try {
    await api.signOut();
  } catch (error) {
    problem(error);
    return;
  }
  ended();
}

/**
 * Asks whose session it is, and shows it.
 * @param {HTMLElement} button @param {{known: () => void, ended: () => void}} of `known`: called once it is known
 */
export async function start(button, { known, ended }) {
  try {
    const answer = await api.call("GET", "/session");
    if (!answer?.actor) return;
    owner = answer;
  } catch (error) {
    // The page goes on without the button; that the daemon does not answer is shown elsewhere.
    if (error instanceof api.Problem) return;
    throw error;
  }
  const { actor, tenant } = owner;
  const words = tenant ? `${actor}, tenant ${tenant}` : actor;
  put(button, icon("person"), h("span", { class: "cut account-name" }, tenant ?? actor));
  button.title = `Signed in as ${words}`;
  button.setAttribute("aria-label", `Session of ${words}`);
  button.addEventListener("click", () => open(ended));
  button.hidden = false;
  known();
}
