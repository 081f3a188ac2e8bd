/** What the loops of arrivals are woken for. */

/** A model is ready to run. */
export const READY_TOPIC = "arrivals.ready";
/** A run has ended: whoever waits for it looks. */
export const ENDED_TOPIC = "arrivals.ended";
/** There is something for the timers. */
export const TIMER_TOPIC = "arrivals.timer";
