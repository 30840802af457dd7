// The keys of a page. They rest while the person is in the drawer: there they would act on what lies behind it.

import * as keys from "../keys.js";

const isInDrawer = () => Boolean(document.activeElement?.closest("#drawer"));

/** Adds keys as `keys.add` does. @param {...import("../keys.js").Binding} bindings @returns {() => void} a function that removes them */
export const pageKeys = (...bindings) =>
  keys.add(...bindings.map((binding) => ({
    ...binding,
    when: () => !isInDrawer() && (binding.when?.() ?? true),
    // What rests is not listed.
    get hidden() { return isInDrawer() || Boolean(binding.hidden); },
  })));
