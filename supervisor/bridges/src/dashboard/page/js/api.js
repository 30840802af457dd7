// Calls the API of the daemon. Adds the key of the session and the board, and turns refusals into `Problem`s.

export const KEY = "supervisor.key";
const TIMEOUT = 30_000;
let board = "";
let onUnauthorized = () => {};
/** Whether a request had no answer, until all is read again. */
export const lost = { any: false };

/** A refusal of the daemon, or that it does not answer (`code` "unreachable"). */
export class Problem extends Error {
  /** @param {{status?: number, code?: string, detail?: string, hint?: string, title?: string}} of */
  constructor(of) {
    super(of.detail || of.title || "The request failed");
    this.name = "Problem";
    /** The status of HTTP; 0 without an answer. */
    this.status = of.status ?? 0;
    /** A stable word, such as `not_found`. */
    this.code = of.code ?? "failed";
    /** What is wrong. */
    this.detail = this.message;
    /** What to do; empty where nothing is known. */
    this.hint = of.hint ?? "";
  }
}

/** Sets the board that the next calls are about. Empty means the default one. @param {string} name */
export const setBoard = (name) => { board = name; };

/** Names what happens once the session has ended. @param {() => void} then */
export const whenUnauthorized = (then) => { onUnauthorized = then; };
/** The session has ended, as a stream says it. */
export const signedOut = () => onUnauthorized();

/** Returns the headers that every request carries. */
export function headers() {
  const all = {};
  let key = null;
  try { key = localStorage.getItem(KEY); } catch { /* storage is off: the daemon refuses and says why */ }
  if (key) all["X-Supervisor-Dashboard"] = key;
  if (board) all["X-Supervisor-Board"] = board;
  return all;
}

/** @param {string} path @param {Record<string, any>} [query] */
function address(path, query) {
  const full = path.startsWith("/api/") || path === "/session" ? path : `/api/v1${path}`;
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return pairs.length ? `${full}?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}` : full;
}

/** @param {Response} response */
async function refusal(response) {
  let document = {};
  try { document = await response.json(); } catch { /* not a problem document: the status has to do */ }
  const fallback = `The daemon answered ${response.status} ${response.statusText}`.trim();
  return new Problem({ ...document, status: response.status, detail: document.detail || document.title || fallback });
}

/**
 * Sends a request and returns the response as it is. A path is under `/api/v1`, unless it says `/api/` itself or is `/session`.
 * @param {string} method @param {string} path
 * @param {{body?: any, query?: Record<string, any>, signal?: AbortSignal, timeout?: number, headers?: Record<string, string>}} [options]
 *   `body`: a value, sent as JSON, or a Blob, sent as it is. `timeout`: milliseconds; 0 for none.
 * @returns {Promise<Response>}
 */
export async function request(method, path, options = {}) {
  const { body, query, signal, timeout = TIMEOUT } = options;
  const sent = { ...headers(), ...options.headers };
  let content;
  if (body instanceof Blob) {
    content = body;
    if (!sent["Content-Type"]) sent["Content-Type"] = body.type || "application/octet-stream";
  } else if (body !== undefined) {
    content = JSON.stringify(body);
    sent["Content-Type"] = "application/json";
  }
  // A change that is sent again after a lost answer is not made twice.
  if (method !== "GET") sent["X-Request-Id"] = crypto.randomUUID();
  const signals = [signal, timeout ? AbortSignal.timeout(timeout) : null].filter(Boolean);
  const send = () => fetch(address(path, query), {
    method, headers: sent, body: content, credentials: "same-origin", cache: "no-store",
    signal: signals.length ? AbortSignal.any(signals) : undefined,
  });
  let response;
  try {
    response = await send().catch((error) => {
      if (signal?.aborted || error.name === "TimeoutError") throw error;
      return new Promise((resolve, reject) => setTimeout(() => send().then(resolve, reject), 300));
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    lost.any = true;
    throw new Problem(error.name === "TimeoutError"
      ? { code: "timeout", detail: "The daemon did not answer in time", hint: "Try again. A change may have been made: look before you repeat it." }
      : { code: "unreachable", detail: "The daemon does not answer", hint: "Run `supervisor status` on its host. `supervisor dashboard` prints a new link." });
  }
  if (response.ok) return response;
  const problem = await refusal(response);
  if (response.status === 401) onUnauthorized();
  throw problem;
}

/**
 * Sends a request and returns what its answer says, parsed.
 * @param {string} method @param {string} path @param {Parameters<typeof request>[2]} [options] @returns {Promise<any>}
 */
export async function call(method, path, options) {
  const response = await request(method, path, options);
  const type = response.headers.get("Content-Type") ?? "";
  return type.includes("json") ? response.json() : response.text();
}

/** Calls a verb by its name: `verb("answer", {task_id, answer})`. @param {string} name @param {object} [body] @param {Parameters<typeof request>[2]} [options] */
export const verb = (name, body = {}, options = {}) => call("POST", `/verbs/${name}`, { ...options, body });
