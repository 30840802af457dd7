// Loads a module when it is first needed. Until a form or a dialog is there the keys of the page rest: what is typed meanwhile is meant for it.

import * as keys from "../keys.js";
import { toast } from "../toast.js";

/**
 * Returns a module that is being loaded. Where it does not load, that is shown here, and the returned promise is cancelled.
 * @template T @param {Promise<T>} module @returns {Promise<T>}
 */
export const later = (module) => beside(keys.rest(module));

/**
 * Returns a module that shows something beside what the keys work on: they go on while it loads.
 * @template T @param {Promise<T>} module @returns {Promise<T>}
 */
export async function beside(module) {
  try {
    return await module;
  } catch (error) {
    console.error(error);
    toast("This part of the page did not load", { kind: "error", hint: "Reload the page. The daemon may have been upgraded meanwhile." });
    throw new DOMException("the module did not load", "AbortError");
  }
}
