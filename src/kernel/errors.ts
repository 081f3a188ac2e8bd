/**
 * Every error a caller can see, in one catalogue, so that codes stay stable and `docs/errors.md` stays true (a test
 * compares them). Sentences say what was wrong and what to change; `{name}` is filled from the error's details.
 *
 * Three kinds of trouble, kept apart: `ApiError` is an answer to a request; `OperatorError` is a sentence for the person
 * at the terminal (bad settings, unusable disk); anything else that is thrown is a bug and is logged with its stack.
 */

export const CATALOGUE = {
  // Any endpoint
  MALFORMED_JSON: { status: 400, sentence: "The body is not valid JSON: {reason}." },
  INVALID_TEXT: { status: 400, sentence: "{where} contains {what}, which cannot be stored. Send well-formed Unicode." },
  VALIDATION_FAILED: { status: 400, sentence: "{reason}." },
  UNAUTHENTICATED: { status: 401, sentence: "{reason} Send `Authorization: Bearer <key>`." },
  FORBIDDEN: { status: 403, sentence: "This key may not do that: {because}." },
  ROUTE_NOT_FOUND: { status: 404, sentence: "There is no {method} {path} here. {hint}" },
  BODY_TOO_LARGE: { status: 413, sentence: "The body is larger than the limit of {limit} bytes. Send less at a time." },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, sentence: "The body must be JSON: send `Content-Type: application/json`." },
  RATE_LIMITED: {
    status: 429,
    sentence: "{who} made more than {limit} {what} in a minute. Try again in {seconds} s.",
  },
  SENDING_TOO_FAST: {
    status: 503,
    sentence: "{who} made more than {limit} {what} in a minute. Try again in {seconds} s.",
  },
  DATABASE_UNAVAILABLE: {
    status: 503,
    sentence: "The database does not answer at the moment. Try again in {seconds} s.",
  },
  OVERLOADED: { status: 503, sentence: "Too much work is waiting ({waiting} items). Try again in {seconds} s." },
  SHUTTING_DOWN: { status: 503, sentence: "This process is stopping. Try again in {seconds} s." },
  INTERNAL: {
    status: 500,
    sentence: "Something broke on our side. The log has the details under request {requestId}.",
  },

  // Keys and secrets
  KEY_NOT_FOUND: { status: 404, sentence: "There is no key with the id {id}." },
  SECRET_NOT_FOUND: { status: 404, sentence: "There is no secret `{name}`." },
  SECRETS_FULL: {
    status: 409,
    sentence: "There are {limit} secrets already. Delete those that are no longer used.",
  },
  SECRETS_UNAVAILABLE: { status: 503, sentence: "{reason}" },

  // Tracking
  STAGE_UNKNOWN: { status: 400, sentence: "There is no stage `{stage}` here. Use one of {allowed}.{hint}" },
  TRANSITION_UNKNOWN: {
    status: 400,
    sentence: "Stage `{stage}` has no transition `{transition}`. Use one of {allowed}.{hint}",
  },
  FILE_NOT_FOUND: {
    status: 404,
    sentence: "File `{filename}` is not registered. Register it with POST /api/v1/pipeline/files/register.",
  },
  SHARD_NOT_FOUND: {
    status: 404,
    sentence: "File `{filename}` has no shard {shard}. Register it again with that shard to add it.",
  },
  WRONG_STATUS: {
    status: 409,
    sentence: "Cannot {verb} {stage} of {filename}, shard {shard}: it is `{status}`{because}.",
  },
  FILE_WRONG_STATUS: { status: 409, sentence: "Cannot {verb} event-ingest of {filename}: {because}." },
  LEASE_LOST: {
    status: 409,
    sentence: "The lease on {stage} of {filename}, shard {shard} is not yours: {because}.",
  },

  // Chains. An unknown chain, run or node is 400, as the callers of these endpoints expect.
  CHAIN_NOT_FOUND: { status: 400, sentence: "There is no chain {chainId}." },
  CHAIN_NAME_TAKEN: {
    status: 400,
    sentence: "There is already a chain named `{name}`. Choose another name or update it.",
  },
  DAG_INVALID: { status: 400, sentence: "{reason}." },
  CHAIN_DISABLED: { status: 409, sentence: "The chain is disabled: enable `{name}` first." },
  CHAIN_FULL: {
    status: 409,
    sentence: "Chain `{name}` has {active} of at most {max} active runs. Wait until one has ended, or stop one.",
  },
  VERSION_CONFLICT: {
    status: 409,
    sentence:
      "Chain {chainId} is at version {version}, but the update was made from version {yours}. Read it again and repeat the change.",
  },
  CHAIN_VERSION_NOT_FOUND: { status: 400, sentence: "Chain {chainId} has no version {version}." },
  RUN_NOT_FOUND: { status: 400, sentence: "There is no run {runId}." },
  NODE_NOT_FOUND: { status: 400, sentence: "Run {runId} has no node `{nodeId}`.{hint}" },
  RUN_WRONG_STATE: { status: 409, sentence: "Cannot {verb} run {runId}: {because}." },
  NODE_WRONG_STATE: { status: 409, sentence: "Cannot {verb} node `{nodeId}` of run {runId}: {because}." },
  OP_TIME_NEEDED: {
    status: 400,
    sentence: "Chain `{name}` waits for tables ({tables}), so a run of it needs an `opTime`.",
  },
  OP_TIME_RANGE: { status: 400, sentence: "{reason}." },
  IDEMPOTENCY_CONFLICT: {
    status: 409,
    sentence: "The Idempotency-Key `{key}` was used for another start of this chain (run {runId}). Use a new key.",
  },
  SCHEDULE_NOT_FOUND: { status: 400, sentence: "Chain {chainId} has no schedule {scheduleId}." },
  SCHEDULE_NAME_TAKEN: { status: 400, sentence: "The chain has a schedule named `{name}` already." },
  SCHEDULE_INVALID: { status: 400, sentence: "{reason}." },
  POOL_NOT_FOUND: { status: 400, sentence: "There is no pool `{name}`." },
  POOL_IN_USE: {
    status: 409,
    sentence: "Pool `{name}` is in use: {because}.",
  },

  // Arrivals
  MODEL_NOT_FOUND: { status: 404, sentence: "There is no model `{modelId}`." },
  MODEL_NOT_PUBLISHED: {
    status: 409,
    sentence: "Model `{modelId}` is not published. Publish it first: POST /api/v1/kpi/models/{modelId}:publish.",
  },
  MODEL_RUNNING: { status: 409, sentence: "Model `{modelId}` is running for {opTime}. Wait until that has ended." },
  TABLES_MISSING: {
    status: 409,
    sentence:
      "Model `{modelId}` cannot run for {opTime} while tables are missing: {missing}. With `force` it runs without.",
  },
  KPI_NOT_FOUND: { status: 404, sentence: "There is no indicator `{kpiId}`." },
  KPI_FED_ALREADY: {
    status: 409,
    sentence: "Indicator `{kpiId}` is fed by model `{modelId}`, and only one model feeds an indicator.",
  },
  KPI_IN_USE: { status: 409, sentence: "Indicator `{kpiId}` is used by `{by}`. Change or delete that first." },

  // Webhooks
  SUBSCRIPTION_NOT_FOUND: { status: 404, sentence: "There is no subscription {id}." },
  CALLBACK_URL_INVALID: { status: 400, sentence: "The callback URL cannot be used: {reason}." },
  SECRET_INVALID: { status: 400, sentence: "The secret cannot be used: {reason}. {hint}" },
  DELIVERY_NOT_FOUND: { status: 404, sentence: "There is no delivery {id}." },
  DELIVERY_WRONG_STATE: { status: 409, sentence: "Cannot send delivery {id} again: {because}." },

  // Lineage
  TENANT_UNRESOLVED: {
    status: 403,
    sentence: "It cannot be told which tenant the event belongs to: {reason}. {advice}",
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
    sentence: "The keys that signed tokens are checked with cannot be fetched at the moment. Try again in {seconds} s.",
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
      "The graph in Neo4j is being rebuilt since {startedAt}. Wait for its end; GET /api/v1/lineage/projection tells how far it is.",
  },
} as const satisfies Record<string, { status: number; sentence: string }>;

export type ErrorCode = keyof typeof CATALOGUE;
export type ErrorDetails = Record<string, string | number | boolean | null | readonly object[]>;

/** An answer other than success. The HTTP layer turns it into `{ error, code, details? }` with the catalogue's status. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: ErrorDetails;
  /** Seconds for the `Retry-After` header, on answers that invite another try. */
  readonly retryAfterSeconds: number | undefined;

  /** `phrases` complete the sentence like details do, but are not told again as data. */
  constructor(code: ErrorCode, details: ErrorDetails = {}, phrases: Record<string, string> = {}) {
    super(fill(CATALOGUE[code].sentence, { ...details, ...phrases }));
    this.name = "ApiError";
    this.code = code;
    this.status = CATALOGUE[code].status;
    this.details = details;
    this.retryAfterSeconds = typeof details["seconds"] === "number" ? details["seconds"] : undefined;
  }
}

/** A sentence for the person who runs Millrace. The CLI prints it without a stack and exits with `exitCode`. */
export class OperatorError extends Error {
  readonly exitCode: number;

  constructor(sentence: string, exitCode = 1) {
    super(sentence);
    this.name = "OperatorError";
    this.exitCode = exitCode;
  }
}

/** What a caller sent cannot be: `reason` is a sentence that lacks its full stop. */
export function invalid(reason: string): ApiError {
  return new ApiError("VALIDATION_FAILED", {}, { reason });
}

function fill(sentence: string, details: ErrorDetails): string {
  return sentence
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const value = details[name] ?? "";
      return typeof value === "object" ? "" : String(value); // A list is told as data alone.
    })
    .trim();
}
