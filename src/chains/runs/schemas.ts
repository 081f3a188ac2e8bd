/** The bodies of runs and their nodes, with the field names of the JobChain API. */
import { type Static, Type } from "typebox";
import { Body, DryRunQuery, Nullable, Page, PageQuery, ReplyTime, Time } from "../../kernel/http/schemas.ts";
import { RUN_WHEN } from "../definitions/dag.ts";
import { NODE_STATUSES, RUN_STATUSES } from "../engine/states.ts";
import { AnyId, AnyJson, OpTime, Reason } from "../schemas.ts";

const TRIGGERS = ["api", "schedule", "backfill", "arrival", "chain", "map"] as const;
const NodeStatus = Type.Enum(NODE_STATUSES);

export const RunParams = Body({ runId: AnyId });
export const NodeParams = Body({ runId: AnyId, nodeId: AnyId });

const Run = {
  runId: Type.String(),
  chainId: Nullable(Type.String()),
  chainVersion: Nullable(Type.Integer()),
  jobId: Nullable(Type.String()),
  jobName: Type.String(),
  status: Type.Enum(RUN_STATUSES),
  reason: Nullable(Type.String({ description: "Why it ended with this status, or why it has not started." })),
  params: Type.Unknown({ description: "Any JSON. In a list, null if it is larger than 8 KB." }),
  paramsBytes: Type.Integer(),
  opTime: Nullable(Type.String()),
  priority: Type.Integer(),
  trigger: Type.String(),
  triggeredBy: Type.String(),
  parentRunId: Nullable(Type.String()),
  parentNodeId: Nullable(Type.String()),
  createdAt: ReplyTime,
  updatedAt: ReplyTime,
  startedAt: Nullable(ReplyTime),
  endedAt: Nullable(ReplyTime),
};
const RunSummary = Type.Object(Run);
export const RunDetail = Type.Object({
  ...Run,
  counts: Type.Record(Type.String(), Type.Integer()),
  previous: Nullable(
    Type.Object(
      { runId: Type.String(), chainVersion: Nullable(Type.Integer()) },
      { description: "The run of its chain that was made before it." },
    ),
  ),
  dagJson: Type.Optional(Type.String()),
  dag: Type.Optional(AnyJson),
});
export const RUN_IDS_MAX = 200;
export const RunsQuery = Body({
  ...PageQuery,
  size: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000, description: "Without it 20, or as many as `ids` names." }),
  ),
  chainId: Type.Optional(AnyId),
  status: Type.Optional(Type.Enum(RUN_STATUSES)),
  opTime: Type.Optional(OpTime),
  from: Type.Optional(Time),
  to: Type.Optional(Time),
  q: Type.Optional(
    Type.String({ maxLength: 128, description: "Part of the chain's name, or the start of a run's id." }),
  ),
  id: Type.Optional(
    Type.String({
      pattern: "^[0-9A-Fa-f]{8}[0-9A-Fa-f-]{0,28}$",
      description: "The beginning of a run's id: at least 8 of its characters.",
    }),
  ),
  ids: Type.Optional(
    Type.String({
      maxLength: 8_192,
      description: `Ids of runs, at most ${RUN_IDS_MAX}, separated by commas: these runs, as far as they exist.`,
    }),
  ),
  parentRunId: Type.Optional(AnyId),
  jobId: Type.Optional(AnyId),
  trigger: Type.Optional(Type.Enum(TRIGGERS)),
  triggeredBy: Type.Optional(Type.String({ maxLength: 256, description: "The key or the schedule that started it." })),
  waitsFor: Type.Optional(
    Type.String({
      maxLength: 262,
      pattern: "^(table:.+|pool:.+|slot|retry)$",
      description:
        "Runs with a node that waits for this: `table:<name>`, room in a pool (`pool:<name>`), a `slot` of a worker, or a `retry`. The first 10,000 such nodes count.",
    }),
  ),
  after: Type.Optional(
    Type.String({ minLength: 1, maxLength: 256, description: "The `next` of the previous page, in place of `page`." }),
  ),
});
export type RunsQuery = Static<typeof RunsQuery>;
export const RunsReply = Type.Object({ ...Page(RunSummary).properties, next: Nullable(Type.String()) });
export const RunQuery = Body({
  dag: Type.Boolean({ default: true, description: "Whether to answer the DAG, which may have 4 MB." }),
});
export const NodesQuery = Body({
  artifacts: Type.Boolean({ default: true, description: "Whether to answer artifacts; else they are null." }),
  since: Type.Optional(
    Type.String({
      format: "date-time",
      description: "Only nodes that changed at that time or later, or that are in work.",
    }),
  ),
});

const NodeWaitsReply = Type.Object(
  {
    cause: Type.Enum(["inputs", "slot", "retry", "stop", "started", "lost"] as const, {
      description:
        "`inputs`: parents and tables. `slot`: room in the pool and a worker. `retry`: the next attempt, at `dueAt`. `stop`: the run `childRunId`, which an earlier attempt started, is to stop. `started`: that run, or other work that the node started. `lost`: another worker, since its own is lost.",
    }),
    parents: Type.Integer({ description: "How many have not ended." }),
    tables: Type.Array(Type.String(), { description: "Those that have not arrived." }),
    pool: Nullable(Type.String()),
    unservedRole: Nullable(Type.Enum(["scheduler", "worker"] as const, { description: "No process has this role." })),
  },
  { description: "`waitingFor` in parts." },
);
export const NodeReply = Type.Object({
  nodeId: Type.String(),
  type: Type.String(),
  dependsOn: Type.Array(Type.String()),
  runWhen: Type.Enum(RUN_WHEN),
  status: NodeStatus,
  attempt: Type.Integer(),
  maxAttempts: Type.Integer(),
  lastError: Nullable(Type.String()),
  artifactJson: Nullable(Type.String()),
  artifact: Type.Unknown({ description: "Any JSON. In the list of nodes, null if it is larger than 64 KB." }),
  artifactBytes: Nullable(
    Type.Integer({
      description: "The artifact's size as text. If it is left out, its stored size, which may be smaller.",
    }),
  ),
  startedAt: Nullable(ReplyTime),
  endedAt: Nullable(ReplyTime),
  dueAt: Nullable(ReplyTime),
  waitingFor: Nullable(Type.String({ description: "Why it does not run yet, as a sentence." })),
  waits: Nullable(NodeWaitsReply),
  progress: Nullable(Type.Number()),
  progressNote: Nullable(Type.String()),
  worker: Nullable(Type.String()),
  childRunId: Nullable(Type.String()),
  updatedAt: ReplyTime,
});
export const NodesReply = Type.Array(NodeReply);
export const StreamReply = {
  description: "`run` is a run of the list with its `counts`, `nodes` is an array of nodes, `end` is `{ status }`.",
  content: { "text/event-stream": { schema: Type.Unknown() } }, // OpenAPI 3.1 cannot describe the events of a stream.
};

const Move = Type.Object({ nodeId: Type.String(), from: NodeStatus, to: NodeStatus });
const Revision = Type.String({
  pattern: "^[0-9a-f]{64}$",
  description: "Of a preview: with it, the action is 409 if it would do anything else by now.",
});
/** Of a preview. */
const Effect = { nodes: Type.Optional(Type.Array(Move)), revision: Type.Optional(Revision) };
export const ActionQuery = Body({ ...DryRunQuery.properties, revision: Type.Optional(Revision) });
export const RunStatusReply = Type.Object({ runId: Type.String(), status: Type.Enum(RUN_STATUSES), ...Effect });
export const RunRetryReply = Type.Object({
  runId: Type.String(),
  status: Type.Enum(RUN_STATUSES),
  dryRun: Type.Boolean(),
  nodes: Type.Array(Move),
  revision: Type.Optional(Revision),
});
export const StopBody = Nullable(Body({ reason: Type.Optional(Reason) }));
export const NodeActionBody = Nullable(
  Body({
    artifactJson: Type.Optional(Type.Unknown({ description: "JSON text, or any other JSON value." })),
    reason: Type.Optional(Reason),
  }),
);
export type NodeActionBody = Static<typeof NodeActionBody>;
export const RetryQuery = Body({
  downstream: Type.Boolean({ default: false, description: "Also run descendants again that have succeeded." }),
  dryRun: Type.Boolean({ default: false, description: "Only list the changes." }),
  revision: Type.Optional(Revision),
});
const NodeAction = {
  runId: Type.String(),
  nodeId: Type.String(),
  status: NodeStatus,
  attempt: Type.Integer(),
};
export const NodeActionReply = Type.Object({ ...NodeAction, ...Effect });
export const NodeRetryReply = Type.Object({
  ...NodeAction,
  dryRun: Type.Boolean(),
  nodes: Type.Array(Move),
  revision: Type.Optional(Revision),
});

export const AttemptsReply = Type.Array(
  Type.Object({
    attempt: Type.Integer(),
    status: Type.String(),
    error: Nullable(Type.String()),
    worker: Nullable(Type.String()),
    startedAt: Nullable(ReplyTime),
    endedAt: Nullable(ReplyTime),
  }),
);
const Cursor = Type.String({ pattern: "^\\d{1,18}$", description: "The `next` of the previous page." });
export const LogsQuery = Body({
  attempt: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })),
  after: Type.Optional(Cursor),
  limit: Type.Integer({ minimum: 1, maximum: 5_000, default: 1_000 }),
});
export const LogsReply = Type.Object({
  items: Type.Array(
    Type.Object({
      id: Type.String(),
      at: ReplyTime,
      attempt: Type.Integer(),
      level: Type.String(),
      text: Type.String(),
    }),
  ),
  next: Nullable(Type.String()),
});
export const EventsQuery = Body({
  after: Type.Optional(Type.String({ pattern: "^\\d{1,9}$", description: "The `next` of the previous page." })),
  limit: Type.Integer({ minimum: 1, maximum: 5_000, default: 1_000 }),
});
export const EventsReply = Type.Object({
  items: Type.Array(
    Type.Object({
      at: ReplyTime,
      kind: Type.String(),
      nodeId: Nullable(Type.String()),
      attempt: Nullable(Type.Integer()),
      actor: Nullable(Type.String()),
      detail: AnyJson,
    }),
  ),
  next: Nullable(Type.String()),
});
