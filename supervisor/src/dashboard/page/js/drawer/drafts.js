// What was typed and not sent, by task and field: it survives a refusal, a reload of the task and a closed drawer.

/** @type {Map<string, string>} */
const kept = new Map();

/** Returns the draft of a field of a task. */
export function draft(/** @type {string} */ task, /** @type {string} */ field) {
  return kept.get(`${task} ${field}`);
}

/** Keeps a draft, or drops it where the text is empty. */
export function keepDraft(/** @type {string} */ task, /** @type {string} */ field, /** @type {string | undefined} */ text) {
  if (text) kept.set(`${task} ${field}`, text);
  else kept.delete(`${task} ${field}`);
}
