/** The hints of harvest: something was written that a service waits for. */

/** Tasks are queued, or places in a partition are free. */
export const TASKS_TOPIC = "harvest.tasks";
/** Plans have to be sliced. */
export const PLANS_TOPIC = "harvest.plans";
/** Windows have to land. */
export const LANDING_TOPIC = "harvest.landing";
/** Something was paused or resumed. */
export const PAUSES_TOPIC = "harvest.pauses";
/** A plan has ended, a window of it has landed, or a run of a chain has: nodes that wait for plans may go on. */
export const NODES_TOPIC = "harvest.nodes";
