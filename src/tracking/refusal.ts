/** Explains why a move changed nothing: a harmless repeat, a lost lease, or a status without such a move. */
import type { ApiError } from "../kernel/errors.ts";
import { trackingError } from "./catalogue.ts";
import { MOVES, type QueueStage, type Status, stageBefore, type Transition } from "./states.ts";
import type { PresentCell } from "./store.ts";
import type { Move, Moved } from "./tracking.ts";

/** The transitions as verbs of a sentence. */
export const VERBS = { start: "start", done: "finish", fail: "fail", retry: "retry" } as const satisfies Record<
  Transition,
  string
>;

/** A pure function of the request and the present row, so that a test can try every combination. */
export function explainRefusal(
  stage: QueueStage,
  transition: Transition,
  move: Move,
  present: PresentCell,
): Moved | ApiError {
  const { filename, shard } = move;
  const { status } = present;
  const details = { filename, shard, stage, transition, status };
  const finishes = transition === "done" || transition === "fail";

  if (finishes && (move.fence ?? null) !== present.fence) {
    return trackingError("LEASE_LOST", details, { because: `it is \`${status}\` ${fenceReason(move, present)}` });
  }
  if (isRepeat(transition, move, present)) return { filename, shard, status, changed: false };
  return trackingError("WRONG_STATUS", details, {
    verb: VERBS[transition],
    because: statusReason(stage, transition, present),
  });
}

function statusReason(
  stage: QueueStage,
  transition: Transition,
  { status, status_before, worker }: PresentCell,
): string {
  if (transition === "start" && status === "new" && status_before !== "done") {
    return `, but ${stageBefore(stage)} is \`${status_before}\` and must be \`done\` first`;
  }
  const departures: readonly Status[] = MOVES[transition].from;
  if (departures.includes(status)) return " now, but was not when the move was tried. Try again";
  if (transition === "done" && status === "new") return ". Claim or start it first";
  if (transition === "done" && status === "failed") return ". Retry it first";
  return status === "started" && worker ? `, held by ${worker}` : "";
}

function isRepeat(transition: Transition, move: Move, present: PresentCell): boolean {
  if (present.status !== MOVES[transition].to) return false;
  // A second start is a second claim, unless the same worker repeats it.
  if (transition === "start")
    return present.fence === null && move.worker !== undefined && move.worker === present.worker;
  return true;
}

function fenceReason(move: Move, present: PresentCell): string {
  if (move.fence === undefined) return "under a lease. Send the `fence` that the claim returned";
  if (present.fence === null) return "and no longer leased. Drop it and claim again";
  return "under a newer lease. Drop it and claim again";
}
