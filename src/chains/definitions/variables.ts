/** The variables of expressions (`if`) and templates (`${...}`) of a node. Templates may also name secrets: `${secrets.NAME}`. */

/**
 * - `params`, `opTime`: of the run
 * - `nodes.<id>.artifact`, `nodes.<id>.status`: of the parents
 * - `run.id`, `node.id`, `node.attempt`
 */
export const VARIABLES = ["params", "opTime", "nodes", "run", "node"] as const;

/** The node of a `map` also has its item and the item's index in the list. */
export const ITEM_VARIABLES = [...VARIABLES, "item", "index"] as const;
