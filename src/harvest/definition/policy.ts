/**
 * What can be configured about an endpoint of a source, section by section. Every layer (platform, source, endpoint, section,
 * trigger) is a partial policy; the compiler merges them into a complete one (spec/layers.ts).
 *
 * Text fields called a template may contain `${...}`, a CEL expression over `window`, `page`, `params`, `plan`, `ids` and `now`.
 * A parameter whose template renders to null is left out of the request.
 */
import { type Static, Type } from "typebox";
import { KEY_LENGTH_MAX, KEY_PATTERN, RATE_MAX, RATE_MIN } from "../../kernel/gate/declaration.ts";
import { COST_MAX } from "../../kernel/gate/permits.ts";
import { DURATION_RULE } from "../spec/duration.ts";
import { SlicingPolicy } from "./slicing-policy.ts";

const closed = { additionalProperties: false } as const;
/** ISO 8601, days to seconds: `P1D`, `PT10M`, `PT1H30M`. Months and years have no fixed length. */
const DURATION_PATTERN = "^P(?!$)(\\d+D)?(T(?!$)(\\d+H)?(\\d+M)?(\\d+S)?)?$";
const Duration = Type.String({ pattern: DURATION_PATTERN, maxLength: 40, description: DURATION_RULE });
const Template = Type.String({ maxLength: 8_192 });
const Templates = Type.Record(Type.String({ minLength: 1, maxLength: 255 }), Template, { maxProperties: 100 });
/** RFC 9535. An element of XML is an object whose child names hold lists, so a path into XML has `[0]` or `[*]`. */
const JsonPath = Type.String({ pattern: "^\\$", maxLength: 1_024 });
const Cel = Type.String({ minLength: 1, maxLength: 4_096 });
const Milliseconds = (maximum: number) => Type.Integer({ minimum: 1, maximum });

export const ENUMERATORS = ["SearchByDateRange", "ScanByCursor", "TwoPhase", "NoCount", "ExistingSet"] as const;
export const PAGINATION_TYPES = ["OFFSET", "PAGE", "TOKEN", "URL", "TIME"] as const;
export const TOKEN_CLASSES = ["REPEATABLE", "SINGLE_USE", "EXPIRING"] as const;
export const ACTIONS = [
  "RETRY",
  "RATE_LIMITED",
  "IGNORE_EMPTY",
  "DELETED",
  "RESTART_SLICE",
  "SPLIT_SLICE",
  "FAIL",
] as const;
export const FAMILIES = ["REST_JSON", "NCBI", "OAI"] as const;
export const FIELD_TYPES = ["string", "integer", "number", "boolean", "date", "timestamp", "json"] as const;

const REDIRECTS_MAX = 3;
/** A hundred dollars. */
const PRICE_USD_MICROS_MAX = 100_000_000;

const HttpPolicy = Type.Object(
  {
    headers: Templates,
    query: Templates,
    /** A form body, sent as `application/x-www-form-urlencoded`. */
    form: Templates,
    /** A JSON body. Its strings are templates. */
    json: Type.Unknown(),
    connectTimeoutMs: Milliseconds(120_000),
    readTimeoutMs: Milliseconds(120_000),
    /** Ask for compressed responses. */
    compression: Type.Boolean(),
    /** GET and HEAD to the same origin only. Each request takes permits for all of them, whether they come or not. */
    redirects: Type.Integer({ minimum: 0, maximum: REDIRECTS_MAX }),
    proxy: Type.String({ maxLength: 2_048 }),
    responseBytesMax: Type.Integer({ minimum: 1_024, maximum: 1_073_741_824 }),
  },
  closed,
);

const AuthPolicy = Type.Object(
  {
    type: Type.Enum(["NONE", "API_KEY", "BEARER", "OAUTH2", "CUSTOM"] as const),
    location: Type.Enum(["HEADER", "QUERY", "BODY"] as const),
    /** The header, parameter or form field. */
    name: Type.String({ minLength: 1, maxLength: 255 }),
    /** A credential of the source. */
    credential: Type.String({ minLength: 1, maxLength: 64 }),
    /** False: requests are anonymous while the credential has no value. */
    required: Type.Boolean(),
    signingHook: Type.String({ maxLength: 255 }),
  },
  closed,
);

const PaginationPolicy = Type.Object(
  {
    type: Type.Enum(PAGINATION_TYPES),
    pageSize: Type.Integer({ minimum: 1, maximum: 100_000 }),
    /** The largest page that the source serves. */
    pageSizeMax: Type.Integer({ minimum: 1, maximum: 100_000 }),
    maxPage: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
    /** The number of the first page, for PAGE. */
    base: Type.Union([Type.Literal(0), Type.Literal(1)]),
    /** The first token, for TOKEN. */
    initial: Type.String({ maxLength: 1_024 }),
    tokenClass: Type.Enum(TOKEN_CLASSES),
    /** How long a token of class EXPIRING can be used. */
    tokenTtl: Duration,
    nextTokenPath: JsonPath,
    nextUrlPath: JsonPath,
    hasMorePath: JsonPath,
    /** Pages after the first send these parameters instead of `http.query`. */
    nextQuery: Templates,
    /** How many records the page stands for, for OFFSET: the next one begins so many further. */
    countPath: JsonPath,
    orderBy: Type.String({ maxLength: 255 }),
    /** The slice stops as stalled after this many pages in a row without a new id. */
    stalledPages: Type.Integer({ minimum: 1, maximum: 1_000 }),
  },
  closed,
);

export const HINT_UNITS = ["RECORDS", "PAGES"] as const;

const WindowPolicy = Type.Object(
  {
    supportsUpdatedSince: Type.Boolean(),
    /** The column of `outputFields`, or the name, of the time that the source filters on. */
    watermarkKey: Type.String({ minLength: 1, maxLength: 255 }),
    /** The smallest unit in which the source filters. Slices are whole multiples of it. */
    granularity: Duration,
    /** How `window.from`, `window.until` and `window.to` are written: `yyyy-MM-dd`, `yyyy/MM/dd`, `iso`, `epochMs` ... */
    format: Type.String({ minLength: 1, maxLength: 64 }),
    /** The zone of the source's days. */
    timezone: Type.String({ minLength: 1, maxLength: 64 }),
    /** A window may be closed this long after its end. */
    safetyLag: Duration,
    align: Type.Enum(["min", "hour", "day"] as const),
    minWindow: Duration,
    maxWindow: Duration,
    /** Nothing is older. The first plan without a window starts here, or one `maxWindow` ago. */
    earliest: Type.String({ maxLength: 40 }),
    /** The source answers no more than this many records for one query. A smaller window is tried, then it is INCOMPLETE. */
    recordsMax: Type.Integer({ minimum: 1, maximum: 100_000_000 }),
    /** Slices with more records than this are split in time. */
    sliceRecords: Type.Integer({ minimum: 1, maximum: 100_000_000 }),
    /** Parameters that replace those of `http.query` to count the records of a slice before its first page. */
    probe: Type.Object({ query: Templates, totalPath: JsonPath, format: Type.Enum(["JSON", "XML"] as const) }, closed),
    /** Where answers hint at the number of records of a slice, for a source that announces no total. */
    hint: Type.Object(
      {
        path: Type.Optional(JsonPath),
        header: Type.Optional(Type.String({ minLength: 1, maxLength: 255, pattern: "^[A-Za-z0-9_-]+$" })),
        unit: Type.Enum(HINT_UNITS, { default: "RECORDS" }),
      },
      closed,
    ),
    /** The source returns records in the order of the watermark, and the watermark never decreases. */
    monotone: Type.Boolean(),
    /** Of a list that is `monotone`, for a source that does not filter by time. */
    order: Type.Enum(["ascending", "descending"] as const),
    /** Records that may be missing from the announced total. */
    tolerance: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
  },
  closed,
);

const ResponsePolicy = Type.Object(
  {
    format: Type.Enum(["JSON", "XML"] as const),
    itemsPath: JsonPath,
    idPath: JsonPath,
    /** Where the id alone is not unique: the values of these paths, joined by `:`, are the key instead. */
    keyPaths: Type.Array(JsonPath, { minItems: 2, maxItems: 5 }),
    updatedAtPath: JsonPath,
    /** How `updatedAtPath` is written. `parts` is an object with Year, Month and Day, as in PubMed. */
    updatedAtFormat: Type.Enum(["iso", "epochMs", "epochSeconds", "parts"] as const),
    /** A number or text that orders the versions of a record with the same `updatedAt`. */
    versionPath: JsonPath,
    totalPath: JsonPath,
    /** A record is deleted where this path has one of `deletedValues`. */
    deletedPath: JsonPath,
    deletedValues: Type.Array(Type.String({ maxLength: 255 }), { minItems: 1, maxItems: 20 }),
    /** Records without one of these are quarantined. */
    requiredPaths: Type.Array(JsonPath, { maxItems: 50 }),
    /** Paths of the record that do not count as a change, such as a search score. */
    ignoredPaths: Type.Array(JsonPath, { maxItems: 50 }),
    /** XML: elements that are records, where `itemsPath` is the path of their parent. */
    itemElements: Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: 20 }),
  },
  closed,
);

export const OutputField = Type.Object(
  {
    name: Type.String({ pattern: "^[A-Za-z][A-Za-z0-9_]{0,62}$" }),
    path: JsonPath,
    type: Type.Enum(FIELD_TYPES, { default: "string" }),
    required: Type.Boolean({ default: false }),
    /** Other values are illegal, and their records quarantined. */
    enum: Type.Optional(Type.Array(Type.String({ maxLength: 255 }), { minItems: 1, maxItems: 1_000 })),
  },
  closed,
);
export type OutputField = Static<typeof OutputField>;

export const RetryPolicySection = Type.Object(
  {
    maxAttempts: Type.Integer({ minimum: 1, maximum: 20 }),
    baseMs: Milliseconds(600_000),
    capMs: Milliseconds(600_000),
    factor: Type.Number({ minimum: 1, maximum: 10 }),
    jitter: Type.Number({ minimum: 0, maximum: 1 }),
    retryableStatus: Type.Array(Type.Integer({ minimum: 400, maximum: 599 }), { maxItems: 100 }),
  },
  closed,
);

export const Quota = Type.Object(
  {
    unit: Type.Enum(["requests", "credits", "usd_micros"] as const),
    window: Duration,
    limit: Type.Integer({ minimum: 1, maximum: 1_000_000_000 }),
  },
  closed,
);

/** Room for the suffix of gates for requests with a credential. */
const GateKey = Type.String({ minLength: 1, maxLength: KEY_LENGTH_MAX - ":key".length, pattern: KEY_PATTERN });
const PerSecond = Type.Number({ minimum: RATE_MIN, maximum: RATE_MAX });

const RateLimitPolicy = Type.Object(
  {
    /** The gates of a request, from the widest: `crossref`, `crossref:works`. Templates may not be used. */
    keys: Type.Array(GateKey, { minItems: 1, maxItems: 4 }),
    refillRatePerSec: PerSecond,
    /** Applies while the credential has a value. Such requests have gates of their own: `ncbi:key` beside `ncbi`. */
    refillRateWithCredential: PerSecond,
    burstCapacity: Type.Integer({ minimum: 1, maximum: RATE_MAX }),
    concurrency: Type.Integer({ minimum: 1, maximum: 1_000 }),
    warmupSec: Type.Integer({ minimum: 0, maximum: 3_600 }),
    demoteRate: Type.Number({ exclusiveMinimum: 1, maximum: 100 }),
    /** What a request of this endpoint counts for, in the rate and in credits. */
    cost: Type.Integer({ minimum: 1, maximum: COST_MAX / (1 + REDIRECTS_MAX) }),
    quotas: Type.Array(Quota, { maxItems: 4 }),
    /** What a request costs of a quota in money. */
    priceUsdMicros: Type.Integer({ minimum: 0, maximum: PRICE_USD_MICROS_MAX }),
    /** False: a good answer has the header too, and does not ask for a pause by it. */
    retryAfterOnSuccess: Type.Boolean(),
    /** What the provider's `X-RateLimit-Limit` counts over, where it sends neither an interval nor a reset. */
    headerWindow: Duration,
    /** The provider's own limits, which the declared rate may not exceed. */
    providerRatePerSec: PerSecond,
  },
  closed,
);

export const BatchingPolicy = Type.Object(
  {
    idBatchSize: Type.Integer({ minimum: 1, maximum: 10_000 }),
    idBatchSizeMax: Type.Integer({ minimum: 1, maximum: 10_000 }),
    /** Records in one statement. */
    recordsPerStatement: Type.Integer({ minimum: 1, maximum: 10_000 }),
  },
  closed,
);

const UpdatePolicy = Type.Object(
  {
    /** Records that nothing has checked for so long are asked for again. */
    staleAfter: Duration,
    /** Known ids that one slice covers. */
    sliceRecords: Type.Integer({ minimum: 1, maximum: 100_000 }),
    /** Known ids that one plan covers at most. */
    recordsMax: Type.Integer({ minimum: 1, maximum: 10_000_000 }),
    /** Members of a record, such as `$.abstract`: an update writes these only, and only where the record has none. */
    fillEmpty: Type.Array(Type.String({ pattern: "^\\$\\.[A-Za-z_][A-Za-z0-9_-]{0,62}$" }), { maxItems: 50 }),
  },
  closed,
);

export const ExprPolicy = Type.Object(
  {
    allowedFunctions: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 100 }),
    nullPolicy: Type.Enum(["omit", "empty"] as const),
  },
  closed,
);

export const RequestParam = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 255 }),
    location: Type.Enum(["QUERY", "HEADER", "BODY", "PATH"] as const, { default: "QUERY" }),
    default: Type.Optional(Type.Union([Type.String({ maxLength: 4_096 }), Type.Number(), Type.Boolean()])),
    required: Type.Boolean({ default: false }),
    /** The rendered value must match this regular expression as a whole. */
    pattern: Type.Optional(Type.String({ minLength: 1, maxLength: 1_024 })),
    /** A CEL expression instead of the parameter's own value. */
    expr: Type.Optional(Cel),
    /** Unset: true. */
    selects: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type RequestParam = Static<typeof RequestParam>;

export const ClassifierRule = Type.Object(
  {
    /** CEL over `status`, `headers`, `body` (parsed, or null), `text` (the first 4,096 characters) and `attempt`. */
    when: Cel,
    action: Type.Enum(ACTIONS),
    reason: Type.String({ minLength: 1, maxLength: 255 }),
    level: Type.Optional(Type.Enum(["L1", "L2", "L3", "L4"] as const)),
    /** How long the gate closes, for RATE_LIMITED without Retry-After. */
    cooldownSec: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
  },
  closed,
);
export type ClassifierRule = Static<typeof ClassifierRule>;

export const BudgetPolicy = Type.Object(
  {
    maxRequests: Type.Integer({ minimum: 1, maximum: 100_000_000 }),
    maxDurationSec: Type.Integer({ minimum: 1, maximum: 604_800 }),
    /** The share of failed requests that ends a run, once there were 20. */
    errorShareMax: Type.Number({ minimum: 0, maximum: 1 }),
    /** Tasks of this endpoint and operation that may be queued at once. */
    queuedTasksMax: Type.Integer({ minimum: 1, maximum: 100_000 }),
    /** Tasks of this endpoint and operation that run at once, over all processes. */
    concurrency: Type.Integer({ minimum: 1, maximum: 1_000 }),
  },
  closed,
);

export const LandingPolicy = Type.Object(
  {
    /** The engine that the table is in; unset, the lake. */
    engine: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    /** The table, and the name under which it arrives. */
    table: Type.String({ pattern: "^[A-Za-z][A-Za-z0-9_]{0,126}$" }),
    grain: Type.Enum(["hour", "day"] as const),
  },
  closed,
);

/** A complete policy has every section; which of their fields are required is what the compiler checks. */
export const POLICY_SECTIONS = {
  http: HttpPolicy,
  auth: AuthPolicy,
  pagination: PaginationPolicy,
  window: WindowPolicy,
  slicing: SlicingPolicy,
  response: ResponsePolicy,
  retry: RetryPolicySection,
  rateLimit: RateLimitPolicy,
  batching: BatchingPolicy,
  expr: ExprPolicy,
  budget: BudgetPolicy,
  landing: LandingPolicy,
  update: UpdatePolicy,
} as const;
export type PolicySection = keyof typeof POLICY_SECTIONS;

const partialSections = Object.fromEntries(
  // Partial keeps none of the options of an object.
  Object.entries(POLICY_SECTIONS).map(([name, section]) => [name, Type.Optional(Type.Partial(section, closed))]),
) as unknown as {
  [Name in PolicySection]: ReturnType<
    typeof Type.Optional<ReturnType<typeof Type.Partial<(typeof POLICY_SECTIONS)[Name]>>>
  >;
};

/** The fields of a policy beside its sections. Lists replace the list of a lower layer as a whole. */
export const POLICY_FIELDS = {
  enumerator: Type.Enum(ENUMERATORS),
  family: Type.Enum(FAMILIES),
  params: Type.Array(RequestParam, { maxItems: 100 }),
  outputFields: Type.Array(OutputField, { maxItems: 500 }),
  classifier: Type.Array(ClassifierRule, { maxItems: 100 }),
  bodies: Type.Enum(["all", "failures", "none"] as const),
  redact: Type.Boolean(),
} as const;

/** A layer: any part of a policy. */
export const PolicyLayer = Type.Object(
  {
    ...partialSections,
    enumerator: Type.Optional(POLICY_FIELDS.enumerator),
    family: Type.Optional(POLICY_FIELDS.family),
    params: Type.Optional(POLICY_FIELDS.params),
    outputFields: Type.Optional(POLICY_FIELDS.outputFields),
    classifier: Type.Optional(POLICY_FIELDS.classifier),
    bodies: Type.Optional(POLICY_FIELDS.bodies),
    redact: Type.Optional(POLICY_FIELDS.redact),
  },
  closed,
);
export type PolicyLayer = Static<typeof PolicyLayer>;
