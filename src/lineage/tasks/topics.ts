/** The wake-up topics of tasks. */

/** There are new tasks. */
export const TASKS_TOPIC = "lineage.tasks";
/** A model was chosen, or tasks were reset: what was given up on for the moment is to be tried. */
export const MODELS_TOPIC = "lineage.models";
/** What a process remembers of tenants is void. */
export const TENANTS_TOPIC = "lineage.tenants";
