/** Request and reply bodies of tracking, with the field names of the pipeline API. */
import { type Static, Type } from "typebox";
import { Body, Nullable, Page, PageQuery, ReplyTime, Time } from "../kernel/http/schemas.ts";
import { QUEUE_STAGES, STAGES, STATUSES, STUCK_REASONS, TRANSITIONS } from "./states.ts";

const SHARDS_MAX = 10_000;
const BATCH_MAX = 1_000;
const QUEUE_LIMIT_MAX = 1_000;
const OFFSET_MAX = 100_000;
const WAIT_SECONDS_MAX = 60;
const LEASE_SECONDS_MAX = 86_400;
const GRID_FILES_MAX = 100;
const GRID_SHARDS_MAX = 400;

const Filename = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^(?!\\.{1,2}$)[^/\\u0000-\\u001f\\u007f-\\u009f]+$",
  examples: ["20250101000000"],
  description: "A file name has 1 to 255 characters, no `/` and no control characters, and is not `.` or `..`.",
});
const Shard = Type.Integer({ minimum: 0, maximum: 2_147_483_647 });
const Worker = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
  examples: ["splitter-7"],
  description: "A worker's name has 1 to 128 characters and no control characters.",
});
const Fence = Type.String({
  pattern: "^[1-9]\\d{0,17}$",
  examples: ["42"],
  description: "A fence is the number, as text, that the claim returned.",
});
const FailureText = Type.String({ maxLength: 2_000, description: "Why it failed, as text for people." });
const LeaseSeconds = Type.Integer({ minimum: 1, maximum: LEASE_SECONDS_MAX, default: 60 });
const Status = Type.Enum(STATUSES);
const Counts = Type.Object(Object.fromEntries(STATUSES.map((status) => [status, Type.Integer()])));

const Cell = { filename: Filename, shard: Shard };
const HeldCell = Body({ ...Cell, fence: Fence });

export const RegisterBody = Body({
  filename: Filename,
  shards: Type.Array(Shard, { minItems: 1, maxItems: SHARDS_MAX, examples: [[0, 1]] }),
});
export const RegisterReply = Type.Object({
  filename: Type.String(),
  shards: Type.Array(Type.Integer()),
  created: Type.Boolean(),
});

export const FileMoveBody = Body({ filename: Filename, error: Type.Optional(FailureText) });
export const FileMoveReply = Type.Object({ filename: Type.String(), updated_rows: Type.Integer() });

const moveFields = { worker: Type.Optional(Worker), fence: Type.Optional(Fence), error: Type.Optional(FailureText) };
export const MoveBody = Body(
  {
    filename: Type.Optional(Filename),
    shard: Type.Optional(Shard),
    ...moveFields,
    items: Type.Optional(Type.Array(Body({ ...Cell, ...moveFields }), { minItems: 1, maxItems: BATCH_MAX })),
  },
  "Either `filename` and `shard` for one shard, or `items` for up to 1,000.",
);
export type MoveBody = Static<typeof MoveBody>;
export const MoveReply = Type.Object({
  filename: Type.Optional(Type.String()),
  shard: Type.Optional(Type.Integer()),
  stage: Type.String(),
  status: Type.Optional(Status),
  updated_rows: Type.Optional(Type.Integer()),
  items: Type.Optional(
    Type.Array(
      Type.Object({
        filename: Type.String(),
        shard: Type.Integer(),
        stage: Type.String(),
        status: Type.Optional(Type.String()),
        ok: Type.Boolean(),
        code: Type.Optional(Type.String()),
        error: Type.Optional(Type.String()),
      }),
    ),
  ),
});

export const QueueQuery = Body({
  limit: Type.Integer({ minimum: 1, maximum: QUEUE_LIMIT_MAX, default: 100 }),
  offset: Type.Integer({ minimum: 0, maximum: OFFSET_MAX, default: 0 }),
  updated_after: Type.Optional(Time),
});
const QueuedCell = { filename: Type.String(), shard: Type.Integer(), created_at: ReplyTime };
export const QueueReply = Type.Object({ stage: Type.String(), items: Type.Array(Type.Object(QueuedCell)) });

export const ClaimBody = Body({
  limit: Type.Integer({ minimum: 1, maximum: QUEUE_LIMIT_MAX, default: 1 }),
  worker: Worker,
  lease_seconds: LeaseSeconds,
  wait_seconds: Type.Integer({
    minimum: 0,
    maximum: WAIT_SECONDS_MAX,
    default: 0,
    description: "How long to wait for work if there is none.",
  }),
});
export const ClaimReply = Type.Object({
  stage: Type.String(),
  items: Type.Array(Type.Object({ ...QueuedCell, fence: Type.String(), leased_until: ReplyTime })),
});

const heldItems = Type.Array(HeldCell, { minItems: 1, maxItems: BATCH_MAX });
export const HeartbeatBody = Body({ items: heldItems, lease_seconds: LeaseSeconds });
export const ReleaseBody = Body({ items: heldItems });
const CellReply = Type.Object({ filename: Type.String(), shard: Type.Integer() });
export const HeldReply = Type.Object({
  stage: Type.String(),
  items: Type.Array(CellReply, { description: "Still leased to you, or released." }),
  lost: Type.Array(CellReply, { description: "No longer leased to you: stop working on these." }),
});

export const FileParams = Body({ filename: Filename });
const ShardFields = {
  shard: Type.Integer(),
  event_ingest_status: Status,
  shard_splitter_status: Status,
  shard_worker_status: Status,
  mysql_sender_status: Status,
  updated_at: ReplyTime,
  worker: Type.Optional(Type.String()),
  leased_until: Type.Optional(ReplyTime),
  lost_count: Type.Integer({ description: "Workers lost since the last success or retry." }),
  last_error: Type.Optional(Type.String()),
};
export const FileReply = Type.Object({ filename: Type.String(), shards: Type.Array(Type.Object(ShardFields)) });

export const ShardsQuery = Body({
  from: Type.Integer({ minimum: 0, maximum: 2_147_483_647, default: 0, description: "The first number, or `next`." }),
  status: Type.Optional(Type.Enum(STATUSES, { description: "Only those that have it in some stage." })),
  limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 200 }),
});
export const ShardsReply = Type.Object({
  filename: Type.String(),
  items: Type.Array(Type.Object({ ...ShardFields, created_at: ReplyTime })),
  next: Nullable(Type.Integer()),
});

export const FilesQuery = Body({
  ...PageQuery,
  stage: Type.Optional(Type.Enum(STAGES)),
  status: Type.Optional(Status),
  q: Type.Optional(Type.String({ maxLength: 255, description: "The beginning of the file's name." })),
});
export const FilesReply = Page(
  Type.Object({
    filename: Type.String(),
    created_at: ReplyTime,
    updated_at: ReplyTime,
    shards: Type.Integer(),
    stages: Type.Record(Type.String(), Type.Record(Type.String(), Type.Integer())),
  }),
);

const Prefix = Type.Optional(Type.String({ maxLength: 255, description: "The beginning of the file's name." }));
export const GridQuery = Body({
  stage: Type.Optional(Type.Enum(STAGES)),
  status: Type.Optional(Status),
  q: Prefix,
  after: Type.Optional(Filename),
  limit: Type.Integer({ minimum: 1, maximum: GRID_FILES_MAX, default: 50 }),
  from: Type.Integer({ minimum: 0, maximum: 2_147_483_647, default: 0, description: "The first shard." }),
  shards: Type.Integer({ minimum: 1, maximum: GRID_SHARDS_MAX, default: 100, description: "How many shards." }),
});
export const GridReply = Type.Object({
  shards: Type.Array(Type.Integer(), { description: "The numbers of the columns: those that some file has." }),
  next_shard: Nullable(Type.Integer({ description: "The first one of the next window." })),
  items: Type.Array(
    Type.Object({
      filename: Type.String(),
      created_at: ReplyTime,
      cells: Type.String({ description: "One character for each of `shards`." }),
    }),
  ),
  next: Nullable(Type.String({ description: "To be sent as `after`." })),
});

export const QueuesReply = Type.Object({
  stages: Type.Array(
    Type.Object({
      stage: Type.Enum(STAGES),
      ready: Type.Integer({ description: "In the queue: the stage before is done." }),
      started: Type.Integer(),
      done: Type.Integer(),
      failed: Type.Integer(),
      leased: Type.Integer({ description: "Of those started, the ones under a lease." }),
      lease_expired: Type.Integer(),
      started_long: Type.Integer({ description: "Started more than an hour ago without a lease." }),
      oldest_ready_at: Type.Optional(ReplyTime),
    }),
  ),
});

export const StuckQuery = Body({
  reason: Type.Optional(Type.Enum(STUCK_REASONS)),
  stage: Type.Optional(Type.Enum(STAGES)),
  q: Prefix,
  after: Type.Optional(Type.String({ maxLength: 300, description: "The `next` of the previous page." })),
  limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 200 }),
});
export const StuckReply = Type.Object({
  items: Type.Array(
    Type.Object({
      filename: Type.String(),
      shard: Type.Integer(),
      stage: Type.Enum(STAGES),
      reason: Type.Enum(STUCK_REASONS),
      worker: Type.Optional(Type.String()),
      leased_until: Type.Optional(ReplyTime),
      lost_count: Type.Integer(),
      last_error: Type.Optional(Type.String()),
      created_at: ReplyTime,
      updated_at: ReplyTime,
    }),
  ),
  next: Nullable(Type.String()),
});

export const RetryBody = Body({
  reason: Type.Optional(Type.Enum(STUCK_REASONS)),
  stage: Type.Optional(Type.Enum(STAGES)),
  q: Prefix,
  filename: Type.Optional(Filename),
  until: Type.Optional(
    Type.String({
      format: "date-time",
      description: "The `until` of a preview, to retry what it counted. What gets stuck later is left out.",
    }),
  ),
});
export const RetryReply = Type.Object({
  retried: Type.Integer(),
  by_reason: Type.Object(Object.fromEntries(STUCK_REASONS.map((reason) => [reason, Type.Integer()]))),
  more: Type.Boolean({ description: "Some are left: call again with the same `until`." }),
  until: ReplyTime,
});

export const SummaryReply = Type.Object({
  total: Type.Integer(),
  by_stage: Type.Record(Type.String(), Counts),
  by_shard: Type.Array(
    Type.Object({
      shard: Type.Integer(),
      total: Type.Integer(),
      done: Type.Integer({ description: "In the last stage." }),
      failed: Type.Integer({ description: "In the last stage." }),
    }),
  ),
});

// Stage and transition of the path are checked in the routes, which suggest the nearest known one.
const Word = (known: readonly string[]) => Type.String({ maxLength: 64, examples: known });
export const QueueParams = Type.Object({ stage: Word(QUEUE_STAGES) });
export const MoveParams = Type.Object({ stage: Word(QUEUE_STAGES), transition: Word(TRANSITIONS) });
export const FileMoveParams = Type.Object({ transition: Word(TRANSITIONS.slice(1)) });
