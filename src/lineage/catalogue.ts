/** The errors, metrics, scopes, hints and tags of lineage. It loads no package, because the CLI reads it too. */
import type { Catalogue } from "../kernel/catalogue.ts";
import { errorsOf } from "../kernel/errors.ts";
import type { Hints } from "../kernel/hints/hints.ts";
import type { Metrics } from "../kernel/telemetry/metrics.ts";

export const CATALOGUE = {
  name: "lineage",
  errors: {
    TENANT_UNRESOLVED: {
      status: 403,
      sentence: "The tenant of the event cannot be determined: {reason}. {advice}",
    },
    TENANT_CONFLICT: {
      status: 403,
      sentence: "An event belongs to one tenant, but this one is said to be of several: {said}.",
    },
    TENANT_UNKNOWN: {
      status: 403,
      sentence: "There is no tenant {tenantId}. Create it with POST /api/v1/lineage/tenants.",
    },
    TENANT_NOT_FOUND: { status: 404, sentence: "There is no tenant {tenantId}." },
    TENANT_EXISTS: { status: 409, sentence: "There is already a tenant with {what}." },
    TASK_NOT_FOUND: { status: 404, sentence: "Tenant {tenantId} has no task {taskId}." },
    TASK_WRONG_STATE: { status: 409, sentence: "Cannot {verb} task {taskId}: it is {status}. {hint}" },
    TENANT_WRONG_STATE: { status: 409, sentence: "Cannot {verb} tenant {tenantId}: it is {state}. {hint}" },
    TENANT_RATE_LIMITED: {
      status: 503,
      sentence: "Tenant {tenantId} sends more than {limit} events in a minute. Try again in {seconds} s.",
    },
    UNSUPPORTED_ENCODING: {
      status: 415,
      sentence: "The body has the content encoding `{encoding}`. Send it as gzip, or without any.",
    },
    GATEWAY_KEYS_UNAVAILABLE: {
      status: 503,
      sentence:
        "The keys that signed tokens are checked with cannot be fetched at the moment. Try again in {seconds} s.",
    },
    ASSET_NOT_FOUND: { status: 404, sentence: "There is no asset `{asset}`." },
    ASSET_AMBIGUOUS: {
      status: 400,
      sentence: "Several assets are named `{asset}`: {which}. Ask for one of them by its id, or by its whole name.",
    },
    SEMANTIC_UNAVAILABLE: {
      status: 409,
      sentence:
        "Tenant {tenantId} has chosen no model, so nothing can be searched by its meaning. Choose one with PUT /api/v1/lineage/tenants/{tenantId}/model, or search with `mode=text`.",
    },
    DEAD_LETTER_NOT_FOUND: { status: 404, sentence: "There is no dead letter {eventId}, or it was applied meanwhile." },
    LINEAGE_EVENT_NOT_FOUND: { status: 404, sentence: "There is no event {id}." },
    PROJECTION_NOT_CONFIGURED: {
      status: 409,
      sentence:
        "The graph is not projected to Neo4j: no server is configured. Name one under `lineage.neo4j` in the configuration file and start Millrace again.",
    },
    REBUILD_RUNNING: {
      status: 409,
      sentence:
        "The graph in Neo4j is being rebuilt since {startedAt}. Wait for its end; GET /api/v1/lineage/projection shows its progress.",
    },
  },
  metrics: {
    millrace_lineage_events_total: {
      kind: "counter",
      help: "Lineage events that were taken, by what became of them: applied, buffered, skipped, dead, or duplicate.",
      labels: ["tenant", "outcome"],
    },
    millrace_lineage_refused_total: {
      kind: "counter",
      help: "Lineage events that were refused, by the code of the error; the tenant is empty where it is not known.",
      labels: ["tenant", "code"],
    },
    millrace_lineage_doubted_renames_total: {
      kind: "counter",
      help: "Renames that engines reported and that were not applied, by the reason: unknown (nothing had the old name) or taken (a table had the new one).",
      labels: ["tenant", "reason"],
    },
    millrace_lineage_tasks: {
      kind: "gauge",
      help: "Async tasks that are not done, by type and status, as of some seconds ago.",
      labels: ["type", "status"],
    },
    millrace_lineage_tasks_total: {
      kind: "counter",
      help: "Async tasks that were claimed, retried (claimed after a failure) or lost with their process, and what became of them: succeeded, outdated, failed, dead, canceled.",
      labels: ["type", "outcome"],
    },
    millrace_lineage_batch_seconds: {
      kind: "histogram",
      help: "Time of a batch of async tasks from its claim to the commit of its results; failed if a model failed for any of them.",
      labels: ["type", "outcome"],
    },
    millrace_lineage_neo4j_waiting: {
      kind: "gauge",
      help: "Changes of the graph that wait to be written to Neo4j, as of some seconds ago.",
      labels: [],
    },
    millrace_lineage_neo4j_oldest_seconds: {
      kind: "gauge",
      help: "For how long the oldest change has waited to be written to Neo4j; 0 if none waits.",
      labels: [],
    },
    millrace_lineage_neo4j_needs_rebuild: {
      kind: "gauge",
      help: "1 if the graph in Neo4j lacks changes that only a rebuild brings back, else 0.",
      labels: [],
    },
    millrace_lineage_batches_in_flight: {
      kind: "gauge",
      help: "Batches of async tasks that this process works on at the moment.",
      labels: [],
    },
  },
  scopes: { "lineage:read": { forTenants: true }, "lineage:write": { forTenants: true } },
  hints: {
    asset: { scope: "lineage:read", id: "`id`", help: "It, its edges, its embedding or its summary changed." },
    "lineage-task": { scope: "lineage:read", id: "`id`", help: "It was queued, claimed, ended, reset or canceled." },
    "dead-letter": { scope: "lineage:read", id: "`eventId`", help: "It was found, or tried again." },
    tenant: {
      scope: "lineage:read",
      id: "`tenantId`",
      help: "It was created or changed, or it has another state or model.",
    },
  },
  tags: {
    lineage: "OpenLineage events, and the graph of assets that follows from them",
    "lineage tenants": "Tenants of the sink, and the events that could not be applied",
    "lineage projection": "The copy of the graph in Neo4j",
  },
  keySources: ["GRAVITINO", "COMPUTE_ENGINE"],
} as const satisfies Catalogue;

export const lineageError = errorsOf(CATALOGUE.errors);
export type LineageHints = Hints<typeof CATALOGUE.hints>;
export type LineageMetrics = Metrics<typeof CATALOGUE.metrics>;
