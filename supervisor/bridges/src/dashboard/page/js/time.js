// Times and durations as people read them. The API gives epoch seconds; ages follow the clock of the daemon.

let skew = 0;

/** Sets the clock by an answer of the daemon. @param {number | undefined} serverNow epoch seconds */
export function setClock(serverNow) {
  if (typeof serverNow === "number") skew = serverNow - Date.now() / 1000;
}

/** Returns the time of the daemon in epoch seconds. */
export const now = () => Date.now() / 1000 + skew;

const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

/** Returns a duration in its largest unit: "42s", "5m", "3h", "2d". @param {number} seconds */
export function short(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const [length, name] = s >= 86400 && s < 172800 ? UNITS[1] : UNITS.find(([length]) => s >= length) ?? UNITS[3];
  return `${Math.floor(s / Number(length))}${name}`;
}

/** Returns a duration in two units at most, as the command line writes it: "45s", "5m", "2h 10m", "3d 4h". @param {number} seconds */
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  const at = Math.max(0, UNITS.findIndex(([length]) => s >= length));
  if (s < 60) return `${s}s`;
  const [[length, name], [next, rest]] = [UNITS[at], UNITS[at + 1]];
  const left = Math.floor((s % Number(length)) / Number(next));
  return `${Math.floor(s / Number(length))}${name}${left ? ` ${left}${rest}` : ""}`;
}

/** Returns how long ago something was: "just now", "5m ago". @param {number} at epoch seconds */
export function ago(at) {
  const past = now() - at;
  return past < 5 ? "just now" : `${short(past)} ago`;
}

const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

const seconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const date = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** Returns a time on a scale: the time of day, and the date where a day begins. @param {number} at epoch seconds @param {number} step seconds to the next time */
export function tick(at, step) {
  const when = new Date(at * 1000);
  if (step >= 86400 || (when.getHours() === 0 && when.getMinutes() === 0 && step >= 60)) return date.format(when);
  return (step < 60 ? seconds : clock).format(when);
}

/** Returns the whole date and time, for titles. @param {number} at epoch seconds */
export const stamp = (at) => full.format(at * 1000);

/** Returns the time of day, with the date unless it is today. @param {number} at epoch seconds */
export function at(at) {
  const date = new Date(at * 1000);
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : day.format(date);
}
