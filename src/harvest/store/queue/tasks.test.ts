/** The queue of tasks: who is claimed first, how many at once, and one active task for each slice. */
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../../test/database.ts";
import { openRecordingDb } from "../../../../test/plans.ts";
import { at, makeSource, type TestSource } from "../../landing/windows.fixture.ts";
import { doesHarvestWait, startRuns, taskLease } from "./tasks.ts";

const database = useDatabase();
let source: TestSource;
let planId: string;

beforeEach(async () => {
  await database.query("truncate harvest.ing_task, harvest.ing_task_run, harvest.ing_partition cascade");
  source = await makeSource(database);
  planId = await source.plan();
});

interface Queued {
  partition: string;
  count: number;
  priority?: number;
  /** How long ago they were queued. */
  age?: number;
}

async function queue({ partition, count, priority = 100, age = 0 }: Queued): Promise<void> {
  await database.query(
    `with slice as (
       insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
         namespace_key, window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code)
       select $1, n, $2, $3, 'HARVEST', 'EXPR', $4, $5::timestamptz + make_interval(days => n),
         $5::timestamptz + make_interval(days => n + 1), '{}', $4 || $7 || ' ' || n, '', '{}', 'READY'
       from generate_series(1, $6::int) n returning slice_id
     )
     insert into harvest.ing_task (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, params,
       expr_hash, idempotent_key, priority, scheduled_at)
     select $1, $1, slice_id, $2, 'HARVEST', $4, '{}', '', slice_id::text, $7::int, now() - make_interval(secs => $8) from slice`,
    [planId, source.source, source.endpointId, partition, at(1), count, priority, age],
  );
  await database.query("insert into harvest.ing_partition (partition_key) values ($1) on conflict do nothing", [
    partition,
  ]);
}

async function claim(limit: number, session = "1"): Promise<string[]> {
  const claimed = await taskLease.claim(database.db, { limit, holder: session }, startRuns);
  return claimed.map(({ partition_key }) => partition_key).sort();
}

describe("a claim", () => {
  test("goes to the partitions in turn, though one has a thousand older tasks", async () => {
    await queue({ partition: "big", count: 1_000, age: 3_600 });
    await queue({ partition: "small", count: 3 });
    expect(await claim(4)).toEqual(["big", "big", "small", "small"]);
    expect(await claim(2)).toEqual(["big", "small"]);
  });

  test("takes what has the smaller priority first, whatever is older", async () => {
    await queue({ partition: "backfill", count: 5, priority: 300, age: 3_600 });
    await queue({ partition: "harvest", count: 5, priority: 100 });
    await queue({ partition: "update", count: 5, priority: 200, age: 7_200 });
    expect(await claim(7)).toEqual([...Array<string>(5).fill("harvest"), "update", "update"]);
  });

  test("takes no more of a partition than its concurrency, also of many claims at the same time", async () => {
    await queue({ partition: "p", count: 50 });
    await database.query("update harvest.ing_partition set concurrency = 5");
    const claims = await Promise.all(["1", "2", "3", "4"].map((session) => claim(3, session)));
    expect(claims.flat()).toHaveLength(5);
    expect(await claim(10)).toEqual([]);
  });

  test("takes one task of a partition whose source refused access", async () => {
    await queue({ partition: "p", count: 50 });
    await database.query("update harvest.ing_partition set is_refused = true");
    expect(await claim(10)).toEqual(["p"]);
    expect(await claim(10)).toEqual([]);
  });

  test("takes no backfill and no update while a harvest of their source is due or runs", async () => {
    const of = (operation: string, name = source.source) => `${name}/works/${operation}`;
    await queue({ partition: of("HARVEST"), count: 1 });
    await queue({ partition: of("BACKFILL"), count: 1, priority: 300 });
    await queue({ partition: of("UPDATE"), count: 1, priority: 200 });
    await queue({ partition: of("BACKFILL", "other"), count: 2, priority: 300 });
    const background = { limit: 10, holder: "1", only: (key: string) => !key.endsWith("/HARVEST") };
    const claimed = await taskLease.claim(database.db, { ...background, limit: 1 }, startRuns);
    expect(claimed.map(({ partition_key }) => partition_key)).toEqual([of("BACKFILL", "other")]);
    expect(await claim(10)).toEqual([of("BACKFILL", "other"), of("HARVEST")]);
    expect(await claim(10)).toEqual([]);
    // It waits for its quota.
    await database.query(
      `update harvest.ing_task set status_code = 'QUEUED', session_id = null, fence = null, scheduled_at = now() + interval '1 hour'
       where partition_key = $1`,
      [of("HARVEST")],
    );
    expect(await claim(10)).toEqual([of("BACKFILL"), of("UPDATE")]);
  });

  test("of a backfill looks at one task of a harvest that is paused, however many wait", async () => {
    const { db, explainLast } = openRecordingDb(database.connection, "harvest.");
    onTestFinished(() => db.close());
    const [harvest, backfill] = [`${source.source}/works/HARVEST`, `${source.source}/works/BACKFILL`];
    await queue({ partition: harvest, count: 20_000 });
    await queue({ partition: backfill, count: 2, priority: 300 });
    await database.query("analyze harvest.ing_task, harvest.ing_partition");
    expect(await claim(1)).toEqual([harvest]);
    await taskLease.reclaim(database.db, { limit: 1, lostLimit: 5 }); // There is no session 1.
    await database.query(
      "insert into harvest.pause (provenance_code, operation_code, paused_by) values ($1, 'HARVEST', 'test')",
      [source.source],
    );
    const [claimed] = await taskLease.claim(db, { limit: 1, holder: "1" }, startRuns);
    expect(claimed?.partition_key).toBe(backfill);
    expect(await doesHarvestWait(db, source.source)).toBe(false);
    for (const name of ["harvest.task.lock_keys", "harvest.task.claim_in_keys", "harvest.task.harvest_waits"]) {
      const { pages, indexes } = await explainLast(name);
      expect(pages, `pages of ${name} by ${indexes.join()}`).toBeLessThan(100);
    }
  });

  test("leaves alone what is due later", async () => {
    await queue({ partition: "p", count: 2, age: -60 });
    expect(await claim(10)).toEqual([]);
  });
});

test("a slice has one active task", async () => {
  await queue({ partition: "p", count: 1 });
  const again = () =>
    database.query(
      `insert into harvest.ing_task (schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, params,
         expr_hash, idempotent_key, priority, scheduled_at)
       select schedule_instance_id, plan_id, slice_id, provenance_code, operation_code, partition_key, params, expr_hash,
         'again', priority, now() from harvest.ing_task`,
    );
  await expect(again()).rejects.toThrow(/task_active/);
  await claim(1);
  await expect(again()).rejects.toThrow(/task_active/);
});

test("a run that is still open at the next claim of its task has failed", async () => {
  await queue({ partition: "p", count: 1 });
  await claim(1, "7");
  await taskLease.reclaim(database.db, { limit: 10, lostLimit: 5 }); // There is no session 7.
  await claim(1, "8");
  const runs = await database.query("select attempt_no, status_code, error from harvest.ing_task_run order by run_id");
  expect(runs).toEqual([
    { attempt_no: 1, status_code: "FAILED", error: "its process was lost" },
    { attempt_no: 2, status_code: "RUNNING", error: null },
  ]);
});
