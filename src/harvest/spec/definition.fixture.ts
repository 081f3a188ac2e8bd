/** A definition for tests of the compiler, small and without problems. Tests change one thing of it. */
import { type Definition, parseDefinition } from "../definition/definition.ts";
import { type Compiled, type CompileInput, compileSpec } from "./compile.ts";
import type { Problem } from "./problem.ts";

const GOOD = {
  source: "books",
  name: "Books",
  baseUrl: "https://api.example.org/v1",
  credentials: { key: { env: "BOOKS_KEY" } },
  endpoints: {
    list: {
      path: "/books",
      default: true,
      http: {
        headers: { Accept: "application/json" },
        query: {
          from: "${window.from}",
          until: "${window.until}",
          offset: "${page.offset}",
          limit: "${page.size}",
        },
      },
      pagination: { type: "OFFSET", pageSize: 50, pageSizeMax: 100 },
      window: {
        supportsUpdatedSince: true,
        watermarkKey: "updated_at",
        granularity: "P1D",
        format: "yyyy-MM-dd",
      },
      response: { itemsPath: "$.items", idPath: "$.id", updatedAtPath: "$.updated", totalPath: "$.total" },
      rateLimit: { refillRatePerSec: 5, providerRatePerSec: 5 },
      params: [{ name: "genre", pattern: "[a-z]+" }],
      outputFields: [{ name: "title", path: "$.title" }],
    },
    ids: {
      path: "/ids",
      enumerator: "TwoPhase",
      detail: "details",
      http: {
        query: { from: "${window.from}", until: "${window.until}", cursor: "${page.token}" },
      },
      pagination: { type: "TOKEN", tokenClass: "REPEATABLE", nextTokenPath: "$.next" },
      window: { supportsUpdatedSince: true, watermarkKey: "updated_at", granularity: "PT1S" },
      response: { itemsPath: "$.ids", idPath: "$", totalPath: "$.total" },
      rateLimit: { refillRatePerSec: 5 },
    },
    details: {
      role: "DETAIL",
      method: "POST",
      path: "/details",
      http: { form: { id: '${ids.join(",")}' } },
      response: { itemsPath: "$.items", idPath: "$.id", updatedAtPath: "$.updated" },
    },
  },
};

export type Draft = Record<string, unknown>;

/** GOOD with values set at paths (`endpoints.list.window.align`); undefined removes one. */
export function draft(changes: Readonly<Record<string, unknown>> = {}): Draft {
  const copy: Draft = structuredClone(GOOD);
  for (const [path, value] of Object.entries(changes)) {
    const steps = path.split(".");
    const last = steps.pop()!;
    const parent = steps.reduce<Draft>((object, step) => (object[step] ??= {}) as Draft, copy);
    if (value === undefined) delete parent[last];
    else parent[last] = value;
  }
  return copy;
}

function definitionOf(value: unknown): Definition {
  const parsed = parseDefinition(value);
  if ("definition" in parsed) return parsed.definition;
  throw new Error(parsed.problems.map(({ message }) => message).join("\n"));
}

/** Of the endpoint `list`, unless said otherwise. */
export function compiledOf(value: unknown, input: Partial<CompileInput> = {}): Compiled {
  const result = compile(value, input);
  if ("compiled" in result) return result.compiled;
  throw new Error(result.problems.map(({ table, field, reason }) => `${table} ${field}: ${reason}`).join("\n"));
}

export function problemsOf(value: unknown, input: Partial<CompileInput> = {}): Problem[] {
  const result = compile(value, input);
  return "problems" in result ? result.problems : [];
}

function compile(value: unknown, input: Partial<CompileInput>) {
  return compileSpec({ definition: definitionOf(value), endpointName: "list", operation: "HARVEST", ...input });
}
