/** Lists of runs by trigger, comparisons and grids read few pages, however long the history is. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { openRecordingDb, planForValues, type RecordingDb } from "../../../test/plans.ts";
import type { Db } from "../../kernel/data/db.ts";
import { listRuns, type RunFilter } from "../store/reads.ts";
import { readEarlierAttempts, readLastRuns, readNodeStates, readNodeTimes } from "../store/timing.ts";

const HISTORY = 50_000;
const NODES = 10;

const database = useDatabase();
let recording: RecordingDb;
/** Its reads are recorded and explained on one connection, which plans them as the pool of reads does. */
let db: Db;
let chainId = "";
let runIds: string[] = [];

beforeAll(async () => {
  recording = openRecordingDb(database.connection);
  db = { ...recording.db, read: recording.db.rows };
  await planForValues(db);
  const made = await database.query<{ chain_id: string }>(
    `insert into chains.job_chain_definition (chain_id, name, dag_json)
     values (gen_random_uuid(), 'rare', '{}'), (gen_random_uuid(), 'busy', '{}') returning chain_id`,
  );
  chainId = made[0]?.chain_id ?? "";
  // One run in a hundred is of the chain; the oldest runs are the only ones of their trigger and their person.
  await database.query(
    `with runs as (
       insert into chains.job_run (run_id, chain_id, chain_version, job_name, status, dag_json, trigger, triggered_by,
         created_at, started_at, ended_at)
       select gen_random_uuid(), case when n % 100 = 0 then $1 else $2 end::uuid, 1, 'c', 'SUCCESS', '{"nodes": []}',
         case when n > $3::int - 3 then 'backfill' else 'api' end, case when n > $3::int - 3 then 'ann' else 'key ' || n % 20 end,
         now() - make_interval(secs => n), now(), now()
       from generate_series(1, $3::int) n returning run_id, chain_id
     ), attempts as (
       insert into chains.job_run_attempt (run_id, node_id, attempt, status, started_at, ended_at)
       select run_id, 'n0', 1, 'FAILED', now(), now() from runs where chain_id = $1::uuid
     )
     insert into chains.job_run_node (run_id, node_id, node_no, status, attempt, started_at, ended_at)
     select run_id, 'n' || no, no, 'SUCCESS', 2, now(), now()
     from runs, generate_series(0, $4::int - 1) no where chain_id = $1::uuid`,
    [chainId, made[1]?.chain_id, HISTORY, NODES],
  );
  await database.query("vacuum analyze");
  runIds = (
    await database.query<{ run_id: string }>(
      "select run_id from chains.job_run where chain_id = $1 order by created_at desc limit 25",
      [chainId],
    )
  ).map(({ run_id }) => run_id);
});
afterAll(() => recording.db.close());

const NO_FILTER: RunFilter = {
  chainId: null,
  status: null,
  opTime: null,
  from: null,
  to: null,
  q: "",
  id: null,
  ids: null,
  parentRunId: null,
  jobId: null,
  trigger: null,
  triggeredBy: null,
  missingTable: null,
  fullPool: null,
  slot: null,
  retry: null,
  after: null,
};

async function expectPages(name: string, pagesMax: number, index: string): Promise<void> {
  const called = [...recording.calls.keys()].filter((one) => one.startsWith(name));
  expect(called, name).not.toEqual([]);
  for (const one of called) {
    const facts = await recording.explainLast(one);
    expect(facts.indexes, one).toContain(index);
    expect(facts.pages, `pages of ${one}`).toBeLessThan(pagesMax);
  }
  recording.calls.clear();
}

/** About three times the pages that were measured; all of history has more than 1,000. */
test.each([
  ["trigger", { trigger: "backfill" }, "job_run_trigger"],
  ["person", { triggeredBy: "ann" }, "job_run_triggered_by"],
])("a rare %s is found without reading the runs of others", async (_, filter, index) => {
  const { items, total } = await listRuns(db, { ...NO_FILTER, ...filter }, { size: 100, offset: 0 });
  expect([items.length, total]).toEqual([3, 3]);
  await expectPages("chains.read.runs", 100, index);
});

test.each([
  ["a table", { missingTable: "ORDERS" }],
  ["a pool", { fullPool: "small" }],
  ["a slot", { slot: true }],
  ["its next attempt", { retry: true }],
] as const)("runs with a node that waits for %s are found by their live nodes, at any age", async (_, filter) => {
  const waiting = "(select run_id from chains.job_run where trigger = 'backfill')";
  await database.query(`insert into chains.live_wait select run_id, 'n', 'ORDERS', '20260401' from ${waiting} r
     on conflict do nothing`);
  await database.query(
    `insert into chains.live_node (run_id, node_id, state, waiting, priority, pool, due_at)
     select run_id, node, state, 0, 0, pool, due_at from ${waiting} r,
       (values ('a', 'ready', null, null::timestamptz), ('b', 'ready', 'small', null), ('c', 'delayed', null, now())) n(node, state, pool, due_at)
     on conflict do nothing`,
  );
  const { items, total } = await listRuns(db, { ...NO_FILTER, ...filter }, { size: 100, offset: 0 });
  expect([items.length, total]).toEqual([3, 3]);
  await expectPages("chains.read.runs", 100, "job_run_pkey");
});

test("the beginning of an id is looked up", async () => {
  const [runId = ""] = runIds;
  const { items } = await listRuns(db, { ...NO_FILTER, id: runId.slice(0, 8) }, { size: 100, offset: 0 });
  expect(items.map(({ run_id }) => run_id)).toEqual([runId]);
  await expectPages("chains.read.runs", 100, "job_run_pkey");
});

test("a page of a common trigger reads as many rows as it has", async () => {
  const { items } = await listRuns(db, { ...NO_FILTER, trigger: "api" }, { size: 100, offset: 0 });
  expect(items).toHaveLength(100);
  recording.calls.delete([...recording.calls.keys()].find((name) => name.startsWith("chains.read.runs_total")) ?? "");
  const [page] = [...recording.calls.keys()].filter((name) => name.startsWith("chains.read.runs"));
  expect((await recording.explainLast(page ?? "")).pages).toBeLessThan(1_000);
  recording.calls.clear();
});

test("the runs before a run, its attempts and the times of its nodes are looked up", async () => {
  const [runId = ""] = runIds;
  expect(await readLastRuns(db, chainId, { until: runIds[10] ?? "", limit: 25 })).toHaveLength(25);
  await expectPages("chains.timing.runs_until", 100, "idx_job_run_chain_id");
  expect(await readLastRuns(db, chainId, { until: null, limit: 25 })).toHaveLength(25);
  await expectPages("chains.timing.last_runs", 100, "idx_job_run_chain_id");
  expect(await readEarlierAttempts(db, runId, 100)).toHaveLength(1);
  await expectPages("chains.timing.earlier_attempts", 20, "job_run_attempt_pkey");
  const times = await readNodeTimes(db, runId);
  expect(times).toHaveLength(NODES);
  expect(times.find(({ node_id }) => node_id === "n0")).toMatchObject({ attempts: 2 });
  await expectPages("chains.timing.nodes", 50, "job_run_node_pkey");
});

test("the grid looks up each of its cells", async () => {
  const rows = await readNodeStates(db, runIds, ["n0", "n3"]);
  expect(rows).toHaveLength(50);
  await expectPages("chains.timing.node_states", 600, "job_run_node_pkey");
});
