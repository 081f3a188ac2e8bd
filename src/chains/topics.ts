/** Topics of the hints between the parts of the module. A hint says that something changed, never what. */

/** Nodes are ready to be claimed. */
export const READY_TOPIC = "chains.ready";
export const READY_IN_POOL_TOPIC = "chains.ready_in_pool";
/** A run is PENDING, or something has become due. */
export const TIMER_TOPIC = "chains.timer";
/** Workers check which of their nodes they still hold: a run is STOPPING, or a lease was revoked. */
export const HELD_TOPIC = "chains.held";

const PROGRESS_TOPICS = 64;

/** A run changed that a live view may show. Runs share 64 topics, which bounds the number of subscriptions. */
export function progressTopic(runId: string): string {
  return `chains.progress.${Number.parseInt(runId.slice(-2), 16) % PROGRESS_TOPICS}`;
}
