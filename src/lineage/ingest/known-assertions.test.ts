/** What costs nothing: events that tell what the graph says already. In a file of its own, for the counters of its database. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { openDb } from "../../kernel/data/db.ts";
import {
  dataset,
  gravitinoEvent,
  gravitinoFacet,
  type Json,
  runEvent,
  sparkEvent,
  symlinksFacet,
} from "../events.fixture.ts";
import { type TestLineage, testLineage } from "../lineage.fixture.ts";

const database = useDatabase();
const lineage = testLineage(database);
const ENGINE = { source: "COMPUTE_ENGINE" } as const;
const APPLICATION = "a process that ends";
const WATCHED = ["node", "edge", "mention", "alias", "ending", "assertion_event"];

/**
 * Postgres counts what a connection has done when the connection ends, at the latest. `statements` gathers the names of
 * those that are run.
 */
async function inProcess(work: (lineage: TestLineage, statements: Set<string>) => Promise<void>): Promise<void> {
  const statements = new Set<string>();
  const db = openDb({
    connection: database.connection,
    applicationName: APPLICATION,
    poolSize: 4,
    onStatement: (name) => void statements.add(name),
  });
  try {
    await work(testLineage(database, { db }), statements);
  } finally {
    await db.close();
  }
  await until(async () => {
    const left = await database.query("select 1 from pg_stat_activity where application_name = $1", [APPLICATION]);
    return left.length === 0;
  }, "connections to end");
}

/** All that Postgres has ever done to these tables. */
const workDone = () =>
  database.query(
    `select relname, n_tup_ins, n_tup_upd, n_tup_del, n_dead_tup from pg_stat_user_tables
     where schemaname = 'lineage' and relname = any($1) order by 1`,
    [WATCHED],
  );

/** Where each row lies, and which transaction wrote it: any write changes one or the other. */
const rowsOf = (tenant: string) =>
  Promise.all(
    WATCHED.map((name) =>
      database.query(`select ctid, xmin from lineage.${name} where tenant_id = $1 order by 1`, [tenant]),
    ),
  );

function jobRun(job: number, run: number): Json {
  return sparkEvent({
    jobName: `job${job}`,
    from: [`/w/in${job}`],
    to: `/w/out${job}`,
    runId: `0195a000-0000-7000-8000-${String(job * 1_000 + run).padStart(12, "0")}`,
    eventTime: new Date(Date.parse("2026-03-01T10:00:00Z") + run * 60_000).toISOString(),
  });
}

test("1,000 new runs of known jobs neither lock the graph nor write a row of it", async () => {
  const JOBS = 20;
  const tenant = await lineage.tenant();
  await inProcess(async (one, statements) => {
    for (let job = 0; job < JOBS; job += 1) await one.send(tenant, jobRun(job, 0), ENGINE);
    expect(statements).toContain("lineage.lock_exclusive");
  });
  const [before, rowsBefore] = [await workDone(), await rowsOf(tenant)];
  await inProcess(async (one, statements) => {
    const runs = Array.from({ length: 1_000 }, (_, n) => jobRun(n % JOBS, 1 + Math.floor(n / JOBS)));
    for (const event of runs.splice(0, JOBS)) await one.send(tenant, event, ENGINE); // A new process looks once more.
    statements.clear();
    const taken = await Promise.all(runs.map((event) => one.send(tenant, event, ENGINE)));
    expect(taken.every(({ state, duplicate }) => state === "APPLIED" && !duplicate)).toBe(true);
    expect(statements).not.toContain("lineage.lock_exclusive");
    expect(statements).toContain("lineage.lock_shared");
  });
  expect(await rowsOf(tenant)).toEqual(rowsBefore);
  expect(await workDone()).toEqual(before);
  expect(new Set(Object.values((await lineage.graph(tenant)).executions))).toEqual(new Set([51]));
});

test("what was told of later already leaves no trace when it is told of an earlier time", async () => {
  const tenant = await lineage.tenant();
  await lineage.send(tenant, jobRun(0, 9), ENGINE);
  const row = () => database.query("select ctid, xmin from lineage.assertion where tenant_id = $1", [tenant]);
  const before = await row();
  for (const run of [1, 2]) await lineage.send(tenant, jobRun(0, run), ENGINE);
  expect(await row()).toEqual(before);
  await lineage.send(tenant, jobRun(0, 10), ENGINE);
  expect(await row()).not.toEqual(before);
});

test("what was contradicted since is applied when it is told again", async () => {
  const tenant = await lineage.tenant();
  const described = (description: string, second: number) =>
    gravitinoEvent("create_table", {
      eventTime: `2026-03-01T10:00:0${second}Z`,
      facets: gravitinoFacet({ description }),
    });
  for (const [second, description] of ["one", "two", "one", "two", "one"].entries()) {
    await lineage.send(tenant, described(description, second));
    const { nodes } = await lineage.graph(tenant);
    expect(nodes["TABLE gravitino/hive/dw/orders"], `at second ${second}`).toMatchObject({ description });
  }
  await lineage.send(tenant, described("two", 3.5));
  const { nodes } = await lineage.graph(tenant);
  expect(nodes["TABLE gravitino/hive/dw/orders"], "a late one changes nothing").toMatchObject({ description: "one" });
});

test("an assertion that comes late under another name of a table that was renamed since is told of the renamed one", async () => {
  const tenant = await lineage.tenant();
  const hive = "gravitino://tenant/7/lake/hive";
  const at = (second: number) => ({ eventTime: `2026-03-01T10:00:0${second}Z` });
  const reading = (second: number) => runEvent({ jobName: "report", inputs: [dataset("file", "/w/a")], ...at(second) });
  await lineage.send(
    tenant,
    runEvent({ outputs: [dataset("file", "/w/a", symlinksFacet([hive, "dw.a"]))], ...at(1) }),
    ENGINE,
  );
  const rename = { changes: [{ type: "RENAME_TABLE", newName: "b" }] };
  await lineage.send(tenant, gravitinoEvent("alter_table", { name: "dw.a", facets: gravitinoFacet(rename), ...at(5) }));
  await lineage.send(tenant, reading(9), ENGINE);
  await lineage.send(tenant, reading(3), ENGINE);
  const { edges } = await lineage.graph(tenant);
  expect(edges.filter((edge) => edge.includes("INPUT_OF"))).toEqual([
    "TABLE gravitino/hive/dw/a INPUT_OF JOB spark/report",
    "TABLE gravitino/hive/dw/b INPUT_OF JOB spark/report",
  ]);
});

test("an event that was just taken is answered without a statement", async () => {
  const tenant = await lineage.tenant();
  await inProcess(async (own, statements) => {
    const first = await own.send(tenant, jobRun(1, 1), ENGINE);
    statements.clear();
    expect(await own.send(tenant, jobRun(1, 1), ENGINE)).toEqual({ ...first, duplicate: true });
    expect([...statements]).toEqual([]);
  });
});
