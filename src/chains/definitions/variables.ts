/** What expressions (`if`) and templates (`${...}`) of a node may use. Templates may name secrets, too: `${secrets.NAME}`. */

/**
 * - `params`, `opTime`: what the run was started with
 * - `nodes.<id>.artifact`, `nodes.<id>.status`: how the parents ended and what they brought
 * - `run.id`, `node.id`, `node.attempt`
 */
export const VARIABLES = ["params", "opTime", "nodes", "run", "node"] as const;

/** The node of a `map` knows its item and the item's place in the list too. */
export const ITEM_VARIABLES = [...VARIABLES, "item", "index"] as const;
