/** Runs that have ended, as chains and arrivals describe them, for the tests of what is told of them. */
import type { ModelFlow } from "../../arrivals/index.ts";
import type { LandedWindow } from "../../harvest/index.ts";
import type { Json } from "../events.fixture.ts";
import type { DialectOf } from "./model-events.ts";
import type { RunFlow, StatementFlow } from "./run-flows.ts";

export const AT = Date.parse("2026-03-01T10:00:00Z");
export const RUN_ID = "0195a000-0000-7000-8000-000000000001";

export const dialectOf: DialectOf = (engine) => (engine === "warehouse" ? "postgres" : undefined);

export function modelFlow(fields: Partial<ModelFlow> = {}): ModelFlow {
  return {
    runKey: "model REVENUE 20260228 1 0",
    modelId: "REVENUE",
    name: "Revenue by day",
    description: null,
    statement: { sql: "select 'KD1' as kpi_id, sum(amount) as value from orders", engine: "warehouse" },
    opTime: "20260228",
    timeZone: "UTC",
    failure: null,
    inputs: ["ORDERS"],
    produces: null,
    kpis: [{ kpiId: "KD1", name: "Revenue" }],
    computed: [],
    ...fields,
  };
}

export function runFlow(fields: Partial<RunFlow> = {}): RunFlow {
  return {
    runId: RUN_ID,
    chain: "load",
    node: null,
    opTime: "20260228",
    status: "SUCCESS",
    reason: null,
    parent: null,
    inputs: ["RAW"],
    outputs: ["ORDERS"],
    statement: null,
    statements: [],
    ...fields,
  };
}

export function statementFlow(fields: Partial<StatementFlow> = {}): StatementFlow {
  return {
    node: "clean",
    attempt: 1,
    sql: "insert into orders select * from raw",
    engine: "warehouse",
    status: "SUCCESS",
    error: null,
    endedAt: new Date(AT - 1_000),
    inputs: ["RAW"],
    outputs: ["ORDERS"],
    ...fields,
  };
}

export function landedWindow(fields: Partial<LandedWindow> = {}): LandedWindow {
  const field = { type: "string", required: false } as const;
  return {
    source: "crossref",
    endpoint: "works",
    baseUrl: "https://api.crossref.org",
    path: "/works",
    table: "CROSSREF_WORKS",
    opTime: "20260801",
    from: new Date("2026-08-01T00:00:00Z"),
    to: new Date("2026-08-02T00:00:00Z"),
    rows: 3,
    fields: [
      { name: "doi", path: "$.DOI", ...field },
      { name: "title", path: "$.title[0]", ...field },
      { name: "funder", path: "$.funder[?@.name == 'DFG'].DOI", ...field },
    ],
    columns: [
      { name: "doi", type: "string" },
      { name: "title", type: "string" },
      { name: "funder", type: "string" },
      { name: "data", type: "json" },
      { name: "_key", type: "string" },
      { name: "_deleted", type: "boolean" },
      { name: "_version", type: "integer" },
    ],
    runKey: "landing 1 20260801 7",
    ...fields,
  };
}

export const parsed = (bodies: readonly string[]): Json[] => bodies.map((body) => JSON.parse(body) as Json);
