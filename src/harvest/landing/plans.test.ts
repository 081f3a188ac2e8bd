/** A window costs what it has, however many windows, slices and records there were before it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { openRecordingDb, type RecordingDb } from "../../../test/plans.ts";
import type { Db } from "../../kernel/data/db.ts";
import { PRIORITIES } from "../spec/snapshot.ts";
import {
  changesOf,
  landingLease,
  landingPlans,
  nextLandingMs,
  recordsOf,
  sumOf,
  wantLanding,
} from "../store/records/landing.ts";
import { at, makeSource, type TestSource } from "./windows.fixture.ts";

const WINDOWS = 5_000;
const RECORDS_OF_WINDOW = 20;
/** Several times the measured numbers. A scan of history reads 1,000 and more. */
const PAGES_MAX = 100;

const database = useDatabase();
let db: Db;
let calls: RecordingDb["calls"];
let explainLast: RecordingDb["explainLast"];

beforeAll(() => {
  ({ db, calls, explainLast } = openRecordingDb(database.connection, "harvest.landing."));
});
afterAll(() => db.close());

/** Every statement of a landing, once. */
async function turn(source: TestSource, planId: string): Promise<void> {
  await db.tx((tx) => wantLanding(tx, [source.window(planId)]));
  await nextLandingMs(db);
  const [claimed] = await landingLease.claim(db, { limit: 1, holder: "1" });
  if (!claimed) throw new Error("nothing wants to land");
  await landingPlans(db, [claimed.plan_id]);
  const changes = await changesOf(db, claimed);
  const slices = changes.map(({ slice_id }) => slice_id);
  await sumOf(db, claimed.endpoint_id, changes, slices);
  expect(await recordsOf(db, claimed.endpoint_id, changes, slices)).toHaveLength(2);
  await db.tx(async (tx) => {
    await landingLease.hold(tx, [claimed]);
    await landingLease.finish(tx, "land", [{ ...claimed, seen: claimed.wanted, rows: "2", content_hash: "" }]);
  });
}

/**
 * Windows of the years before, complete and landed, with records and earlier versions of them, and four times as
 * many of harvests that are due again later.
 */
async function addHistory({ endpointId, source }: TestSource, planId: string): Promise<void> {
  await database.query(
    `with slice as (
       insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
         namespace_key, window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code, ended_at)
       select $1, n + 100, $2, $3, 'HARVEST', 'EXPR', 'works', $4::timestamptz - make_interval(days => n),
         $4::timestamptz - make_interval(days => n - 1), '{}', 'history ' || n, '', '{}', 'COMPLETE', now()
       from generate_series(1, $5::int) n returning slice_id, slice_no, window_from
     ),
     batch as (
       insert into harvest.ing_task_run_batch (plan_month, slice_id, generation, batch_no, run_id, task_id, plan_id, endpoint_id,
         expr_hash, phase, request, response_digest, stats, id_hashes, change_xid)
       select '2026-08-01', slice_id, 1, 1, 1, 1, $1, $3, '', 1, '{}', '{}', '{}', '', slice_no::text::xid8 from slice
     ),
     retried as (
       insert into harvest.landing (endpoint_id, op_time, table_name, window_from, window_to, plan_id, status_code, priority, due_at)
       select $3, slice_no || 'R' || n, 'crossref_works', window_from, window_from + interval '1 day', $1, 'PENDING', 100,
         now() + interval '1 hour'
       from slice, generate_series(1, 4) n
     ),
     landing as (
       insert into harvest.landing (endpoint_id, op_time, table_name, window_from, window_to, plan_id, status_code)
       select $3, to_char(window_from, 'YYYYMMDD'), 'crossref_works', window_from, window_from + interval '1 day', $1, 'LANDED'
       from slice
     ),
     version as (
       insert into harvest.record_version (endpoint_id, item_key, version, deleted, content_hash, change_xid, plan_month,
         slice_id, generation, batch_no, data)
       select $3, slice_no || ' ' || n, 1, false, gen_random_uuid(), slice_no::text::xid8, '2026-08-01', slice_id, 1, 1, '{}'
       from slice, generate_series(1, $6::int) n
     )
     insert into harvest.record (endpoint_id, item_key, version, content_hash, change_xid, plan_month, slice_id, generation,
       batch_no, data)
     select $3, slice_no || ' ' || n, 2, gen_random_uuid(), slice_no::text::xid8, '2026-08-01', slice_id, 1, 1, '{}'
     from slice, generate_series(1, $6::int) n`,
    [planId, source, endpointId, at(1), WINDOWS, RECORDS_OF_WINDOW],
  );
}

test("plans made on an empty database go by the index on a full one", async () => {
  const source = await makeSource(database);
  for (const table of ["ing_plan_slice", "ing_task_run_batch_default", "landing", "record", "record_version"]) {
    // No ANALYZE, so the connection keeps its plans, as under a sudden load.
    await database.query(`alter table harvest.${table} set (autovacuum_enabled = false)`);
  }
  await database.query("analyze");
  await source.harvest([{ key: "a", title: "A" }]);
  const { planId } = await source.harvest([
    { key: "a", title: "A, corrected" },
    { key: "b", title: "B" },
  ]);
  await database.query("update harvest.ing_plan set priority = $2 where plan_id = $1", [planId, PRIORITIES.BACKFILL]);
  for (let round = 0; round < 12; round += 1) await turn(source, planId); // Postgres may choose a generic plan after five executions.
  await addHistory(source, planId);
  calls.clear();
  await turn(source, planId);

  expect([...calls.keys()].sort()).toEqual([...HOT].sort());
  for (const name of HOT) {
    if (name.endsWith(".claim")) continue; // Explained below: it needs something to claim.
    const facts = await explainLast(name);
    expect(facts.nodes, name).not.toContain("Seq Scan");
    expect(facts.pages, `pages of ${name} by ${facts.indexes.join()}`).toBeLessThan(PAGES_MAX);
  }
  await db.tx((tx) => wantLanding(tx, [source.window(planId)]));
  expect((await explainLast("harvest.landing.claim")).pages).toBeLessThan(PAGES_MAX);
}, 60_000);

const HOT = [
  "harvest.landing.lock",
  "harvest.landing.want",
  "harvest.landing.next_due",
  "harvest.landing.claim",
  "harvest.landing.plans",
  "harvest.landing.changes",
  "harvest.landing.sum",
  "harvest.landing.records",
  "harvest.landing.hold",
  "harvest.landing.land",
];
