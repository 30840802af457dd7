// The command that attaches a terminal to a task.

import * as route from "../route.js";

/** The command that shows what the agent of a task does, for a terminal. @param {string} id */
export const attachCommand = (id) => `supervisor${route.state().query.board ? ` --board ${route.state().query.board}` : ""} attach ${id}`;
