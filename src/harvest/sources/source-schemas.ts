/** What the API about the state of sources takes and answers. */
import { Type } from "typebox";
import { Gate } from "../../kernel/gate/gate-reply.ts";
import { Body, Nullable, Page, PageQuery, ReplyTime } from "../../kernel/http/schemas.ts";
import { OPERATIONS } from "../spec/snapshot.ts";
import { PLAN_NEXT } from "../states.ts";

const Count = Type.Integer();
const Milliseconds = Type.Number({ description: "Milliseconds." });
const Window = Nullable(Type.Object({ from: ReplyTime, to: ReplyTime }));

export const SourcesQuery = Body({
  ...PageQuery,
  q: Type.Optional(Type.String({ maxLength: 255, description: "Part of the source or its name." })),
});

export const SourceSummary = Type.Object({
  source: Type.String(),
  name: Type.String(),
  revision: Type.Integer(),
  updatedAt: ReplyTime,
  endpoints: Type.Integer({ description: "How many." }),
  nextAt: Nullable(Type.Unsafe<Date>({ ...ReplyTime, description: "When a schedule fires next." })),
  openPlans: Type.Integer({ description: "Plans that have not ended." }),
  lastPlan: Nullable(
    Type.Object({
      planId: Type.String(),
      status: Type.Enum(Object.keys(PLAN_NEXT) as (keyof typeof PLAN_NEXT)[]),
      endpoint: Type.String(),
      window: Window,
      createdAt: ReplyTime,
      endedAt: Nullable(ReplyTime),
      reason: Nullable(Type.String({ description: "Why it failed or was cancelled." })),
    }),
  ),
  missingWindows: Type.Integer({
    description: "Windows that ended as gaps that nobody has accepted, and that nothing has completed since.",
  }),
  watermark: Nullable(
    Type.Object(
      {
        namespace: Type.String(),
        at: ReplyTime,
        closedUntil: Type.Unsafe<Date>({ ...ReplyTime, description: "What could be harvested by now." }),
        lagSeconds: Type.Integer(),
      },
      { description: "Of the endpoint that is furthest behind." },
    ),
  ),
  waiting: Nullable(
    Type.Object(
      { reason: Type.String(), tasks: Type.Integer(), until: ReplyTime },
      { description: "What most of the queued tasks wait for." },
    ),
  ),
  gates: Type.Array(
    Type.Object({
      key: Type.String(),
      ratePerSec: Type.Number(),
      currentRatePerSec: Type.Number({ description: "After cuts, headers and warm-up." }),
      cooldownUntil: Nullable(ReplyTime),
      quotaUsed: Nullable(Type.Number({ description: "The share of its most used quota, from 0 to 1." })),
    }),
    { description: "Those that requests of its newest plans pass." },
  ),
});
export const SourcesReply = Page(SourceSummary);

export const GatesReply = Type.Object({
  items: Type.Array(
    Type.Object({
      ...Gate.properties,
      waiting: Type.Integer({ description: "Tasks that gave their place back until it opens." }),
    }),
  ),
});

export const PaceQuery = Body({
  hours: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 720,
      description: "How far back. Unset: 1, 6, 24, 168 or 720, the shortest of them that has the newest run.",
    }),
  ),
});
const sums = {
  runs: Count,
  failed: Count,
  running: Count,
  requests: Count,
  throttled: Type.Integer({ description: "Requests that the source refused for being too fast." }),
  records: Count,
  busyMs: Type.Number({ description: "The time of all runs together, in milliseconds." }),
  waitMs: Type.Number({ description: "Of that, waiting at the gates of the source." }),
  answerMs: Type.Number({ description: "Of that, waiting for answers of the source." }),
};
export const PaceReply = Type.Object({
  since: ReplyTime,
  hours: Type.Integer(),
  bucketSec: Type.Integer(),
  ...sums,
  buckets: Type.Array(Type.Object({ at: ReplyTime, ...sums }), {
    description: "By the beginning of runs; those without a run are left out.",
  }),
  parked: Type.Array(Type.Object({ reason: Type.String(), times: Type.Integer(), ms: Milliseconds }), {
    description: "What tasks waited for in the queue between their runs, the longest first: at most 5.",
  }),
  failures: Type.Array(
    Type.Object({
      runId: Type.Integer(),
      planId: Type.String(),
      sliceId: Type.Integer(),
      at: ReplyTime,
      reason: Nullable(Type.String()),
    }),
    { description: "The newest 50." },
  ),
});

export const CoverageQuery = Body({
  windows: Type.Integer({
    minimum: 1,
    maximum: 1_000,
    default: 30,
    description: "How many windows before the watermark are shown.",
  }),
});
export const CoverageReply = Type.Object({
  items: Type.Array(
    Type.Object({
      endpoint: Type.String(),
      namespace: Type.String(),
      operation: Type.Enum(OPERATIONS),
      watermark: Nullable(ReplyTime),
      movedAt: Nullable(ReplyTime),
      closedUntil: Type.Unsafe<Date>({ ...ReplyTime, description: "What could be harvested by now." }),
      lagSeconds: Nullable(Type.Integer()),
      from: ReplyTime,
      to: ReplyTime,
      stretches: Type.Array(
        Type.Object({
          kind: Type.Enum(["complete", "accepted", "open", "gap", "none"] as const, {
            description: "`open` is planned or under way; `none` was asked for by no plan.",
          }),
          from: ReplyTime,
          to: ReplyTime,
          planId: Nullable(Type.String()),
          sliceId: Nullable(Type.Integer()),
          reason: Nullable(Type.String()),
        }),
        { description: "From `from` to `to`, without overlaps." },
      ),
      cut: Type.Boolean({ description: "Slices behind the first 2,000 that are not complete are left out." }),
    }),
  ),
});
