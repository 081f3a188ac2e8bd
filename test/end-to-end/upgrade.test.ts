/** Rows that the version before has written are migrated to what the present version reads. */
import { copyFile, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { findViolations } from "../../src/arrivals/store/invariants.ts";
import { type Db, openDb } from "../../src/kernel/data/db.ts";
import { migrate } from "../../src/kernel/data/migrate.ts";
import { emptyDatabase } from "../empty-database.ts";

const SQL = fileURLToPath(new URL("../../sql/", import.meta.url));
const DAY = "20250101";
const CHAIN_RUN = "01a1e4d5-302c-7116-bc2f-d366ac086c41";

let db: Db;
const query = <R>(text: string): Promise<R[]> => db.exclusive(async (client) => (await client.query(text)).rows as R[]);

/** A database with the migrations before this one. */
async function before(file: string): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "millrace-upgrade-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  const older = (await readdir(SQL)).filter((name) => name < file);
  await Promise.all(older.map((name) => copyFile(join(SQL, name), join(dir, name))));
  await migrate(db, dir);
}

beforeEach(async () => {
  db = openDb({ connection: await emptyDatabase() });
  onTestFinished(() => db.close());
});

test("a parked node stays parked, and nodes can be blocked", async () => {
  await before("000012");
  await query(`insert into chains.live_node (run_id, node_id, state, waiting, priority, child_run_id)
    values ('${CHAIN_RUN}', 'parked', 'parked', 0, 0, '${CHAIN_RUN}'), ('${CHAIN_RUN}', 'ready', 'ready', 0, 0, null)`);
  await migrate(db);
  expect(await query("select node_id, state from chains.live_node order by node_id")).toEqual([
    { node_id: "parked", state: "parked" },
    { node_id: "ready", state: "ready" },
  ]);
  await query("update chains.live_node set state = 'blocked' where state = 'parked'");
  await expect(query("update chains.live_node set state = 'blocked'")).rejects.toThrow("live_node_child");
});

describe("a model", () => {
  beforeEach(async () => {
    await before("000013");
    await query(`
      insert into arrivals.metrics_model (model_id, name, chain, engine, sql, time_zone, rerun, timeout_seconds) values
        ('chained', 'chained', 'c', null, null, 'UTC', 'auto', 60), ('starting', 'starting', 'c', null, null, 'UTC', 'auto', 60),
        ('sql', 'sql', null, 'duckdb', 'select 1', 'UTC', 'auto', 60), ('quiet', 'quiet', 'c', null, null, 'UTC', 'auto', 60);
      insert into arrivals.model_instance (model_id, op_time, state, generation, again, session_id, fence) values
        ('chained', '${DAY}', 'running', 1, true, 1, 1), ('starting', '${DAY}', 'running', 1, false, 1, 2),
        ('sql', '${DAY}', 'running', 1, false, 1, 3);
      insert into arrivals.model_instance (model_id, op_time, state, due_at) values ('quiet', '${DAY}', 'quiet', now());
      insert into arrivals.metrics_task_log (model_id, op_time, generation, trigger, consumed, worker, chain_run_id) values
        ('chained', '${DAY}', 1, 'arrival', '{}', 'w', '${CHAIN_RUN}'), ('starting', '${DAY}', 1, 'arrival', '{}', 'w', null),
        ('sql', '${DAY}', 1, 'arrival', '{}', 'w', null)`);
    await migrate(db);
  });

  test("whose worker waits for a run of its chain is parked with that, and all others go on as they are", async () => {
    const rows = await query(
      `select model_id, state, again, fence::int as fence, chain_run_id, due_at > now() + interval '50 s' as times_out
       from arrivals.model_instance order by model_id`,
    );
    const asBefore = { again: false, chain_run_id: null };
    expect(rows).toEqual([
      { model_id: "chained", state: "parked", again: true, fence: null, chain_run_id: CHAIN_RUN, times_out: true },
      { ...asBefore, model_id: "quiet", state: "quiet", fence: null, times_out: false },
      { ...asBefore, model_id: "sql", state: "running", fence: 3, times_out: null },
      { ...asBefore, model_id: "starting", state: "running", fence: 2, times_out: null },
    ]);
    expect(await findViolations(db)).toEqual([]);
  });

  test("has no checks but the default, and its runs no warnings", async () => {
    expect(await query("select distinct expect, allow_empty from arrivals.metrics_model")).toEqual([
      { expect: null, allow_empty: false },
    ]);
    expect(await query("select distinct warnings from arrivals.metrics_task_log")).toEqual([{ warnings: [] }]);
  });
});

test("each double becomes the decimal that reads back as the same double", async () => {
  const doubles = [0.1, 0.30000000000000004, 9007199254740992, -12.5, 1e308, 5e-324, 1 / 3];
  await before("000014");
  await query(`insert into arrivals.metrics_kpi_data (kpi_id, op_time, dimension_key, dimensions, value, task_id, generation)
    values ${doubles.map((double, no) => `('K', '${DAY}', '${no}', '{}', ${double}, 1, 1)`).join(", ")}`);
  await migrate(db);
  const rows = await query<{ value: string }>(
    "select value::text as value from arrivals.metrics_kpi_data order by dimension_key",
  );
  expect(rows.map(({ value }) => Number(value))).toEqual(doubles);
  expect(rows.slice(0, 2).map(({ value }) => value)).toEqual(["0.1", "0.30000000000000004"]);
});

test("of what updates have checked, each plan keeps what no later one has checked again", async () => {
  await before("000038");
  const [older, newer] = ["00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-000000000002"];
  await query(`
    insert into harvest.reg_provenance (provenance_code, name, base_url, updated_by) values ('s', 's', 'https://s.example', 'test');
    insert into harvest.reg_prov_endpoint_def (provenance_code, endpoint_name, role_code, http_method, path_template)
      values ('s', 'e', 'SEARCH', 'GET', '/');
    insert into harvest.snapshot (spec_fingerprint, snapshot, origins) values ('f', '{}', '{}');
    insert into harvest.ing_schedule_instance (schedule_instance_id, scheduler_code, provenance_code, endpoint_name, operation_code,
      trigger_type_code, trigger_params, created_by) values ('${older}', 'test', 's', 'e', 'UPDATE', 'MANUAL', '{}', 'test');
    insert into harvest.ing_plan (plan_id, schedule_instance_id, provenance_code, endpoint_id, endpoint_name, operation_code,
        plan_strategy, spec_fingerprint, expr_proto_hash, namespace_scope_code, namespace_key, priority, planned_at, plan_month,
        status_code, ended_at)
      select plan_id::uuid, '${older}', 's', endpoint_id, 'e', 'UPDATE', 'RANGE', 'f', '', 'CUSTOM', 'e', 200, at::timestamptz,
        '2026-08-01', 'COMPLETE', now()
      from harvest.reg_prov_endpoint_def, (values ('${older}', '2026-08-01'), ('${newer}', '2026-08-02')) as p(plan_id, at);
    insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
        namespace_key, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code, reason, ended_at, keys)
      select s.plan_id::uuid, n, 's', endpoint_id, 'UPDATE', 'CUSTOM', 'e', '{}', n::text, '', '{}', status, case status when 'FAILED' then 'why' end, now(), harvest.key_range(a, b)
      from harvest.reg_prov_endpoint_def, (values ('${older}', 1, 'COMPLETE', null, 'm'), ('${older}', 2, 'COMPLETE', 'm', null),
        ('${newer}', 1, 'COMPLETE', 'c', 'p'), ('${newer}', 2, 'FAILED', 'p', null)) as s(plan_id, n, status, a, b)`);
  await migrate(db);
  expect(await query("select plan_id, keys::text from harvest.checked_keys order by plan_id")).toEqual([
    { plan_id: older, keys: "{(,c),[p,)}" },
    { plan_id: newer, keys: "{[c,p)}" },
  ]);
});
