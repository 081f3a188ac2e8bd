import { beforeEach, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { openRecordingDb } from "../../test/plans.ts";
import { reached, trackingTable } from "../../test/tracking.ts";
import { COUNTED_MAX } from "../kernel/overview/values.ts";
import { trackingOverview } from "./overview.ts";

const database = useDatabase();
const table = trackingTable(database);
const now = () => trackingOverview.now(database.db, { tenantId: null });

beforeEach(() => table.clear());

test("shards that nobody has claimed are counted by stage", async () => {
  await table.put(reached("shard-worker", "new"), { shards: [1, 2, 3] });
  await table.put(reached("mysql-sender", "started"), { shards: [1] });
  expect(await now()).toMatchObject({
    needs: [],
    waiting: [{ cause: "claim", kind: "shard", subject: "shard-worker", count: 3, oldestAt: expect.any(Date) as Date }],
  });
});

test("shards that have failed need somebody, by stage and with the newest error", async () => {
  const filename = await table.put(reached("shard-worker", "failed"), { shards: [1, 2] });
  await database.query("update tracking.pipeline_tracking set last_error = 'no space left', updated_at = now()");
  expect(await now()).toMatchObject({
    needs: [
      {
        about: { kind: "failed-stage", id: "shard-worker" },
        state: "failed",
        reason: `${filename}: no space left`,
        count: 2,
      },
    ],
    waiting: [],
  });
});

test("shards whose lease has expired, or that were started long ago without one, are stuck, by stage", async () => {
  const lost = await table.put(reached("shard-worker", "started"), { shards: [1, 2] });
  const lease = (until: string) =>
    database.query(
      `update tracking.pipeline_tracking set shard_worker_fence = 1, worker = 'w1', leased_until = now() + $2::interval where filename = $1`,
      [lost, until],
    );
  await lease("1 minute");
  const long = await table.put(reached("mysql-sender", "started"), { shards: [1] });
  expect((await now()).needs).toEqual([]);

  await lease("-10 seconds"); // It is about to be reclaimed.
  expect((await now()).needs).toEqual([]);

  await lease("-2 minutes");
  await database.query(
    "update tracking.pipeline_tracking set updated_at = now() - interval '2 hours' where filename = $1",
    [long],
  );
  expect((await now()).needs).toMatchObject([
    {
      about: { kind: "stuck-stage", id: "shard-worker" },
      state: "stuck",
      reason: `${lost}: the lease of worker w1 has expired, and the shard was not reclaimed.`,
      count: 2,
      at: expect.any(Date) as Date,
    },
    { about: { kind: "stuck-stage", id: "mysql-sender" }, state: "stuck", count: 1 },
  ]);

  // Shards that are done cost nothing.
  await table.put(reached("mysql-sender", "done"), { shards: Array.from({ length: 30_000 }, (_, shard) => shard) });
  await database.query("vacuum analyze tracking.pipeline_tracking");
  const { db, explainLast } = openRecordingDb(database.connection, "tracking.overview");
  await trackingOverview.now({ ...db, read: db.rows }, { tenantId: null });
  const { indexes, pages } = await explainLast("tracking.overview.stuck");
  await db.close();
  expect(indexes.toSorted()).toEqual(["leases", "pipeline_without_lease"]);
  expect(pages).toBeLessThan(50);
});

test("a shard that has failed in two stages counts in both, as it does among the stuck ones", async () => {
  await table.put(["failed", "new", "new", "failed"], { shards: [1] });
  await table.put(reached("event-ingest", "failed"), { shards: [1] });
  const { needs } = await now();
  expect(needs.map(({ about, count }) => [about.id, count])).toEqual([
    ["event-ingest", 2],
    ["mysql-sender", 1],
  ]);
});

test("all shards that have failed are counted, however many there are", async () => {
  const filename = await table.put(reached("shard-worker", "failed"), {
    shards: Array.from({ length: COUNTED_MAX + 1 }, (_, shard) => shard),
  });
  expect((await now()).needs).toMatchObject([{ count: COUNTED_MAX + 1, reason: `A shard of ${filename} has failed.` }]);
});
