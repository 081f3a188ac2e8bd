/**
 * The Spec Snapshot: everything that a plan needs to know of its source, merged, checked and normalised. It is stored once by its
 * fingerprint and never changes, so a change of the configuration does not touch a plan that runs.
 */
import type { Static } from "typebox";
import type {
  BatchingPolicy,
  BudgetPolicy,
  ClassifierRule,
  ENUMERATORS,
  ExprPolicy,
  FAMILIES,
  HINT_UNITS,
  LandingPolicy,
  OutputField,
  PAGINATION_TYPES,
  Quota,
  RequestParam,
  RetryPolicySection,
  TOKEN_CLASSES,
} from "../definition/policy.ts";
import type { SLICE_STRATEGIES } from "../definition/slicing-policy.ts";

export const OPERATIONS = ["HARVEST", "BACKFILL", "UPDATE"] as const;
export type Operation = (typeof OPERATIONS)[number];

/** Smaller goes first. */
export const PRIORITIES = { HARVEST: 100, UPDATE: 200, BACKFILL: 300 } as const satisfies Record<Operation, number>;

export interface Snapshot {
  schemaVersion: 1;
  compilerVersion: string;
  provenanceCode: string;
  endpointName: string;
  operation: Operation;
  spec: EndpointSpec;
  /** The endpoint that answers the records of ids, for the enumerator TwoPhase. */
  detail?: EndpointSpec & { endpointName: string };
  /** The trigger's parameters, with the defaults applied. */
  params: Readonly<Record<string, string | number | boolean>>;
}

/** The compiled policy of one endpoint. */
export interface EndpointSpec {
  enumerator: (typeof ENUMERATORS)[number];
  family: (typeof FAMILIES)[number];
  http: HttpSpec;
  auth: AuthSpec;
  pagination: PaginationSpec;
  /** Absent for an endpoint that knows no time, such as one for details. */
  window?: WindowSpec;
  slicing?: SlicingSpec;
  response: ResponseSpec;
  retry: Static<typeof RetryPolicySection>;
  rateLimit: RateLimitSpec;
  batching: Static<typeof BatchingPolicy>;
  expr: Static<typeof ExprPolicy>;
  budget: Static<typeof BudgetPolicy>;
  landing?: Static<typeof LandingPolicy>;
  update: UpdateSpec;
  params: readonly RequestParam[];
  outputFields: readonly OutputField[];
  /** The rules of the definition, then those of its family. The first that applies decides. */
  classifier: readonly ClassifierRule[];
  bodies: "all" | "failures" | "none";
}

export interface HttpSpec {
  method: "GET" | "POST" | "HEAD";
  baseUrl: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  form?: Readonly<Record<string, string>>;
  json?: unknown;
  connectTimeoutMs: number;
  readTimeoutMs: number;
  compression: boolean;
  redirects: number;
  proxy?: string;
  responseBytesMax: number;
}

export type AuthSpec =
  | { type: "NONE" }
  | {
      type: "API_KEY" | "BEARER";
      location: "HEADER" | "QUERY" | "BODY";
      name: string;
      credential: string;
      required: boolean;
    };

export interface PaginationSpec {
  type: (typeof PAGINATION_TYPES)[number];
  pageSize: number;
  maxPage?: number;
  base?: 0 | 1;
  initial?: string;
  tokenClass: (typeof TOKEN_CLASSES)[number];
  tokenTtlMs?: number;
  nextTokenPath?: string;
  nextUrlPath?: string;
  hasMorePath?: string;
  nextQuery?: Readonly<Record<string, string>>;
  countPath?: string;
  orderBy?: string;
  stalledPages: number;
}

export interface WindowSpec {
  supportsUpdatedSince: boolean;
  watermarkKey: string;
  granularityMs: number;
  format: string;
  timezone: string;
  safetyLagMs: number;
  align: "min" | "hour" | "day";
  minWindowMs: number;
  maxWindowMs: number;
  earliest?: string;
  recordsMax?: number;
  sliceRecords?: number;
  probe?: { query: Readonly<Record<string, string>>; totalPath: string; format: "JSON" | "XML" };
  /** The header in lower case; either it or the path is there. */
  hint?: { path?: string; header?: string; unit: (typeof HINT_UNITS)[number] };
  monotone: boolean;
  order: "ascending" | "descending";
  tolerance: number;
  boundaryPolicy: "[from,to)";
}

export interface SlicingSpec {
  by: (typeof SLICE_STRATEGIES)[number];
  /** PAGE: the pages of one slice. */
  pages?: number;
  /** ID: all ids, and how many of them one slice has; unset for prefixes. */
  ids?: DimensionSpec;
  size?: number;
  ladder: readonly DimensionSpec[];
}

/** All that templates read as `parts`, and what divides a slice, in this order. */
export function dimensionsOf(slicing: SlicingSpec | undefined): readonly DimensionSpec[] {
  if (!slicing) return [];
  return slicing.ids ? [slicing.ids, ...slicing.ladder] : slicing.ladder;
}

/** What records are divided by, beside time. `fragment` and `rest` are templates over `range`. */
export type DimensionSpec =
  /** Days, both included, written as `2026-08-20`. */
  | { name: string; type: "DATE"; fragment: string; from: string; until: string; format: string }
  | { name: string; type: "NUMBER"; fragment: string; from: number; until: number }
  | { name: string; type: "VALUES"; fragment: string; values: readonly string[]; rest?: string }
  | { name: string; type: "PREFIX"; fragment: string; values: readonly string[]; depth: number; rest?: string };

export interface UpdateSpec {
  staleAfterMs?: number;
  sliceRecords: number;
  recordsMax: number;
  /** Names of members. */
  fillEmpty: readonly string[];
}

export interface ResponseSpec {
  format: "JSON" | "XML";
  itemsPath: string;
  /** Names of the elements that are records, for XML whose records have several names. */
  itemElements?: readonly string[];
  idPath: string;
  keyPaths?: readonly string[];
  updatedAtPath?: string;
  updatedAtFormat: "iso" | "epochMs" | "epochSeconds" | "parts";
  versionPath?: string;
  totalPath?: string;
  deletedPath?: string;
  deletedValues?: readonly string[];
  requiredPaths: readonly string[];
  ignoredPaths: readonly string[];
}

export interface RateLimitSpec {
  keys: readonly string[];
  refillRatePerSec: number;
  refillRateWithCredential?: number;
  burstCapacity: number;
  concurrency?: number;
  warmupSec: number;
  demoteRate: number;
  cost: number;
  quotas: readonly Static<typeof Quota>[];
  priceUsdMicros?: number;
  /** Unset: true, as before it could be said. */
  retryAfterOnSuccess?: boolean;
  /** Unset: a limit without an interval and a reset is ignored. */
  headerWindowMs?: number;
}
