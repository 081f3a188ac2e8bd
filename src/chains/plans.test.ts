/** The statements of the hot path read as few pages on a full database as on an empty one. */
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { openRecordingDb, type RecordingDb } from "../../test/plans.ts";
import type { Db } from "../kernel/data/db.ts";
import { systemIds } from "../kernel/ids.ts";
import { claimNodes, heldNodes, lostNodes, type NodeKey, openLiveRows, writeLive } from "./store/live.ts";
import { pickAdmissible } from "./store/runs.ts";
import { overdueRuns, readDueWork, releaseDelayed, runsOutOfGrace } from "./store/timers.ts";
import { findWaiting } from "./store/waits.ts";

const HISTORY = 100_000;
const LIVE = 60_000;

const database = useDatabase();
let db: Db;
let calls: RecordingDb["calls"];
let explainLast: RecordingDb["explainLast"];

beforeEach(() => {
  ({ db, calls, explainLast } = openRecordingDb(database.connection));
});
afterEach(() => db.close());

/** The statements that the engine repeats, each once. */
async function runHotPath(session: string): Promise<void> {
  await readDueWork(db);
  await db.tx((tx) => pickAdmissible(tx, 10));
  const claimed = [
    ...(await claimNodes(db, "free", { limit: 5, session, worker: "w" })),
    ...(await claimNodes(db, "pooled", { limit: 5, session, worker: "w" })),
  ];
  await heldNodes(db, session);
  await lostNodes(db, 10);
  await releaseDelayed(db, 10);
  await overdueRuns(db, 10);
  await runsOutOfGrace(db, 10);
  await findWaiting(db, [{ table: "T", opTime: "20250101" }]);
  const [first, ...others] = claimed;
  await db.tx(async (tx) => {
    await openLiveRows(tx, [...new Set(claimed.map(({ run_id }) => run_id))], claimed);
    await writeLive(tx, {
      deleted: first ? [first] : [],
      updated: others.map((item) => updated(item)),
      nodes: claimed.map((item) => ({ ...item, status: "SUCCESS" as const, error: null, artifact: null })),
      runs: first ? [{ ...runCounts, run_id: first.run_id }] : [],
      worker: null,
    });
  });
}
const runCounts = { status: "RUNNING", open: 5, failed: 0, stopped: 0, timed_out: false, grace_ms: null } as const;
const updated = ({ run_id, node_id }: NodeKey) => {
  const counts = { waiting: 0, failed: 0, skipped: 0, attempt: 1, tries: 0, lost: 0, returned: 0 };
  return { run_id, node_id, state: "ready" as const, ...counts, delay_ms: null, child_run_id: null, session_id: null };
};

/** `count` ended runs with one node each, half of them child runs. */
async function addHistory(chainId: string, count: number): Promise<void> {
  await database.query(
    `with runs as (
       insert into chains.job_run (run_id, chain_id, chain_version, job_name, status, dag_json, trigger, triggered_by,
         created_at, started_at, ended_at, parent_run_id, parent_node_id, depth)
       select gen_random_uuid(), $1, 1, 'c', (array['SUCCESS', 'FAILED', 'STOPPED'])[1 + n % 3], '{"nodes": []}', 'api', 't',
         now() - make_interval(secs => n), now(), now(),
         case when n % 2 = 0 then gen_random_uuid() end, case when n % 2 = 0 then 'n0' end, (n + 1) % 2
       from generate_series(1, $2::int) n returning run_id
     )
     insert into chains.job_run_node (run_id, node_id, node_no, status, attempt, started_at, ended_at)
     select run_id, 'n0', 0, 'SUCCESS', 1, now(), now() from runs`,
    [chainId, count],
  );
}

/** Live and PENDING runs, with nodes in every state; some runs are overdue, and some past their grace period. */
async function addLive(chainId: string, busyChainId: string, count: number): Promise<void> {
  await database.query(
    `with runs as (
       insert into chains.job_run (run_id, chain_id, chain_version, job_name, status, dag_json, trigger, triggered_by, started_at,
         priority)
       select gen_random_uuid(), $1, 1, 'c', 'RUNNING', '{"nodes": []}', 'api', 't', now(), n
       from generate_series(1, $2::int / 10) n returning run_id, priority as n
     ), live as (
       insert into chains.live_run (run_id, open, failed, stopped, priority, deadline_at, status, grace_at)
       select run_id, 10, 0, 0, 0, now() + make_interval(secs => (n - 10) * 100),
         case when n <= 3 then 'STOPPING' else 'RUNNING' end, case when n <= 3 then now() end
       from runs
     ), nodes as (
       insert into chains.job_run_node (run_id, node_id, node_no) select run_id, 'n' || no, no from runs, generate_series(0, 9) no
     )
     insert into chains.live_node (run_id, node_id, state, waiting, priority, pool, due_at, child_run_id)
     select run_id, 'n' || no, states[no + 1], 0, random() * 1000000, case when no in (3, 4, 5) then 'pool' || no end,
       case states[no + 1] when 'delayed' then now() + make_interval(secs => random() * 1000 - 1) end,
       case when states[no + 1] in ('parked', 'blocked') then run_id end
     from runs, generate_series(0, 9) no, lateral (select array['ready', 'ready', 'ready', 'ready', 'ready', 'ready',
       'delayed', 'delayed', 'waiting', case when n <= 10 then 'blocked' when n <= 20 then 'parked' else 'waiting' end]) s(states)`,
    [chainId, count],
  );
  await database.query(
    `insert into chains.job_run (run_id, chain_id, chain_version, job_name, status, dag_json, trigger, triggered_by)
     select gen_random_uuid(), $1, 1, 'busy', 'PENDING', '{"nodes": []}', 'api', 't' from generate_series(1, $2::int / 20)`,
    [busyChainId, count],
  );
  await database.query(
    `insert into chains.live_wait (run_id, node_id, table_name, op_time)
     select gen_random_uuid(), 'n0', 'T' || n, '20250101' from generate_series(1, $1::int) n`,
    [count],
  );
}

const [chainId, busyChainId] = [systemIds.uuid(), systemIds.uuid()];
let sessionId: string;

beforeAll(async () => {
  for (const [id, name, room] of [
    [chainId, "c", null],
    [busyChainId, "busy", 1],
  ]) {
    await database.query(
      "insert into chains.job_chain_definition (chain_id, name, dag_json, max_active_runs) values ($1, $2, '{}', $3)",
      [id, name, room],
    );
  }
  await database.query("insert into chains.pool (name, size) select 'pool' || n, 1000 from generate_series(0, 9) n");
  const [session] = await database.query<{ id: string }>(
    `insert into kernel.session (process, roles, version, expires_at)
     values ('w', '{}', '0', now() + interval '1 hour') returning id`,
  );
  sessionId = session?.id ?? "";
  for (const table of ["job_run", "job_run_node", "live_run", "live_node", "live_wait"]) {
    // Without autovacuum, cached plans are not invalidated, as under a sudden load.
    await database.query(`alter table chains.${table} set (autovacuum_enabled = false)`);
  }
});

/** Postgres may switch to a generic plan after five executions. */
async function cachePlans(): Promise<void> {
  for (let round = 0; round < 12; round += 1) await runHotPath(sessionId);
}

async function expectLookUps(expected: Record<string, { pages: number; indexes: string[] }>): Promise<void> {
  for (const [name, { pages: pagesMax, indexes }] of Object.entries(expected)) {
    const values = calls.get(name);
    expect(values, `${name} was called`).toBeDefined();
    // A connection that misses too many invalidations, while other tests truncate their tables, reads the catalog again, and the pages
    // of a function include that.
    if (indexes.length === 0) await explainLast(name);
    const facts = await explainLast(name);
    expect(facts.nodes, name).not.toContain("Seq Scan");
    expect(facts.pages, `pages of ${name}`).toBeLessThan(pagesMax);
    expect(facts.indexes, name).toEqual(indexes);
  }
}

test("plans cached while idle use index lookups under load", async () => {
  await addHistory(chainId, 1_000);
  await database.query("vacuum analyze");
  await cachePlans();
  await addLive(chainId, busyChainId, 20_000);
  await runHotPath(sessionId);
  const ofEveryBatch = ["chains.live.open", "chains.live.write"];
  await expectLookUps(Object.fromEntries(Object.entries(EXPECTED).filter(([name]) => ofEveryBatch.includes(name))));
  await database.query("truncate chains.live_node, chains.live_run, chains.live_wait, chains.job_run cascade");
});

test("plans cached on an empty database use indexes on a full one", async () => {
  await addHistory(chainId, 20);
  await addLive(chainId, busyChainId, 40);
  await database.query("analyze");
  await cachePlans();
  await addHistory(chainId, HISTORY);
  await addLive(chainId, busyChainId, LIVE);
  await runHotPath(sessionId);
  await expectLookUps(EXPECTED);
});

/** About three times the pages that were measured. A scan of history reads 100,000, a scan of live rows 2,000. */
const EXPECTED: Record<string, { pages: number; indexes: string[] }> = {
  "chains.timers.look": {
    pages: 500,
    indexes: [
      "job_run_live_children",
      "job_run_pkey",
      "job_run_queue",
      "live_node_child_run",
      "live_node_due_at",
      "live_node_held",
      "live_node_pkey",
      "live_node_pooled",
      "live_node_ready",
      "live_run_deadline",
      "live_run_grace_at",
      "live_run_pkey",
      "live_wait_arrival",
      "schedule_due",
      "schedule_retry",
      "session_pkey",
    ],
  },
  "chains.admit.pick": { pages: 50, indexes: ["job_chain_definition_pkey", "job_run_active", "job_run_queue"] },
  "chains.node.claim": { pages: 200, indexes: ["live_node_pkey", "live_node_ready"] },
  "chains.pooled_node.lock_keys": { pages: 50, indexes: ["live_node_pooled"] },
  "chains.pooled_node.claim_in_keys": {
    pages: 400,
    indexes: ["live_node_in_pool", "live_node_pkey", "live_node_pooled", "pool_pkey"],
  },
  "chains.node.mark_started": { pages: 150, indexes: ["job_run_node_pkey"] },
  "chains.node.held": { pages: 150, indexes: ["live_node_held", "live_run_pkey"] },
  "chains.node.expired": { pages: 150, indexes: ["live_node_held", "session_pkey"] },
  // A function, whose plan is not shown: only its pages are checked.
  "chains.live.open": { pages: 250, indexes: [] },
  "chains.live.write": { pages: 800, indexes: ["job_run_node_pkey", "live_node_pkey", "live_run_pkey"] },
  "chains.timers.release_delayed": { pages: 400, indexes: ["live_node_due_at", "live_node_pkey"] },
  "chains.timers.overdue": { pages: 120, indexes: ["job_run_pkey", "live_run_deadline"] },
  "chains.timers.out_of_grace": { pages: 20, indexes: ["live_run_grace_at"] },
  "chains.wait.find": { pages: 20, indexes: ["live_wait_arrival"] },
};
