/** Definitions for tests: one that compiles, and random ones that have the form of a definition. */
import * as fc from "fast-check";
import type { Definition, EndpointDefinition } from "./definition.ts";
import type { PolicyLayer } from "./policy.ts";

export const ORDERS: EndpointDefinition = {
  role: "SEARCH",
  method: "GET",
  path: "/orders",
  default: false,
  requiresAuth: false,
  // oxlint-disable-next-line no-template-curly-in-string -- a template of the definition
  http: { query: { from: "${window.from}", to: "${window.to}", offset: "${page.offset}", size: "${page.size}" } },
  pagination: { type: "OFFSET", pageSize: 100, orderBy: "updated asc" },
  window: {
    supportsUpdatedSince: true,
    watermarkKey: "updated",
    granularity: "PT1S",
    align: "min",
    minWindow: "PT1M",
    maxWindow: "P1D",
  },
  response: { itemsPath: "$.orders", idPath: "$.id", updatedAtPath: "$.updated", totalPath: "$.total" },
  rateLimit: { refillRatePerSec: 5 },
};

/** A definition that compiles, with other fields of its endpoint or of its own. */
export function definitionWith(
  endpoint: Partial<EndpointDefinition> = {},
  fields: Partial<Definition> = {},
): Definition {
  return {
    source: "shop",
    name: "Shop",
    baseUrl: "https://api.example.org",
    endpoints: { orders: { ...ORDERS, ...endpoint } },
    ...fields,
  };
}

const text = fc.string({ maxLength: 12 }).filter((one) => !one.includes("\0"));
const name = fc.stringMatching(/^[a-z][a-z0-9_-]{0,5}$/);
const templates = fc.dictionary(
  text.filter((one) => one !== ""),
  text,
  { maxKeys: 3 },
);
/** Each field may be absent. */
const some = <Value>(fields: { [Key in keyof Value]: fc.Arbitrary<Value[Key]> }) =>
  fc.record(fields, { requiredKeys: [] }) as fc.Arbitrary<Partial<Value>>;

const layers: fc.Arbitrary<PolicyLayer> = some({
  http: some({ headers: templates, query: templates, json: fc.jsonValue({ maxDepth: 2 }), compression: fc.boolean() }),
  auth: some({ type: fc.constantFrom("NONE", "BEARER"), credential: name }),
  pagination: some({
    type: fc.constantFrom("OFFSET", "TOKEN"),
    pageSize: fc.integer({ min: 1, max: 500 }),
    nextQuery: templates,
  }),
  window: some({ granularity: fc.constantFrom("P1D", "PT1S"), monotone: fc.boolean() }),
  response: some({ itemsPath: fc.constant("$.a"), requiredPaths: fc.array(fc.constant("$.b"), { maxLength: 2 }) }),
  retry: some({
    jitter: fc.double({ min: 0, max: 1, noNaN: true }).map((one) => one + 0),
    maxAttempts: fc.integer({ min: 1, max: 9 }),
  }),
  rateLimit: some({ keys: fc.array(text, { minLength: 1, maxLength: 2 }), refillRatePerSec: fc.constantFrom(0.5, 3) }),
  batching: some({ idBatchSize: fc.integer({ min: 1, max: 9 }) }),
  expr: some({ allowedFunctions: fc.array(text, { maxLength: 2 }), nullPolicy: fc.constantFrom("omit", "empty") }),
  budget: some({ maxRequests: fc.integer({ min: 1, max: 9 }) }),
  landing: some({ table: fc.constant("LAKE_ORDERS"), grain: fc.constantFrom("hour", "day") }),
  enumerator: fc.constantFrom("SearchByDateRange", "TwoPhase"),
  family: fc.constantFrom("REST_JSON", "OAI"),
  params: fc.array(
    fc.record(
      {
        name: text,
        location: fc.constantFrom("QUERY", "PATH"),
        required: fc.boolean(),
        default: fc.oneof(text, fc.boolean()),
      },
      { requiredKeys: ["name", "location", "required"] },
    ),
    { maxLength: 3 },
  ),
  outputFields: fc.array(
    fc.record({ name, path: fc.constant("$.c"), type: fc.constantFrom("string", "json"), required: fc.boolean() }),
    { maxLength: 3 },
  ),
  classifier: fc.array(fc.record({ when: text, action: fc.constantFrom("RETRY", "FAIL"), reason: text }), {
    maxLength: 2,
  }),
  bodies: fc.constantFrom("all", "none"),
  redact: fc.boolean(),
});

const endpoint = fc
  .record(
    {
      role: fc.constantFrom("SEARCH", "DETAIL"),
      method: fc.constantFrom("GET", "POST"),
      path: text,
      default: fc.boolean(),
      requiresAuth: fc.boolean(),
      detail: name,
      overrides: layers,
      cfg: layers,
    },
    { requiredKeys: ["role", "method", "path", "default", "requiresAuth", "cfg"] },
  )
  .map(({ cfg, ...own }) => ({ ...own, ...cfg }));

const schedule = fc.record(
  {
    endpoint: name,
    operation: fc.constantFrom("HARVEST", "UPDATE"),
    cron: fc.constantFrom("@daily", "30 2 * * *"),
    timeZone: fc.constantFrom("UTC", "Europe/Berlin"),
    params: fc.dictionary(name, fc.oneof(text, fc.integer(), fc.boolean()), { maxKeys: 2 }),
    priority: fc.integer({ min: 0, max: 9 }),
  },
  { requiredKeys: ["endpoint", "operation", "cron", "timeZone"] },
);

/** They have the form of a definition, and most of them do not compile. */
export const definitions: fc.Arbitrary<Definition> = fc.record(
  {
    source: name,
    name: text,
    description: text,
    baseUrl: text,
    credentials: fc.dictionary(name, fc.oneof(fc.record({ env: name }), fc.record({ secret: name })), { maxKeys: 2 }),
    defaults: layers,
    endpoints: fc.dictionary(name, endpoint, { minKeys: 1, maxKeys: 3 }),
    schedules: fc.dictionary(name, schedule, { maxKeys: 2 }),
  },
  { requiredKeys: ["source", "name", "baseUrl", "endpoints"] },
);
