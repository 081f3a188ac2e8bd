import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { dataset, type Json, runEvent, schemaFacet } from "../events.fixture.ts";
import { parseEvent } from "../ingest/event.ts";
import { testLineage } from "../lineage.fixture.ts";
import { extractedFrom } from "./extracted.fixture.ts";
import { digestOf } from "./index.ts";
import { sqlHash } from "./sql-text.ts";

const database = useDatabase();
const lineage = testLineage(database);
const TRINO = "trino://coordinator:8080";
const INSERT = "INSERT INTO hive.dw.daily SELECT id FROM hive.dw.orders WHERE day = '2026-01-01' AND amount > 10";
const SAME =
  "insert into hive.dw.daily\n  select id -- every day\nfrom hive.dw.orders where day = '2026-01-02' and amount > 7.5";

/** As the listener sends the end of a query: the job is named by its id, and the statement is the job's facet `sql`. */
function query(name: string, sql: string | null, n = 1): Json {
  return runEvent({
    runId: `0195a000-0000-7000-8000-0000000000${String(n).padStart(2, "0")}`,
    eventTime: `2026-03-01T10:00:0${n}Z`,
    jobNamespace: TRINO,
    jobName: name,
    jobFacets: {
      jobType: { processingType: "BATCH", integration: "TRINO", jobType: "QUERY" },
      ...(sql !== null && { sql: { query: sql } }),
    },
    runFacets: { processing_engine: { name: "trino", version: "476" } },
    inputs: [dataset(TRINO, "hive.dw.orders", schemaFacet([{ name: "id" }]))],
    outputs: [dataset(TRINO, "hive.dw.daily", schemaFacet([{ name: "id", type: "bigint" }]))],
  });
}
const digest = (event: Json) => digestOf(parseEvent(event), "COMPUTE_ENGINE");
const process = (event: Json) => extractedFrom(event).execution?.split(" in ")[0];

describe("a job that is named by the id of a query", () => {
  test("is known by its statement: other literals, white space and comments are the same asset and the same assertion", () => {
    const [one, other] = [query("20260101_080000_00017_x7k2p", INSERT), query("20260102_080000_00411_b9qzz", SAME, 2)];
    const hash = sqlHash(INSERT);
    expect(process(one)).toBe(`SQL ${TRINO}|query-${hash.slice(0, 8)}|${hash}`);
    expect(process(other)).toBe(process(one));
    expect(digest(other)).toBe(digest(one));
    expect(extractedFrom(one).nodes[String(process(one))]).toMatchObject({
      jobName: `query-${hash.slice(0, 8)}`,
      engine: "trino",
    });
  });

  test("and runs another statement is another", () => {
    const id = "20260101_080000_00017_x7k2p";
    expect(process(query(id, "select 1 from hive.dw.orders"))).not.toBe(process(query(id, INSERT)));
  });

  test("by a format that holds the id keeps the rest of its name", () => {
    const [one, other] = ["01_080000_00017_x7k2p", "02_080000_00018_x7k2p"].map((id) => `etl-202601${id}`);
    expect(process(query(one ?? "", INSERT))).toContain(`|etl-query-${sqlHash(INSERT).slice(0, 8)}|`);
    expect(process(query(other ?? "", INSERT))).toBe(process(query(one ?? "", INSERT)));
    expect(process(query("alice-20260101_080000_00017_x7k2p", INSERT))).not.toBe(process(query(one ?? "", INSERT)));
  });

  test.each(["20260101_080000_00017_x7k2pq", "120260101_080000_00017_x7k2p", "daily_20260101", "20260101_080000"])(
    "is not one that is named %s",
    (name) => {
      expect(process(query(name, INSERT))).toContain(`|${name}|`);
    },
  );

  test("and tells no statement stays a job of its own", () => {
    expect(process(query("20260101_080000_00017_x7k2p", null))).toBe(`JOB ${TRINO}|20260101_080000_00017_x7k2p`);
  });

  test("is one asset and one assertion in the graph, whose executions are counted", async () => {
    const tenant = await lineage.tenant();
    const ids = ["20260101_080000_00017_x7k2p", "20260102_080000_00018_x7k2p", "20260103_080000_00019_x7k2p"];
    for (const [index, id] of ids.entries())
      await lineage.send(tenant, query(id, index === 1 ? SAME : INSERT, index + 1), { source: "COMPUTE_ENGINE" });
    const { nodes, executions } = await lineage.graph(tenant);
    expect(Object.keys(nodes).filter((name) => /^(SQL|JOB)/.test(name))).toHaveLength(1);
    expect(Object.values(executions)).toEqual([3]);
    expect(await database.query("select 1 from lineage.assertion where tenant_id = $1", [tenant])).toHaveLength(1);
  });
});
