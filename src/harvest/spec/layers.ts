/**
 * A policy is merged from layers: platform < provenance < endpoint < cfg. Above them a trigger gives values of parameters
 * (compile.ts). Objects merge key by key; any other value, a list too, replaces that of a lower layer. The merge remembers the
 * layer of each value.
 */
import { isPlainObject } from "../../kernel/json/is-plain-object.ts";
import type { EndpointDefinition } from "../definition/definition.ts";
import { POLICY_FIELDS, POLICY_SECTIONS, type PolicyLayer } from "../definition/policy.ts";
import { REQUEST_FUNCTION_NAMES } from "./functions.ts";

const POLICY_LAYERS = ["platform", "provenance", "endpoint", "cfg"] as const;
export type Layer = (typeof POLICY_LAYERS)[number] | "trigger";

/** The layer of each value, by its path: `pagination.pageSize`, `http.query.rows`, `params`, `params.genre`. */
export type Origins = Readonly<Record<string, Layer>>;

/**
 * What holds where nobody says otherwise. An endpoint without a window or a landing has none, so the defaults of those sections
 * stand apart.
 */
export const PLATFORM = {
  enumerator: "SearchByDateRange",
  family: "REST_JSON",
  http: {
    headers: {},
    query: {},
    connectTimeoutMs: 10_000,
    readTimeoutMs: 30_000,
    compression: true,
    redirects: 0,
    responseBytesMax: 67_108_864,
  },
  auth: { type: "NONE" },
  pagination: { pageSize: 100, stalledPages: 3 },
  response: { format: "JSON", updatedAtFormat: "iso", requiredPaths: [], ignoredPaths: [] },
  retry: {
    maxAttempts: 5,
    baseMs: 100,
    capMs: 30_000,
    factor: 2,
    jitter: 0.2,
    retryableStatus: [408, 429, 500, 502, 503, 504],
  },
  rateLimit: { refillRatePerSec: 1, burstCapacity: 1, warmupSec: 0, demoteRate: 2, cost: 1, quotas: [] },
  batching: { idBatchSize: 200, idBatchSizeMax: 10_000, recordsPerStatement: 1_000 },
  expr: { allowedFunctions: [...REQUEST_FUNCTION_NAMES], nullPolicy: "omit" },
  budget: {
    maxRequests: 10_000,
    maxDurationSec: 3_600,
    errorShareMax: 0.5,
    queuedTasksMax: 1_000,
    concurrency: 8,
  },
  update: { sliceRecords: 5_000, recordsMax: 100_000, fillEmpty: [] },
  params: [],
  outputFields: [],
  classifier: [],
  bodies: "all",
  redact: true,
} as const satisfies Frozen<PolicyLayer>;

export const PLATFORM_WINDOW = {
  supportsUpdatedSince: false,
  format: "iso",
  timezone: "UTC",
  safetyLag: "PT10M",
  monotone: false,
  order: "ascending",
  tolerance: 0,
} as const satisfies Frozen<NonNullable<PolicyLayer["window"]>>;

export const PLATFORM_LANDING = { grain: "day" } as const satisfies Frozen<NonNullable<PolicyLayer["landing"]>>;

type Frozen<Value> = { readonly [Key in keyof Value]: Frozen<Value[Key]> };

/** A policy whose sections all exist. Which of their fields may be missing is what the checks find out. */
export type MergedPolicy = Required<Omit<PolicyLayer, "window" | "slicing" | "landing">> &
  Pick<PolicyLayer, "window" | "slicing" | "landing">;

/** The sections and fields of a policy that stand inline in an endpoint. */
export function cfgLayerOf(endpoint: EndpointDefinition): PolicyLayer {
  const names: ReadonlySet<string> = new Set([...Object.keys(POLICY_SECTIONS), ...Object.keys(POLICY_FIELDS)]);
  return Object.fromEntries(Object.entries(endpoint).filter(([name]) => names.has(name)));
}

/** `layers` are above the platform's, in any order. */
export function mergeLayers(layers: Partial<Record<Exclude<Layer, "platform" | "trigger">, PolicyLayer>>): {
  policy: MergedPolicy;
  origins: Record<string, Layer>;
} {
  const given = Object.values(layers);
  const platform: Frozen<PolicyLayer> = {
    ...PLATFORM,
    ...(given.some(({ window }) => window) ? { window: PLATFORM_WINDOW } : {}),
    ...(given.some(({ landing }) => landing) ? { landing: PLATFORM_LANDING } : {}),
  };
  const merged: Record<string, unknown> = {};
  const origins: Record<string, Layer> = {};
  for (const name of POLICY_LAYERS) merge(merged, name === "platform" ? platform : (layers[name] ?? {}), "", name);
  return { policy: merged as unknown as MergedPolicy, origins };

  function merge(into: Record<string, unknown>, layer: object, path: string, name: Layer): void {
    for (const [key, value] of Object.entries(layer) as [string, unknown][]) {
      if (value === undefined) continue;
      const field = path === "" ? key : `${path}.${key}`;
      const below = Object.hasOwn(into, key) ? into[key] : undefined;
      if (isPlainObject(value)) {
        const target = isPlainObject(below) ? below : {};
        if (target !== below) forget(field);
        define(into, key, target);
        merge(target, value, field, name);
      } else {
        forget(field);
        define(into, key, structuredClone(value));
        origins[field] = name;
      }
    }
  }

  /** A value that replaces an object, or is replaced by one, takes the origins of what was there along. */
  function forget(field: string): void {
    for (const known of Object.keys(origins)) {
      if (known === field || known.startsWith(`${field}.`)) delete origins[known];
    }
  }
}

/** Not by assignment, which would set the prototype for a key named `__proto__`. */
function define(object: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
}
