// What was typed and not sent, by task and field: it survives a refusal, a reload of the task and a closed drawer.

/** @type {Map<string, string>} */
const kept = new Map();

/** Returns the draft of a field of a task. @param {string} task @param {string} field */
export function draft(task, field) {
  return kept.get(`${task} ${field}`);
}

/** Keeps a draft, or drops it where the text is empty. @param {string} task @param {string} field @param {string | undefined} text */
export function keepDraft(task, field, text) {
  if (text) kept.set(`${task} ${field}`, text);
  else kept.delete(`${task} ${field}`);
}
