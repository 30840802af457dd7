// The messages that were sent to the agent of a run, and what has become of each.

import { h, put } from "../dom.js";
import { state } from "../parts/state.js";

/** What has become of a message, in words. @type {Record<string, string>} */
const BECAME = { queued: "waits", written: "not read yet", delivered: "delivered", not_delivered: "not delivered" };

/** @returns {{element: HTMLElement, update: (messages: any[], run: number) => void}} */
export function sentMessages() {
  const list = h("ol", { class: "sent" });
  const element = h("section", { class: "sent-panel", "aria-label": "Messages to the agent", tabindex: "0", hidden: true }, list);
  let shape = "";
  return {
    element,
    update(messages, run) {
      const own = messages.filter((message) => message.run_id === run);
      element.hidden = own.length === 0;
      const next = JSON.stringify(own.map((message) => [message.number, message.state, message.reason]));
      if (next === shape) return;
      shape = next;
      put(list, own.map((message) => h("li", { class: "sent-message" }, state(message.state, BECAME[message.state] ?? message.state),
        h("span", { class: "sent-text" }, message.body), message.reason ? h("span", { class: "muted" }, message.reason) : null)));
      // The newest is seen.
      element.scrollTop = element.scrollHeight;
    },
  };
}
