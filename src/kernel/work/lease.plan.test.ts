import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { explain, hasGenericPlan } from "../../../test/plans.ts";
import { WORK_TABLES } from "../../../test/work-tables.ts";
import { type Db, openDb } from "../data/db.ts";

const database = useDatabase();
const ROWS_MANY = 50_000;
/** Claiming 10 rows of 50,000 reads some 150 pages, most of them to write new row versions; the table alone has 700. */
const PAGES_MAX = 300;

let db: Db;
beforeEach(() => {
  db = openDb({ connection: database.connection, poolSize: 1 });
});
afterEach(() => db.close());

const CALLS = [
  {
    table: "job",
    claim: `"test.job.claim"(10, 'worker', 60)`,
    byKey: [`"test.job.done"(array[1, 2], array[1, 2])`, `"test.job.release"(array[1, 2], array[1, 2])`],
    reclaim: `"test.job.reclaim"(10, 3)`,
  },
  {
    table: "task",
    claim: `"test.task.claim"(10, 1)`,
    byKey: [
      `"test.task.done"(array['tenant 1'], array[1], array[1])`,
      `"test.task.release"(array['tenant 1'], array[1], array[1])`,
    ],
    reclaim: `"test.task.reclaim"(10, 3)`,
  },
];

describe.each(
  WORK_TABLES.map((work, index) => ({ work, shape: work.shape, calls: CALLS[index] as (typeof CALLS)[0] })),
)("plans made while the table was tiny, with $shape,", ({ work, calls }) => {
  test("go by the index when it is large, too", async () => {
    await work.create(database);
    // No ANALYZE, so the connection keeps its plans, as under a sudden load.
    await database.query(`alter table ${calls.table} set (autovacuum_enabled = false)`);
    await work.add(database, numbered(1, 8));
    await database.query(`analyze ${calls.table}`);
    const holder = await work.holder(database);
    await workForAWhile(holder);
    await work.add(database, numbered(9, ROWS_MANY));

    for (const call of [calls.claim, ...calls.byKey, calls.reclaim]) {
      const name = /"(.*)"/.exec(call)?.[1] ?? "";
      expect(await hasGenericPlan(db, name), `${name} has a plan of its own`).toBe(true);
      const { nodes, pages } = await explain(db, call);
      expect(nodes, call).not.toContain("Seq Scan");
      expect(pages, `${name} reads pages`).toBeLessThan(PAGES_MAX);
    }
    expect((await explain(db, calls.claim)).indexes).toEqual([`${calls.table}_pkey`, `${calls.table}_ready`]);
    for (const call of calls.byKey) expect((await explain(db, call)).indexes, call).toEqual([`${calls.table}_pkey`]);
    expect((await explain(db, calls.reclaim)).indexes).toContain(`${calls.table}_leased`);
  });

  /** Postgres plans each of the first five executions, then keeps a generic plan if it is not more expensive. */
  async function workForAWhile(holder: string): Promise<void> {
    for (let round = 1; round <= 12; round += 1) {
      await work.lease.release(db, await work.claim(db, holder, 2));
      const [item] = await work.claim(db, holder, 1);
      if (item && round % 2 === 0) await work.lease.release(db, [item]);
      else if (item) await work.lease.finish(db, "done", [item]);
      await work.lease.finish(db, "done", [{ ...work.keyOf(0), fence: "0" }]);
      await work.lease.reclaim(db, { limit: 10, lostLimit: 3 });
    }
  }
});

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => ({ n: from + index }));
