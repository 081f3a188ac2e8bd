/** The hint topics of arrivals. */

/** A model is ready to run. */
export const READY_TOPIC = "arrivals.ready";
/** A run has ended, and requests that wait for it read its result. */
export const ENDED_TOPIC = "arrivals.ended";
/** A timer was set or changed. */
export const TIMER_TOPIC = "arrivals.timer";
/** A run was stopped, and whoever runs it aborts it. */
export const HELD_TOPIC = "arrivals.held";
