// What the board needs only once somebody acts: dialogs, forms, and what they send. Each is loaded with its first use.

import { beside, later } from "../parts/later.js";

/** The choices that are offered for a task. */
export const choices = () => later(import("./choices.js"));
/** The form that makes a task. */
export const creation = () => later(import("./create.js"));
/** The changes of tasks. */
export const moves = () => later(import("./moves.js"));
/** A choice and the change that follows it, loaded together: what is typed after the choice finds the next dialog open. */
export const changes = async () => { const [asks, acts] = await Promise.all([choices(), moves()]); return { ...asks, ...acts }; };
/** What a person says to a task that waits. */
export const replies = () => later(import("./reply.js"));
/** The bar for the selected tasks. */
export const bulk = () => beside(import("./bulk.js"));
