// The completion of @names in a text area: the profiles that a comment may mention.
import { verb } from "../api.js";
import { verbs } from "./server.js";
import { suggest } from "./suggest.js";

/** What stands before the cursor: an @ at the start of a word, and the beginning of a name. */
const BEGUN = /(?:^|[^\p{L}\p{N}._\-+/\\@:=])@([A-Za-z0-9._-]{0,63})$/u;

/** @type {Promise<import('./suggest.js').Suggestion[]> | null} */
let asked = null;

/** Returns the profiles, asked for once a page; where the session may not list them, the assignees. */
function profiles() {
  asked ??= verbs().then((all) => (all.has("profiles") ? verb("profiles") : verb("names", { of: "assignee", begins: "" }))).then(
    (reply) => (reply.profiles ?? reply.names ?? reply).map((row) => ({
      value: row.name, label: row.name, about: row.profile?.description ?? row.about ?? "",
    })),
    () => {
      asked = null;
      return [];
    },
  );
  return asked;
}

/** Attaches the completion to a text area, and returns the list to place after it. @param {HTMLTextAreaElement} input */
export function mentions(input) {
  const begun = () => BEGUN.exec(input.value.slice(0, input.selectionStart))?.[1];
  return suggest(input, {
    label: "Profiles",
    first: true,
    find: () => {
      const name = begun();
      if (name === undefined) return null;
      return profiles().then((all) => all.filter((profile) => profile.value.startsWith(name)).slice(0, 12));
    },
    take: (profile) => {
      const name = begun() ?? "";
      const end = input.selectionStart;
      input.setRangeText(`${profile.value} `, end - name.length, end, "end");
      input.dispatchEvent(new Event("input", { bubbles: true }));
    },
  });
}
