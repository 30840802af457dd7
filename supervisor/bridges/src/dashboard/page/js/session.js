// Whose session this is, as a button in the header, and the way to end it.

import * as api from "./api.js";
import { h, icon, put } from "./dom.js";
import { problem } from "./toast.js";

/** @typedef {{actor: string, tenant: string | null, ends: number, fields: Field[]}} Owner */
/** A plain field of a task that `edit` changes. @typedef {{name: string, request: string, kind: "word" | "number" | "amount" | "span", label: string, note: string}} Field */

/** Whose session it is; null until that is known. @type {Owner | null} */
export let owner = null;

/** @type {(fields: Field[]) => void} */
let declare;
/** The plain fields of a task that `edit` changes, once the session is known. @type {Promise<Field[]>} */
export const fields = new Promise((known) => { declare = known; });

/**
 * Asks whose session it is, and shows it.
 * @param {HTMLElement} button @param {{known: () => void, ended: () => void}} of `known`: called once it is known
 */
export async function start(button, { known, ended }) {
  try {
    const answer = await api.call("GET", "/session");
    if (!answer?.actor) return;
    owner = answer;
    declare(owner.fields ?? []);
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
  button.addEventListener("click", () => void import("./signout.js").then((all) => all.open(owner, ended)).catch(problem));
  button.hidden = false;
  known();
}
