/** The hints that the parts of the module give each other: "look again", never what to find. */

/** Work is ready to be claimed. */
export const READY_TOPIC = "chains.ready";
export const READY_IN_POOL_TOPIC = "chains.ready_in_pool";
/** A run waits to be admitted, or something has become due. */
export const TIMER_TOPIC = "chains.timer";
/** A run is stopping, or a node was taken away from its worker. */
export const LET_GO_TOPIC = "chains.let_go";

const PROGRESS_TOPICS = 64;

/** Something changed that a live view of the run shows. Runs share topics, so that there are never too many. */
export function progressTopic(runId: string): string {
  return `chains.progress.${Number.parseInt(runId.slice(-2), 16) % PROGRESS_TOPICS}`;
}
