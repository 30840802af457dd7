// What a person reads of a line that an agent writes: its words, the calls of its tools and what came of them, as `attach` shows them.
// A line that is no JSON is shown as it is; what has a form that nobody here knows is left out.

import { plain } from "./ansi.js";

/** More of a call or of its result is cut off. */
const SHORT = 200;

/** @typedef {Record<string, any>} Json @typedef {(line: Json) => (string[] | string | null)[]} Reader */

const text = (/** @type {any} */ value) => (typeof value === "string" && value.trim() !== "" ? value : null);
const list = (/** @type {any} */ value) => (Array.isArray(value) ? value : []);

/** A value in one line, cut. @param {any} value */
function short(value) {
  const whole = typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);
  const line = plain(whole.replace(/\s+/g, " ").trim());
  return line.length > SHORT ? `${line.slice(0, SHORT)}…` : line;
}

const words = (/** @type {any} */ said) => (text(said) === null ? null : said.trimEnd().split("\n").map(plain));
const heard = (/** @type {any} */ said) => (text(said) === null ? null : said.split("\n").map((/** @type {string} */ line) => `\x1b[1m> ${plain(line)}\x1b[0m`));
const call = (/** @type {any} */ name, /** @type {any} */ input) => `\x1b[36m→ ${`${short(name)} ${short(input?.command ?? input)}`.trimEnd()}\x1b[0m`;
const note = (/** @type {string} */ said) => `\x1b[2m[${said}]\x1b[0m`;
const outcome = (/** @type {any} */ value) => `\x1b[2m← ${short(Array.isArray(value) ? value.map((block) => text(block?.text)).filter(Boolean).join(" ") : value)}\x1b[0m`;
const session = (/** @type {Json} */ line) => note(`session ${short(line.session_id)}${text(line.model) ? `, model ${short(line.model)}` : ""}`);
const ended = (/** @type {Json} */ used, /** @type {string} */ input, /** @type {string} */ output, how = "") => note(`turn ended${how}, ${used?.[input] ?? 0} tokens in, ${used?.[output] ?? 0} out`);

/** @type {Reader} */
function claude(line) {
  const blocks = list(line.message?.content);
  if (line.type === "system" && line.subtype === "init") return [session(line)];
  if (line.type === "system" && line.subtype === "api_retry") return [note(`its service refuses it (${short(line.error_status)}), it tries again`)];
  if (line.type === "assistant") return blocks.map((block) => (block?.type === "text" ? words(block.text) : block?.type === "tool_use" ? call(block.name ?? "tool", block.input) : null));
  if (line.type === "user" && line.isReplay === true) return [heard(text(line.message?.content) ?? blocks[0]?.text)];
  if (line.type === "user") return blocks.filter((block) => block?.type === "tool_result").map((block) => outcome(block.content));
  if (line.type !== "result") return [];
  const steps = typeof line.num_turns === "number" ? ` after ${line.num_turns} steps` : "";
  const cost = typeof line.total_cost_usd === "number" ? `, ${line.total_cost_usd.toFixed(2)} USD` : "";
  return [note(`turn ${line.is_error === true ? "failed" : "ended"}${steps}${cost}`)];
}

/** @type {Reader} */
function codex(line) {
  const item = line.item ?? {};
  switch (`${line.type} ${item.type ?? ""}`.trim()) {
    case "item.completed agent_message": return [words(item.text)];
    case "item.started command_execution": return [call("shell", item.command)];
    case "item.completed command_execution": return [outcome(item.aggregated_output)];
    case "item.completed mcp_tool_call": return [call(item.tool, item.arguments)];
    case "item.completed file_change": return [call("edit", item.changes)];
    case "thread.started": return [note(`session ${short(line.thread_id)}`)];
    case "turn.completed": return [ended(line.usage, "input_tokens", "output_tokens")];
    case "turn.failed": return [note(`turn failed: ${short(line.error?.message)}`)];
    case "error": return [note(short(line.message))];
    default: return [];
  }
}

/** @type {Reader} */
function codexAppServer(line) {
  const [item, turn, thread, error] = ["item", "turn", "thread", "error"].map((key) => line.params?.[key] ?? {});
  switch (`${line.method} ${item.type ?? ""}`.trim()) {
    case "item/completed agentMessage": return [words(item.text)];
    case "item/completed userMessage": return [heard(item.content?.[0]?.text)];
    case "item/started commandExecution": return [call("shell", item.command)];
    case "item/completed commandExecution": return [outcome(item.aggregatedOutput)];
    case "item/completed mcpToolCall": return [call(item.tool, item.arguments)];
    case "item/completed fileChange": return [call("edit", item.changes)];
    case "thread/started": return [note(`session ${short(thread.id)}`)];
    case "turn/completed": return [note(`turn ${short(turn.status)}${text(turn.error?.message) ? `: ${short(turn.error.message)}` : ""}`)];
    case "error": return [note(short(error.message))];
    default: return [];
  }
}

/** @type {Reader} */
function acp(line) {
  const update = line.params?.update ?? {};
  switch (update.sessionUpdate) {
    case "agent_message_chunk": return [words(update.content?.text)];
    case "user_message_chunk": return [heard(update.content?.text)];
    case "tool_call": return [call(update.title, update.rawInput)];
    case "tool_call_update": return [text(update.content?.[0]?.content?.text) ? outcome(update.content[0].content.text) : null];
    default: return [text(line.result?.stopReason) ? note(`turn ended (${short(line.result.stopReason)})`) : null];
  }
}

/** @type {Reader} */
function opencode(line) {
  const part = line.part ?? {};
  if (line.type === "text") return [words(part.text)];
  if (line.type === "tool_use") {
    const came = text(part.state?.output) ?? text(part.state?.error);
    return [call(part.tool, part.state?.input), came ? outcome(came) : null];
  }
  if (line.type === "step_finish" && part.reason !== "tool-calls") return [ended(part.tokens, "input", "output")];
  return line.type === "error" ? [note(short(line.error))] : [];
}

/** @type {Reader} */
function gemini(line) {
  switch (line.type) {
    case "init": return [session(line)];
    case "message": return [line.role === "assistant" ? words(line.content) : null];
    case "tool_use": return [call(line.tool_name, line.parameters)];
    case "tool_result": return [outcome(line.output)];
    case "result": return [ended(line.stats, "input_tokens", "output_tokens", ` (${short(line.status)})`)];
    default: return [];
  }
}

/** @type {Record<string, Reader>} */
const READERS = { "claude-stream-json": claude, "codex-jsonl": codex, "codex-app-server": codexAppServer, acp, "opencode-jsonl": opencode, "gemini-stream-json": gemini };

/**
 * The function that makes the lines of a format readable; none where its lines are read as they are.
 * @param {string | null | undefined} format  The form of the standard output, as `log` says it.
 * @returns {((line: string) => string[]) | null}
 */
export function readerOf(format) {
  const reader = format && Object.hasOwn(READERS, format) ? READERS[format] : null;
  if (!reader) return null;
  return (line) => {
    if (!line.startsWith("{")) return [line];
    try {
      return reader(JSON.parse(line)).flat().filter((/** @type {string | null} */ one) => one !== null);
    } catch {
      // No JSON, or a form that the reader does not expect.
      return [line];
    }
  };
}
