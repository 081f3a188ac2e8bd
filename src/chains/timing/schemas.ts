/** The replies that tell how long runs and nodes took. */
import { Type } from "typebox";
import { Body, Nullable, ReplyTime } from "../../kernel/http/schemas.ts";
import { NODE_STATUSES, RUN_STATUSES } from "../engine/states.ts";
import type { Cause } from "../replies.ts";
import { AnyId } from "../schemas.ts";

const CAUSES = [
  "added",
  "removed",
  "not_run_before",
  "not_run_now",
  "retried",
  "waited",
  "paused",
  "ran",
  "same",
] as const satisfies readonly Cause[];

export const TimelineReply = Type.Object({
  attempts: Type.Array(
    Type.Object({
      nodeId: Type.String(),
      attempt: Type.Integer(),
      status: Type.String(),
      error: Nullable(Type.String({ description: "The first 200 characters." })),
      startedAt: ReplyTime,
      endedAt: ReplyTime,
    }),
    { description: "Attempts that another one followed, 10,000 at most. The newest of a node is with the node." },
  ),
  truncated: Type.Boolean(),
  criticalPath: Type.Array(Type.String(), {
    description:
      "The nodes that the time of the run depends on, in order: each began when the one before it had ended.",
  }),
});

const TimedRun = {
  runId: Type.String(),
  opTime: Nullable(Type.String()),
  status: Type.Enum(RUN_STATUSES),
  chainVersion: Nullable(Type.Integer()),
  createdAt: ReplyTime,
  startedAt: Nullable(ReplyTime),
  endedAt: Nullable(ReplyTime),
};
const TimedRunReply = Type.Object(TimedRun);

const Times = Type.Object({
  status: Type.Enum(NODE_STATUSES),
  waitedMs: Type.Number({ description: "From when its parents allowed it to run until its first attempt." }),
  ranMs: Type.Number({ description: "In all its attempts." }),
  pausedMs: Type.Number({ description: "Between its attempts." }),
  attempts: Type.Integer(),
});
export const ComparisonQuery = Body({
  with: Type.Optional(AnyId),
  limit: Type.Integer({ minimum: 1, maximum: 10_000, default: 200 }),
});
export const ComparisonReply = Type.Object({
  run: TimedRunReply,
  with: Nullable(TimedRunReply),
  earlier: Type.Array(TimedRunReply, { description: "The last 25 runs before it that have ended, newest first." }),
  nodes: Type.Array(
    Type.Object({
      nodeId: Type.String(),
      type: Type.String(),
      pool: Nullable(Type.String()),
      waitsFor: Type.Array(Type.String()),
      critical: Type.Boolean({ description: "The time of the run depended on it." }),
      now: Nullable(Times),
      before: Nullable(Times),
      differenceMs: Type.Number(),
      cause: Type.Enum(CAUSES, { description: "Where most of the difference comes from." }),
    }),
  ),
  total: Type.Integer(),
});

export const GridQuery = Body({
  until: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description: "The newest run to show; the last one if it is not given.",
    }),
  ),
  runs: Type.Integer({ minimum: 1, maximum: 50, default: 25 }),
  from: Type.Integer({ minimum: 0, maximum: 1_000_000, default: 0, description: "Nodes before the page." }),
  size: Type.Integer({ minimum: 1, maximum: 500, default: 200, description: "Nodes of the page." }),
});
export const GridReply = Type.Object({
  runs: Type.Array(TimedRunReply, { description: "Newest first." }),
  nodes: Type.Array(
    Type.Object({
      nodeId: Type.String(),
      type: Type.String(),
      statuses: Type.Array(Nullable(Type.Enum(NODE_STATUSES)), {
        description: "One for each run; null if the run does not have the node.",
      }),
    }),
    { description: "Parents before children; nodes that only older versions have come last." },
  ),
  from: Type.Integer(),
  total: Type.Integer({ description: "Of all nodes." }),
});
