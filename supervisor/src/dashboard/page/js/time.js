// Times and durations as people read them. The API gives epoch seconds; ages follow the clock of the daemon.

let skew = 0;

/** Sets the clock by an answer of the daemon. @param {number | undefined} serverNow epoch seconds */
export function setClock(serverNow) {
  if (typeof serverNow === "number") skew = serverNow - Date.now() / 1000;
}

/** Returns the time of the daemon in epoch seconds. */
export const now = () => Date.now() / 1000 + skew;

/** Returns a duration in its largest unit: "now", "42 s", "5 min", "3 h", "2 d". @param {number} seconds */
export function short(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

/** Returns a duration in two units: "1 h 05 min". @param {number} seconds */
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  const two = (n) => String(n).padStart(2, "0");
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** Returns how long ago something was: "just now", "5 min ago". @param {number} at epoch seconds */
export function ago(at) {
  const past = now() - at;
  return past < 5 ? "just now" : `${short(past)} ago`;
}

const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

/** Returns the whole date and time, for titles. @param {number} at epoch seconds */
export const stamp = (at) => full.format(at * 1000);

/** Returns the time of day, with the date unless it is today. @param {number} at epoch seconds */
export function at(at) {
  const date = new Date(at * 1000);
  return date.toDateString() === new Date().toDateString() ? clock.format(date) : day.format(date);
}
