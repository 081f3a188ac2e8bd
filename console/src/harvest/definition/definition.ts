/** The text of a source, in the form that `millrace harvest apply` takes, and what the server says about it. */
import { type Diagnostic, yamlText } from "../../parts/editor/text.ts";
import type { Problem } from "./check.ts";

type Value = Readonly<Record<string, unknown>>;

/** The order in which people write them; the database has its own. */
const ENDPOINT_FIELDS = [
  "path",
  "method",
  "role",
  "default",
  "requiresAuth",
  "detail",
  "auth",
  "http",
  "params",
  "pagination",
  "window",
  "response",
  "rateLimit",
  "retry",
  "classifier",
  "outputFields",
  "landing",
] as const;
/** What a definition need not say. */
const DEFAULTS: Value = { role: "SEARCH", method: "GET", default: false, requiresAuth: false };

export function definitionText(definition: Value): string {
  const endpoints = Object.entries(definition["endpoints"] as Record<string, Value>);
  return yamlText({
    ...definition,
    endpoints: Object.fromEntries(endpoints.map(([name, endpoint]) => [name, inOrder(endpoint)])),
  });
}

function inOrder(endpoint: Value): object {
  const said = Object.fromEntries(Object.entries(endpoint).filter(([name, value]) => DEFAULTS[name] !== value));
  const known = ENDPOINT_FIELDS.filter((field) => field in said).map((field) => [field, said[field]] as const);
  return { ...Object.fromEntries(known), ...said };
}

export const NEW_SOURCE = yamlText({
  source: "shop",
  name: "Orders of the shop",
  baseUrl: "https://api.example.org",
  endpoints: {
    orders: {
      path: "/orders",
      http: {
        query: { since: "${window.from}", until: "${window.to}", offset: "${page.offset}", limit: "${page.size}" },
      },
      pagination: { type: "OFFSET", pageSize: 100 },
      window: {
        supportsUpdatedSince: true,
        watermarkKey: "updated",
        granularity: "PT1S",
        minWindow: "PT1M",
        maxWindow: "P1D",
      },
      response: { itemsPath: "$.orders", idPath: "$.id", updatedAtPath: "$.updated", totalPath: "$.total" },
      rateLimit: { keys: ["shop"], refillRatePerSec: 5 },
    },
  },
});

export function diagnosticOf({ reason, path }: Problem, severity: Diagnostic["severity"]): Diagnostic {
  return { message: reason, severity, path };
}
