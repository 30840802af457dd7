// Takes the code of a link out of the address, asks for a session, keeps its key, and leads on.

const KEY = "supervisor.key";

/** @param {string} id */
const at = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Where to go: a path of this page's own origin, whatever the address says. */
function target() {
  const asked = new URLSearchParams(location.search).get("to") || "/";
  try {
    const url = new URL(asked, location.origin);
    if (url.origin === location.origin && url.pathname !== "/open") return url.pathname + url.search;
  } catch {
    // It is no path.
  }
  return "/";
}

/** The key of the session; null where there is none, or no storage. */
function kept() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/**
 * @param {string} title
 * @param {string} text
 * @param {boolean} command
 */
function say(title, text, command) {
  at("title").textContent = title;
  at("text").textContent = text;
  at("command").hidden = !command;
  document.title = `${title} · Supervisor`;
}

/**
 * @param {string} method
 * @param {object} [body]
 */
async function session(method, body) {
  /** @type {Record<string, string>} */
  const headers = body ? { "Content-Type": "application/json" } : {};
  const key = kept();
  if (!body && key) headers["X-Supervisor-Dashboard"] = key;
  const reply = await fetch("/session", { method, headers, body: body && JSON.stringify(body) });
  return { status: reply.status, ok: reply.ok, body: await reply.json().catch(() => ({})) };
}

/**
 * @param {string} code
 * @param {boolean} replace
 */
async function begin(code, replace) {
  at("go").hidden = true;
  const reply = await session("POST", { code, replace });
  if (reply.ok) {
    try {
      localStorage.setItem(KEY, reply.body.key);
    } catch {
      say("The storage is off", "This browser keeps nothing for this page, and a session needs it. Allow it, then get another link:", true);
      return;
    }
    location.replace(target());
    return;
  }
  // A link that was followed before, from the history: its session may live.
  if (reply.status === 401 && (await lives())) {
    location.replace(target());
    return;
  }
  const detail = String(reply.body.detail || `The answer was ${reply.status}.`);
  const text = detail.charAt(0).toUpperCase() + detail.slice(1) + ".";
  if (reply.status === 409 && !replace) {
    say("Another session", `${text} Go on only if you have asked for this link yourself.`, false);
    at("go").hidden = false;
    at("go").onclick = () => void begin(code, true);
    at("go").focus();
    return;
  }
  say("This link does not work", `${text} Get another one in a terminal:`, true);
}

/** Whether this browser has a session. */
const lives = async () => kept() !== null && (await session("GET")).ok;

async function resume() {
  if (await lives()) {
    location.replace(target());
    return;
  }
  say("No session", "Get a link in a terminal, as the user who runs the daemon:", true);
}

/** Takes the code out of the address, where there is one, and begins a session with it. */
async function start() {
  const code = location.hash.slice(1);
  // It stays neither in the address nor in the history.
  if (code) history.replaceState(null, "", location.pathname + location.search);
  try {
    await (code ? begin(code, false) : resume());
  } catch {
    say("No answer", "The daemon does not answer. Start it, then get a link:", true);
  }
}

// A link that is pasted into this tab changes only the fragment, and loads nothing.
addEventListener("hashchange", () => {
  if (location.hash.length > 1) void start();
});
await start();
