// The URL is the state: which page, what of it, which filters, and which task is open in the drawer.

/**
 * @typedef {{page: string, params: string[], query: Record<string, string>}} State
 *   `/runs/t_1/3?board=b&task=t_2` is `{page: "runs", params: ["t_1", "3"], query: {board: "b", task: "t_2"}}`.
 */

/** What a link to another page keeps. */
const KEPT = ["board", "tenant"];
const listeners = new Set();

/** @returns {State} */
function read() {
  const [page, ...params] = location.pathname.split("/").filter(Boolean).map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  // A review without a task is the list of them.
  return { page: page === "review" && params.length === 0 ? "reviews" : page ?? "board", params, query: Object.fromEntries(new URLSearchParams(location.search)) };
}

let current = read();

/** Returns the state. */
export const state = () => current;

/** Calls a function after each change of the URL. @param {(now: State, before: State) => void} listener @returns {() => void} a function that ends it */
export function on(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed() {
  const before = current;
  current = read();
  for (const listener of [...listeners]) listener(current, before);
}

/** What stands in the address for all tenants, where another one is configured. */
export const ALL = "*";

/** The tenant that the page is filtered by; undefined for all. @param {State} [of] @returns {string | undefined} */
export const tenant = ({ query } = current) => (query.tenant && query.tenant !== ALL ? query.tenant : undefined);

/** @param {string} path @param {Record<string, any>} query */
function href(path, query) {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, value === true ? "1" : String(value)])).toString();
  return search ? `${path}?${search}` : path;
}

/**
 * Returns the address of another page, with the board and the tenant of this one: `link("/runs/t_1/3", {task: "t_1"})`.
 * @param {string} path @param {Record<string, any>} [query]
 */
export function link(path, query = {}) {
  const kept = Object.fromEntries(KEPT.filter((name) => current.query[name]).map((name) => [name, current.query[name]]));
  return href(path, { ...kept, ...query });
}

/** Returns the address of this page with some of its query changed; null removes a name. @param {Record<string, any>} query */
export const here = (query) => href(location.pathname, { ...current.query, ...query });

/** @param {string} url @param {boolean} [replace] */
function move(url, replace = false) {
  if (url === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", url);
  changed();
}

/** Goes to another page, as a click on its link does. @param {string} path @param {Record<string, any>} [query] */
export const go = (path, query) => move(link(path, query));

/**
 * Changes some of the query of this page; null removes a name.
 * @param {Record<string, any>} query @param {{replace?: boolean}} [options] `replace`: without an entry in the history, as for typing
 */
export const set = (query, options = {}) => move(here(query), options.replace);

/** Takes over the links of the page and the buttons Back and Forward. */
export function start() {
  addEventListener("popstate", changed);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const anchor = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!anchor || anchor.target || anchor.hasAttribute("download") || anchor.origin !== location.origin) return;
    if (anchor.getAttribute("href").startsWith("#") || /^\/(api|assets|open|session)(\/|$)/.test(anchor.pathname)) return;
    event.preventDefault();
    move(anchor.pathname + anchor.search);
  });
}
