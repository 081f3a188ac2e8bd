import { describe, expect, test } from "vitest";
import { dataset, type Json, runEvent } from "../events.fixture.ts";
import { extractedFrom } from "./extracted.fixture.ts";

const JOB = "JOB spark|daily.load";
const WAREHOUSE = "postgresql://warehouse:5432";
const table = (name: string) => `TABLE external|${WAREHOUSE}|public|${name}`;
const column = (name: string, field: string) => `COLUMN external|${WAREHOUSE}|public|${name}|${field}`;
const orders = { namespace: WAREHOUSE, name: "public.orders", type: "DATASET" };
const daily = { namespace: WAREHOUSE, name: "public.daily", type: "DATASET" };
const extract = { namespace: "airflow", name: "daily.extract", type: "JOB" };

const byJob = (...entries: Json[]) => extractedFrom(runEvent({ jobFacets: { lineage: { entries } } }));

describe("the lineage facet of a job", () => {
  test("tells which table comes from which, by itself", () => {
    const filter = [{ type: "INDIRECT", subtype: "FILTER" }];
    const facts = byJob({
      ...daily,
      inputs: [orders, { ...orders, field: "dt", transformations: filter }],
      fields: { id: { inputs: [{ ...orders, field: "order_id" }, orders] } },
    });
    expect(facts.edges).toEqual([
      `${table("daily")} DERIVES_FROM ${table("orders")}`,
      `${table("orders")} INPUT_OF ${JOB}`,
      `${JOB} OUTPUT_TO ${table("daily")}`,
      `${table("daily")} DERIVES_FROM ${column("orders", "dt")}`,
      `${column("daily", "id")} DERIVES_FROM ${column("orders", "order_id")}`,
      `${column("daily", "id")} DERIVES_FROM ${table("orders")}`,
    ]);
    expect(facts.transformations[`${table("daily")} DERIVES_FROM ${column("orders", "dt")}`]).toEqual([
      '{"subtype":"FILTER","type":"INDIRECT"}',
    ]);
    expect(facts.execution).toMatch(JOB);
    expect(facts.mentions.sort()).toEqual([table("daily"), table("orders")]);
  });

  test("may tell of other jobs, of which it is then no part", () => {
    expect(byJob({ ...daily, inputs: [extract] }).edges).toEqual([
      `JOB airflow|daily.extract OUTPUT_TO ${table("daily")}`,
    ]);
    expect(byJob({ ...extract, inputs: [{ ...orders, field: "dt" }] }).edges).toEqual([
      `${table("orders")} INPUT_OF JOB airflow|daily.extract`,
    ]);
    expect(byJob({ ...extract, inputs: [{ namespace: "airflow", name: "first", type: "JOB" }] }).edges).toEqual([
      "JOB airflow|daily.extract DERIVES_FROM JOB airflow|first",
    ]);
  });

  test("means its own job where it names none, also when that is known by its statement", () => {
    expect(byJob({ type: "JOB", inputs: [orders] }).edges).toEqual([`${table("orders")} INPUT_OF ${JOB}`]);
    const made = byJob({ ...daily, inputs: [], fields: { total: { inputs: [{ type: "JOB" }] } } });
    expect(made.edges).toEqual([`${JOB} OUTPUT_TO ${table("daily")}`]);
    const own = { namespace: "spark", name: "daily.load", type: "JOB" };
    const sql = extractedFrom(
      runEvent({ jobFacets: { sql: { query: "select 1" }, lineage: { entries: [{ ...daily, inputs: [own] }] } } }),
    );
    expect(sql.edges[0]).toMatch(/^SQL spark\|daily\.load\|\w+ OUTPUT_TO/);
  });

  test("with an entry without inputs tells that the table exists and no more", () => {
    const facts = byJob({ ...daily, inputs: [] });
    expect(facts.edges).toEqual([]);
    expect(facts.nodes).toHaveProperty([table("daily")]);
  });

  test("that is broken in one entry keeps the others", () => {
    const facts = byJob(
      { type: "DATASET" },
      { ...daily, inputs: [{ name: "x", type: "JOB" }, 1, orders], fields: { a: 1 } },
    );
    expect(facts.edges).toContain(`${table("daily")} DERIVES_FROM ${table("orders")}`);
    expect(facts.warnings).toEqual([
      "/job/facets/lineage/entries/0 names no dataset or job.",
      "/job/facets/lineage/entries/1/inputs/0 names no dataset or job.",
      "/job/facets/lineage/entries/1/inputs/1 names no dataset or job.",
      "/job/facets/lineage/entries/1/fields/a has no inputs.",
    ]);
  });
});

test("the lineage facet of a dataset tells what it comes from, without any job", () => {
  const lineage = { inputs: [orders], fields: { id: { inputs: [{ ...orders, field: "order_id" }] } } };
  const event = { eventTime: "2026-03-01T10:00:00Z", dataset: dataset(WAREHOUSE, "public.daily", { lineage }) };
  expect(extractedFrom(event).edges).toEqual([
    `${table("daily")} DERIVES_FROM ${table("orders")}`,
    `${column("daily", "id")} DERIVES_FROM ${column("orders", "order_id")}`,
  ]);
  const ofItsJob = {
    ...event,
    dataset: dataset(WAREHOUSE, "public.daily", { lineage: { inputs: [{ type: "JOB" }] } }),
  };
  expect(extractedFrom(ofItsJob).warnings).toEqual(["/dataset/facets/lineage/inputs/0 names no dataset or job."]);
});

test("the lineage facet of a dataset that tells of columns alone tells of their tables too", () => {
  const lineage = {
    fields: { id: { inputs: [{ ...orders, field: "order_id" }] }, copy: { inputs: [{ ...daily, field: "id" }] } },
  };
  const event = { eventTime: "2026-03-01T10:00:00Z", dataset: dataset(WAREHOUSE, "public.daily", { lineage }) };
  expect(extractedFrom(event).edges).toEqual([
    `${column("daily", "id")} DERIVES_FROM ${column("orders", "order_id")}`,
    `${table("daily")} DERIVES_FROM ${table("orders")}`,
    `${column("daily", "copy")} DERIVES_FROM ${column("daily", "id")}`,
  ]);
});
