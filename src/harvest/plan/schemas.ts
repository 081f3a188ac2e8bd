/** What the API of plans takes and answers. */
import { Type } from "typebox";
import { Body, Nullable, ReplyTime } from "../../kernel/http/schemas.ts";
import { NAME_PATTERN } from "../definition/definition.ts";
import { DURATION_RULE } from "../spec/duration.ts";
import { OPERATIONS } from "../spec/snapshot.ts";
import { PLAN_NEXT, SLICE_NEXT, TASK_NEXT } from "../states.ts";
import { draftSlicing, EstimateSchema, slicePart, windowSizes } from "./slicing-schemas.ts";

export const Name = Type.String({ pattern: NAME_PATTERN });
const Operation = Type.Enum(OPERATIONS);
const PlanStatus = Type.Enum(Object.keys(PLAN_NEXT) as (keyof typeof PLAN_NEXT)[]);
const SliceStatus = Type.Enum(Object.keys(SLICE_NEXT) as (keyof typeof SLICE_NEXT)[]);
const TaskStatus = Type.Enum(Object.keys(TASK_NEXT) as (keyof typeof TASK_NEXT)[]);
const LandingStatus = Type.Enum(["PENDING", "LANDING", "LANDED", "FAILED"] as const);
const limit = Type.Integer({ minimum: 1, maximum: 1_000, default: 50 });
const next = Nullable(Type.String({ description: "To be sent as `after`, for those behind." }));
const after = { description: "The `next` of the previous page." };
const AfterNumber = Type.Optional(Type.String({ pattern: "^\\d{1,18}$", ...after }));
const AfterInteger = Type.Optional(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1, ...after }));
const AfterPair = Type.Optional(Type.String({ pattern: "^\\d{1,18}\\.\\d{1,10}$", ...after }));
const Id = Type.String({ minLength: 1, maxLength: 100 });
const Remarks = Type.Object({}, { additionalProperties: true });

export const Edge = Type.String({
  minLength: 1,
  maxLength: 40,
  description: "RFC 3339, or a date: the start of that day of the source.",
});
export const LastWindow = Type.Object(
  // The planner refuses what is none: a message about alternatives would not say why.
  { last: Type.String({ minLength: 1, maxLength: 40, description: DURATION_RULE }) },
  { additionalProperties: false },
);
const Window = Nullable(Type.Object({ from: ReplyTime, to: ReplyTime }));

export const PlanMadeReply = Type.Object({
  planId: Nullable(Type.String({ description: "Null in a dry run." })),
  status: PlanStatus,
  source: Type.String(),
  endpoint: Type.String(),
  operation: Operation,
  window: Window,
  priority: Type.Integer(),
  plannedAt: ReplyTime,
  slices: Type.Integer({ description: "Those that were made now; in a dry run, all." }),
  unslicedFrom: Nullable(
    Type.Unsafe<Date>({
      ...ReplyTime,
      description: "The rest, from here on and for BACKFILL before it, is sliced when the queue has room.",
    }),
  ),
  estimate: EstimateSchema,
  notes: Type.Array(Type.String(), {
    description: "Where the window is not the one that was asked for, or does not land.",
  }),
  warnings: Type.Array(Remarks, { description: "Of the definition." }),
  windows: Type.Optional(
    Type.Array(
      Type.Object({
        from: ReplyTime,
        to: ReplyTime,
        bounds: Type.Object(
          { from: Type.String(), until: Type.String(), to: Type.String() },
          { description: "As requests have them; `until` is inclusive." },
        ),
        ...windowSizes,
      }),
      { description: "Of the first 1,000 slices, in a dry run." },
    ),
  ),
  ...draftSlicing,
});

const plan = {
  planId: Type.String(),
  status: PlanStatus,
  source: Type.String(),
  endpoint: Type.String(),
  operation: Operation,
  namespace: Type.String({
    description: "The endpoint, with a hash of the parameters that select records if there are any.",
  }),
  window: Window,
  priority: Type.Integer(),
  plannedAt: ReplyTime,
  createdAt: ReplyTime,
  endedAt: Nullable(ReplyTime),
  paused: Nullable(Type.String({ description: "Why no task of it starts: what is paused, by whom and since when." })),
  unslicedFrom: Nullable(ReplyTime),
  specFingerprint: Type.String(),
  estimate: EstimateSchema,
  remarks: Remarks,
};
export const PlansQuery = Body({
  source: Type.Optional(Name),
  endpoint: Type.Optional(Name),
  operation: Type.Optional(Operation),
  status: Type.Optional(PlanStatus),
  after: Type.Optional(Type.String({ format: "uuid", ...after })),
  limit,
});
export const PlansReply = Type.Object({ items: Type.Array(Type.Object(plan)), next });

const counts = {
  received: Type.Integer({
    description: "Distinct records that came and were stored, since the last start of each slice.",
  }),
  repeated: Type.Integer({
    description:
      "Records that came again: after a restart, in the parts of a slice that was split, or on several pages. `received` and `repeated` together are `inserted`, `updated`, `unchanged` and `deleted`.",
  }),
  inserted: Type.Integer(),
  updated: Type.Integer(),
  unchanged: Type.Integer(),
  deleted: Type.Integer({ description: "Tombstones, which count neither as inserted nor as updated." }),
  quarantined: Type.Integer(),
};
const Accepted = Nullable(
  Type.Object(
    { at: ReplyTime, by: Type.String(), reason: Type.String() },
    { description: "Who has accepted the gap, so that the watermark passes it." },
  ),
);
const Missing = Type.Integer({ description: "Ids that the source listed and did not answer." });
const Expected = Nullable(Type.Integer({ description: "As far as the source announces it." }));
export const PlanReply = Type.Object({
  ...plan,
  slices: Type.Partial(Type.Record(SliceStatus, Type.Integer()), { description: "By state." }),
  tasks: Type.Partial(Type.Record(TaskStatus, Type.Integer()), { description: "By state." }),
  reconciliation: Type.Object({
    expected: Expected,
    ...counts,
    missing: Missing,
    gaps: Type.Integer({
      description: "Slices that ended FAILED or INCOMPLETE, or were cancelled without their plan.",
    }),
    acceptedGaps: Type.Integer({ description: "Those of them that somebody has accepted." }),
  }),
  gapWindows: Type.Array(
    Type.Object({
      sliceId: Type.Integer(),
      window: Window,
      status: SliceStatus,
      reason: Nullable(Type.String()),
      missing: Nullable(Type.Integer({ description: "Records that were announced and did not come." })),
      accepted: Accepted,
    }),
    { description: "The first 100." },
  ),
  divided: Type.Array(
    Type.Object({
      sliceId: Type.Integer(),
      window: Window,
      status: SliceStatus,
      expected: Expected,
      by: Type.Array(Type.String(), { description: "The dimensions of the ladder that divide it, or `pages`." }),
      parts: Type.Partial(Type.Record(SliceStatus, Type.Integer()), { description: "By state." }),
    }),
    { description: "The first 100 slices that were divided into parts." },
  ),
  waits: Type.Array(Type.Object({ reason: Type.String(), tasks: Type.Integer(), until: Nullable(ReplyTime) }), {
    description:
      "What open parts of the plan wait for, the largest first: a gate or its quota, a source that is down, their turn, a worker.",
  }),
  stopped: Nullable(
    Type.String({
      description:
        "Set while nothing of it goes on because access to its endpoint is refused: why, and the command that resumes it.",
    }),
  ),
  landing: Nullable(
    Type.Object({
      engine: Nullable(Type.String({ description: "Where the table is; null for the lake." })),
      table: Type.String(),
      windows: Type.Partial(Type.Record(LandingStatus, Type.Integer()), { description: "By state." }),
      obstacle: Nullable(Type.String({ description: "Why windows do not land." })),
      grain: Type.Enum(["hour", "day"] as const, { description: "What a window of the table covers." }),
      partial: Type.Array(Type.String({ description: "An opTime that does not land: the plan has a part of it." })),
    }),
  ),
  landings: Type.Array(
    Type.Object({
      table: Type.String(),
      opTime: Type.String(),
      window: Window,
      status: LandingStatus,
      rows: Nullable(Type.Integer()),
      error: Nullable(Type.String()),
      landedAt: Nullable(ReplyTime),
    }),
    { description: "Partitions of the table that this plan changed last: at most 100, first what has not landed." },
  ),
});

export const PlanParams = Type.Object({ planId: Id });
export const SlicesQuery = Body({ status: Type.Optional(SliceStatus), after: AfterInteger, limit });
export const SliceParams = Type.Object({ planId: Id, sliceId: Id });
export const AcceptBody = Body({
  reason: Type.String({ pattern: "\\S", maxLength: 2_000, description: "say why what is missing can be missing" }),
});
export const SliceReply = Type.Object({
  sliceId: Type.Integer(),
  parentSliceId: Nullable(Type.Integer({ description: "The slice that was split or divided into it." })),
  rootSliceId: Nullable(Type.Integer({ description: "Of a part: the slice that has its window." })),
  number: Type.Integer(),
  window: Window,
  ...slicePart,
  status: SliceStatus,
  reason: Nullable(Type.String()),
  generation: Type.Integer({ description: "Grows when the slice starts again from its first page." }),
  batches: Type.Integer(),
  estimate: EstimateSchema,
  expected: Expected,
  ...counts,
  missing: Missing,
  accepted: Accepted,
  signature: Type.String(),
  createdAt: ReplyTime,
  endedAt: Nullable(ReplyTime),
});
export const SlicesReply = Type.Object({
  items: Type.Array(SliceReply),
  next: Nullable(Type.Integer({ description: "To be sent as `after`, for those behind." })),
});

export const PlanTasksQuery = Body({ status: Type.Optional(TaskStatus), after: AfterNumber, limit });
export const TasksQuery = Body({
  source: Type.Optional(Name),
  endpoint: Type.Optional(Name),
  operation: Type.Optional(Operation),
  status: Type.Optional(TaskStatus),
  after: AfterNumber,
  limit,
});
const Task = Type.Object({
  taskId: Type.Integer(),
  planId: Type.String(),
  sliceId: Type.Integer(),
  partition: Type.String({ description: "`source/endpoint/operation`" }),
  window: Window,
  status: TaskStatus,
  priority: Type.Integer(),
  scheduledAt: Nullable(ReplyTime),
  waitReason: Nullable(Type.String()),
  attempts: Type.Integer(),
  lost: Type.Integer({ description: "Processes in a row that were lost while they executed it." }),
  error: Nullable(Type.String()),
  createdAt: ReplyTime,
  startedAt: Nullable(ReplyTime),
  finishedAt: Nullable(ReplyTime),
});
export const TasksReply = Type.Object({ items: Type.Array(Task), next });

export const TaskParams = Type.Object({ taskId: Id });
export const RunsQuery = Body({ after: AfterInteger, limit });
const Run = Type.Object({
  runId: Type.Integer(),
  attempt: Type.Integer(),
  status: Type.String(),
  window: Window,
  checkpoint: Type.Unknown({ description: "Where the next run continues." }),
  stats: Remarks,
  error: Nullable(Type.String()),
  startedAt: ReplyTime,
  endedAt: Nullable(ReplyTime),
});
export const RunsReply = Type.Object({
  items: Type.Array(Run),
  next: Nullable(Type.Integer({ description: "To be sent as `after`, for those behind." })),
});

export const SliceDetailReply = Type.Object({
  ...SliceReply.properties,
  tasks: Type.Array(Type.Object({ ...Task.properties, runs: Type.Array(Run) }), {
    description: "The newest 20, each with its newest 20 runs.",
  }),
});

export const PlanRunsQuery = Body({ after: AfterPair, limit });
export const PlanRunsReply = Type.Object({
  items: Type.Array(
    Type.Object({
      runId: Type.Integer(),
      taskId: Type.Integer(),
      sliceId: Type.Integer(),
      slice: Type.Integer({ description: "The number of the slice." }),
      attempt: Type.Integer(),
      status: Type.String(),
      error: Nullable(Type.String()),
      startedAt: ReplyTime,
      endedAt: Nullable(ReplyTime),
    }),
  ),
  next,
});

export const RunParams = Type.Object({ runId: Id });
export const BatchesQuery = Body({ after: AfterPair, limit });
export const BatchesReply = Type.Object({
  items: Type.Array(
    Type.Object({
      sliceId: Type.Integer(),
      generation: Type.Integer(),
      number: Type.Integer(),
      phase: Type.Integer({ description: "1 for a page of a list, 2 for the records of ids." }),
      status: Type.String(),
      pageNo: Nullable(Type.Integer()),
      pageSize: Nullable(Type.Integer()),
      beforeToken: Nullable(Type.String()),
      afterToken: Nullable(Type.String()),
      nextUrl: Nullable(Type.String()),
      request: Remarks,
      response: Remarks,
      stats: Remarks,
      credentialVersion: Nullable(Type.Integer()),
      bodyHash: Nullable(Type.String()),
      createdAt: ReplyTime,
    }),
  ),
  next,
});

export const ScheduleParams = Type.Object({ scheduleId: Id });
export const SchedulesQuery = Body({ source: Type.Optional(Name) });
export const ScheduleReply = Type.Object({
  scheduleId: Type.Integer(),
  source: Type.String(),
  name: Type.String(),
  endpoint: Type.String(),
  operation: Operation,
  cron: Type.String(),
  timeZone: Type.String(),
  params: Remarks,
  priority: Nullable(Type.Integer()),
  paused: Type.Boolean(),
  nextAt: Nullable(ReplyTime),
});
export const SchedulesReply = Type.Object({
  items: Type.Array(
    Type.Object({
      ...ScheduleReply.properties,
      held: Nullable(Type.String({ description: "Why it does not fire although it is on: what is paused." })),
      lastAt: Nullable(ReplyTime),
      last: Nullable(
        Type.Unsafe<object>({
          ...Remarks,
          description: "What the last fire led to: `planId` and its `status` now, `nothing` or `refused`.",
        }),
      ),
    }),
  ),
});

export const CursorsQuery = Body({ source: Type.Optional(Name), operation: Type.Optional(Operation) });
export const CursorsReply = Type.Object({
  items: Type.Array(
    Type.Object({
      source: Type.String(),
      operation: Operation,
      key: Type.String(),
      scope: Type.String(),
      namespace: Type.String(),
      type: Type.String(),
      value: Type.String(),
      observedMax: Nullable(Type.String()),
      closedUntil: Nullable(Type.Unsafe<Date>({ ...ReplyTime, description: "What could be harvested by now." })),
      lagSeconds: Nullable(
        Type.Integer({ description: "From the cursor to `closedUntil`; for BACKFILL, back to `window.earliest`." }),
      ),
      acceptedGaps: Type.Integer({
        description:
          "Gaps that were accepted and have not been harvested since: what they miss is missing behind the cursor.",
      }),
      planId: Type.String(),
      updatedAt: ReplyTime,
    }),
  ),
});
export const CursorParams = Type.Object({ source: Id, namespace: Id });
export const CursorEventsQuery = Body({ operation: Type.Enum(OPERATIONS, { default: "HARVEST" }), limit });
export const CursorEventsReply = Type.Object({
  items: Type.Array(
    Type.Object({
      key: Type.String(),
      direction: Type.String(),
      from: Nullable(Type.String()),
      to: Type.String(),
      observedMax: Nullable(Type.String()),
      planId: Type.String(),
      sliceId: Type.Integer(),
      generation: Type.Integer(),
      taskId: Type.Integer(),
      runId: Nullable(Type.Integer({ description: "Null for a slice that was cancelled before it ran." })),
      at: ReplyTime,
    }),
  ),
});
