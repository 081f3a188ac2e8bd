/** The queries and answers of the lineage reads. */
import { Type } from "typebox";
import { Body, Nullable, ReplyTime, Time } from "../kernel/http/schemas.ts";
import { NODE_KINDS } from "./names.ts";

const NAME_LENGTH_MAX = 2_048;

const tenant = Type.Optional(
  Type.String({ maxLength: 64, description: "The id of the tenant; a key that is bound to one needs not say it." }),
);
const Kind = Type.Enum([...NODE_KINDS]);
const Node = Type.String({
  minLength: 1,
  maxLength: NAME_LENGTH_MAX,
  description: "The id of an asset, or its name.",
  examples: ["lake.shop.orders"],
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
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
});
export const SearchReply = Type.Object({
  mode: Type.Enum(["text", "semantic", "hybrid"]),
  notice: Nullable(Type.String({ description: "Why it was not searched as asked for." })),
  items: Type.Array(
    Type.Object({
      ...asset,
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
  parent: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: "The id of what they lie in." })),
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
});

const walk = { tenant, node: Node, direction: Direction, depth: Type.Integer({ minimum: 1, maximum: 20, default: 3 }) };
const caps = {
  maxNodes: Type.Integer({ minimum: 1, maximum: 2_000, default: 500 }),
  maxEdges: Type.Integer({ minimum: 1, maximum: 10_000, default: 5_000 }),
};
export const GraphQuery = Body({ ...walk, ...caps });
const Reason = Nullable(Type.Enum(["NODES", "EDGES", "TIME"], { description: "Which limit was met." }));
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
  nodes: Type.Array(Type.Object({ ...listedAsset, distance: Type.Integer() })),
  edges: Type.Array(Type.Object({ ...ends, via: Type.Optional(Type.String()) }), {
    description: "From where data comes to where it goes.",
  }),
});
export const ColumnGraphReply = Type.Object({
  ...walked,
  nodes: Type.Array(
    Type.Object({
      ...asset,
      distance: Type.Integer(),
      isDirect: Type.Boolean({ description: "Values come through; else they only decide which rows there are." }),
      isMasked: Type.Boolean({ description: "Values are masked on every way that they come through." }),
    }),
  ),
  edges: Type.Array(
    Type.Object({
      ...ends,
      transformations: Type.Array(
        Type.Object({
          type: Type.String(),
          subtype: Type.Optional(Type.String()),
          description: Type.Optional(Type.String()),
          masking: Type.Optional(Type.Boolean()),
        }),
      ),
    }),
  ),
});

export const ImpactQuery = Body({ tenant, node: Node, format: Type.Enum(["json", "csv"], { default: "json" }) });
export const ImpactReply = Type.Object({
  start: Type.String(),
  partial: Type.Boolean(),
  reason: Reason,
  items: Type.Array(Type.Object({ ...listedAsset, distance: Type.Integer(), via: Type.Array(Type.String()) })),
});

export const ImpactCsv = Type.String({ description: "distance, kind, id, name, owner, via, description" });

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
