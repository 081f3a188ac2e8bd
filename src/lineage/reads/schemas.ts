/** The queries and answers of the lineage reads. */
import { Type } from "typebox";
import { Body, Nullable, ReplyTime, Time } from "../../kernel/http/schemas.ts";
import { NODE_KINDS } from "../graph/names.ts";

const NAME_LENGTH_MAX = 2_048;

const tenant = Type.Optional(
  Type.String({ maxLength: 64, description: "The id of the tenant; a key that is bound to one needs not say it." }),
);
const Kind = Type.Enum([...NODE_KINDS]);
const Node = Type.String({
  minLength: 1,
  maxLength: NAME_LENGTH_MAX,
  description: "The id of an asset, its name, or the address of a dataset.",
  examples: ["lake.shop.orders", "hdfs://namenode:8020/warehouse/orders"],
});
const cursor = Type.Optional(
  Type.String({ maxLength: 2_048, description: "`next` of the page before; the first page has none." }),
);
const limit = Type.Integer({ minimum: 1, maximum: 1_000, default: 50 });
const Direction = Type.Enum(["up", "down", "both"], { default: "both" });
const CountNote = "A count that is equal to the maximum means: at least so many.";

/** In a path any text is taken: what is no id belongs to nothing, and is answered like an unknown one. */
export const IdParams = Body({ id: Type.String({ minLength: 1, maxLength: 256 }) });
export const TenantQuery = Body({ tenant });

const asset = {
  id: Type.String(),
  kind: Kind,
  name: Type.String(),
  fullName: Type.String(),
  path: Type.Array(Type.String()),
  description: Nullable(Type.String()),
};
const listedAsset = { ...asset, owner: Nullable(Type.String()) };
const AnyObject = Type.Object({}, { additionalProperties: true });

export const SearchQuery = Body({
  tenant,
  q: Type.String({ minLength: 1, maxLength: 400 }),
  kind: Type.Optional(Kind),
  mode: Type.Enum(["text", "semantic", "hybrid"], {
    default: "text",
    description: "By words, by meaning (with the tenant's model), or both.",
  }),
  dropped: Type.Boolean({
    default: false,
    description: "Also finds assets that were dropped, by words.",
  }),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
});
export const SearchReply = Type.Object({
  mode: Type.Enum(["text", "semantic", "hybrid"]),
  notice: Nullable(Type.String({ description: "Why it was not searched as asked for." })),
  items: Type.Array(
    Type.Object({
      ...asset,
      isDropped: Type.Boolean(),
      score: Type.Number(),
      matched: Type.Array(Type.Object({ field: Type.String(), snippet: Type.String() })),
    }),
  ),
});

export const AssetsQuery = Body({
  tenant,
  kind: Type.Optional(Kind),
  name: Type.Optional(
    Type.String({ minLength: 1, maxLength: NAME_LENGTH_MAX, description: "Its own name or the whole one." }),
  ),
  parent: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: "The id of their parent." })),
  limit,
  cursor,
});
export const AssetsReply = Type.Object({ items: Type.Array(Type.Object(listedAsset)), next: Nullable(Type.String()) });

const eventTime = Type.String({ description: "RFC 3339, in UTC, with microseconds." });
const event = {
  id: Type.String(),
  kind: Type.String(),
  eventType: Nullable(Type.String()),
  eventTime,
  runId: Nullable(Type.String()),
  jobNamespace: Nullable(Type.String()),
  jobName: Nullable(Type.String()),
  producer: Nullable(Type.String()),
  source: Type.String(),
  baseline: Type.Boolean(),
  state: Type.String(),
  error: Nullable(Type.String()),
  receivedAt: ReplyTime,
};

export const AssetReply = Type.Object({
  ...asset,
  attributes: AnyObject,
  parents: Type.Array(Type.Object({ id: Type.String(), kind: Kind, name: Type.String() })),
  columns: Type.Array(
    Type.Object({
      id: Type.String(),
      name: Type.String(),
      attributes: AnyObject,
      valueDomains: Type.Array(Type.String()),
    }),
  ),
  hasMoreColumns: Type.Boolean(),
  children: Type.Array(Type.Object(listedAsset)),
  childrenNext: Nullable(Type.String({ description: "The cursor for `GET /assets?parent=`." })),
  tags: Type.Array(Type.Object({ id: Type.String(), name: Type.String() })),
  valueDomains: Type.Array(Type.Object({ id: Type.String(), code: Type.String(), attributes: AnyObject })),
  summary: Nullable(Type.Object({ text: Type.String(), tags: Type.Array(Type.String()), generatedAt: ReplyTime })),
  isEmbedded: Type.Boolean(),
  executions: Type.Integer(),
  lastExecutionAt: Nullable(eventTime),
  neighbours: Type.Record(Type.String(), Type.Integer(), { description: CountNote }),
  neighbourCountMax: Type.Integer(),
  otherNames: Type.Integer({ description: "How many other names it had, or has beside this one." }),
  history: Type.Array(Type.Object(event), { description: "The newest events that name it." }),
  firstSeenAt: ReplyTime,
  lastSeenAt: Nullable(eventTime),
  updatedAt: ReplyTime,
  droppedAt: Nullable(
    Type.String({
      description:
        "Null if the asset exists. A dropped asset is returned with the attributes and columns that it had last, without neighbours.",
    }),
  ),
  droppedBy: Nullable(
    Type.Object(event, { description: "The event that dropped it, as long as the event is stored." }),
  ),
});

const walk = { tenant, node: Node, direction: Direction, depth: Type.Integer({ minimum: 1, maximum: 20, default: 3 }) };
const caps = {
  maxNodes: Type.Integer({ minimum: 1, maximum: 2_000, default: 500 }),
  maxEdges: Type.Integer({ minimum: 1, maximum: 10_000, default: 5_000 }),
};
const EXPAND_MAX = 30;
export const GraphQuery = Body({
  ...walk,
  ...caps,
  fanout: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 200,
      description: "How many neighbours of an asset are followed; the others are counted in `moreUp` and `moreDown`.",
    }),
  ),
  expand: Type.Optional(
    Type.String({
      pattern: `^\\d{1,18}:(up|down)(,\\d{1,18}:(up|down)){0,${EXPAND_MAX - 1}}$`,
      description: "Assets of the graph from which to go one hop further, in this order.",
      examples: ["17:down,23:up"],
    }),
  ),
});
const Reason = Nullable(Type.Enum(["NODES", "EDGES", "TIME"], { description: "Which limit was met." }));
const more = {
  moreUp: Type.Optional(
    Type.Integer({
      description: "Neighbours that are not in the answer, with `fanout`; of one kind of edges, 10,000 are counted.",
    }),
  ),
  moreDown: Type.Optional(Type.Integer()),
};
const ends = { from: Type.String(), to: Type.String(), kind: Type.String() };
const walked = {
  start: Type.String(),
  partial: Type.Boolean(),
  reason: Reason,
  depthReached: Type.Integer(),
  tookMs: Type.Number(),
};
export const GraphReply = Type.Object({
  ...walked,
  nodes: Type.Array(Type.Object({ ...listedAsset, distance: Type.Integer(), ...more })),
  edges: Type.Array(Type.Object({ ...ends, via: Type.Optional(Type.String()) }), {
    description: "From where data comes to where it goes.",
  }),
});
const Transformations = Type.Array(
  Type.Object({
    type: Type.String(),
    subtype: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    masking: Type.Optional(Type.Boolean()),
  }),
);
export const ColumnGraphReply = Type.Object({
  ...walked,
  nodes: Type.Array(
    Type.Object({
      ...asset,
      distance: Type.Integer(),
      isDirect: Type.Boolean({ description: "Values come through; else they only decide which rows there are." }),
      isMasked: Type.Boolean({ description: "Values are masked on every way that they come through." }),
      ...more,
    }),
  ),
  edges: Type.Array(
    Type.Object({
      ...ends,
      transformations: Transformations,
    }),
  ),
});

export const ImpactQuery = Body({ tenant, node: Node, format: Type.Enum(["json", "csv"], { default: "json" }) });
export const ImpactReply = Type.Object({
  start: Type.String(),
  partial: Type.Boolean(),
  reason: Reason,
  items: Type.Array(
    Type.Object({
      ...listedAsset,
      distance: Type.Integer(),
      via: Type.Array(Type.String()),
      transformations: Transformations,
      lastRunAt: Nullable(eventTime),
    }),
  ),
});

export const ImpactCsv = Type.String({
  description: "distance, kind, id, name, owner, via, description, transformations, lastRunAt",
});

export const NeighboursQuery = Body({
  tenant,
  direction: Type.Enum(["up", "down"]),
  q: Type.Optional(Type.String({ minLength: 1, maxLength: 400, description: "A part of the name." })),
  limit,
  cursor,
});
export const NeighboursReply = Type.Object({
  items: Type.Array(
    Type.Object({
      ...listedAsset,
      relation: Type.String({ description: "The kind of the edge." }),
      executions: Nullable(Type.Integer({ description: "Runs of a statement or job." })),
      lastRunAt: Nullable(eventTime),
    }),
  ),
  next: Nullable(
    Type.String({ description: "While it is there, others follow, even if this page is short or empty." }),
  ),
});

export const PathsQuery = Body({
  tenant,
  from: Node,
  to: Node,
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 5 }),
});
export const PathsReply = Type.Object({
  from: Type.String(),
  to: Type.String(),
  direction: Nullable(
    Type.Enum(["down", "up"], { description: "`down`: data go from `from` to `to`; null: neither way is known." }),
  ),
  partial: Type.Boolean(),
  reason: Nullable(
    Type.Enum(["NODES", "EDGES", "TIME", "STEPS"], {
      description: "Which limit was met; `STEPS` is that of the search for paths in what was found.",
    }),
  ),
  pathCount: Type.Integer({ description: "Of all paths without a circle; `pathCountMax` means: at least so many." }),
  pathCountMax: Type.Integer(),
  paths: Type.Array(Type.Array(Type.String()), { description: "Ids, in the direction of data; the shortest first." }),
  nodes: Type.Array(Type.Object(listedAsset), { description: "The assets on these paths." }),
  edges: Type.Array(Type.Object({ ...ends, via: Type.Optional(Type.String()) })),
});

const EVENT_KINDS = ["RUN_EVENT", "DATASET_EVENT", "JOB_EVENT"] as const;
const page = { limit, cursor };
export const EventsQuery = Body({
  tenant,
  asset: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: "The id of an asset that they name." })),
  jobNamespace: Type.Optional(Type.String({ maxLength: NAME_LENGTH_MAX })),
  job: Type.Optional(Type.String({ maxLength: NAME_LENGTH_MAX, description: "The name of a job in `jobNamespace`." })),
  run: Type.Optional(Type.String({ format: "uuid" })),
  kind: Type.Optional(Type.Enum([...EVENT_KINDS])),
  type: Type.Optional(Type.String({ maxLength: 64, examples: ["COMPLETE"], description: "START, COMPLETE, FAIL ..." })),
  state: Type.Optional(Type.Enum(["APPLIED", "BUFFERED", "SKIPPED", "DEAD"])),
  from: Type.Optional(Time),
  to: Type.Optional(Time),
  ...page,
});
export const DeadLettersQuery = Body({ tenant, ...page });
export const EventsReply = Type.Object({
  items: Type.Array(Type.Object(event)),
  next: Nullable(
    Type.String({ description: "While it is there, older events follow, even if this page is short or empty." }),
  ),
});
export const EventReply = Type.Object({
  ...event,
  warnings: Type.Array(Type.String(), { description: "What was left out of the graph, and why." }),
  body: Type.String({ description: "Exactly as it was sent." }),
  event: Type.Unknown(),
});

export const StatisticsReply = Type.Object({
  assets: Type.Record(Type.String(), Type.Integer()),
  edges: Type.Integer(),
  events: Type.Object({
    last24Hours: Type.Integer(),
    last7Days: Type.Integer(),
    byHour: Type.Array(Type.Object({ hour: ReplyTime, count: Type.Integer() })),
    newest: Nullable(ReplyTime),
    buffered: Type.Integer(),
    dead: Type.Integer(),
  }),
  tasks: Type.Array(Type.Object({ type: Type.String(), status: Type.String(), count: Type.Integer() })),
  countMax: Type.Integer({ description: CountNote }),
  hourCountMax: Type.Integer({ description: CountNote }),
});
