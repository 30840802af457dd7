// Numbers with their words, and what else is written the same way on several pages.

import { bytes, count, usd } from "../money.js";
import { at, duration, now } from "../time.js";

const NOTHING = "–";

/** What stands where nothing is known. @template T @param {(value: T) => string} write @returns {(value: T | null | undefined) => string} */
const orNothing = (write) => (value) => (value === null || value === undefined ? NOTHING : write(value));

export const bytesOr = orNothing(bytes);
export const countOr = orNothing(count);
export const usdOr = orNothing(usd);
export const durationOr = orNothing(duration);

/** How many there are of a thing. @param {number} number @param {string} one @param {string} [many] */
export const counted = (number, one, many = `${one}s`) => `${number.toLocaleString("en-US")} ${number === 1 ? one : many}`;

/** Until when something is, and how long that takes. @param {number | null | undefined} time  Of the epoch, in seconds. */
export function until(time) {
  if (time === null || time === undefined) return "until it is released";
  const left = time - now();
  return left <= 0 ? "ends now" : `until ${at(time)} (${duration(left)})`;
}

/** A word of the API as people write it. @param {string} word */
export const written = (word) => word.replaceAll("_", " ");
