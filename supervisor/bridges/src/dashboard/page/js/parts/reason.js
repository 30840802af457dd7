// Why a task waits, in words.

/** A text with a capital letter. @param {string} text */
export const capital = (text) => (text ? text[0].toUpperCase() + text.slice(1) : "");

/**
 * What a task waits for, as the daemon says it: a word for programs, a sentence, and what of it is known by itself.
 * @typedef {{code: string, text: string, until?: number, parents?: {id: string, status: string, title: string}[], more_parents?: number,
 *   broken?: {what: string, why: string}}} Waiting
 */

/** Returns what a task waits for in words that fit on a card: the titles of tasks without their ids, and what is broken before why. @param {Waiting} waits */
export function inShort({ text, parents, more_parents: more, broken }) {
  if (broken) return capital(`${broken.what}: ${broken.why}`);
  if (!parents?.length) return capital(text);
  return `Waits for ${parents.map((parent) => `${parent.title} (${parent.status})`).join(", ")}${more ? ` and ${more} more` : ""}`;
}

/** Returns why a task waits, in whole sentences: what a person or a worker has written of its block, else what the daemon says. @param {Waiting} waits @param {string | null} blocked */
export const reason = (waits, blocked) => (blocked ? capital(blocked) : waits.parents?.length ? inShort(waits) : capital(waits.text));
