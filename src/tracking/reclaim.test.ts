/** Reclaiming shards whose lease expired. */

import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { startMillrace, useMillrace } from "../../test/millrace.ts";
import { noHints } from "../../test/no-hints.ts";
import { reached, trackingTable } from "../../test/tracking.ts";
import { createLog } from "../kernel/telemetry/log.ts";
import { createMetrics } from "../kernel/telemetry/metrics.ts";
import { createWake } from "../kernel/work/wake.ts";
import { CATALOGUE } from "./catalogue.ts";
import type { QueueStage } from "./states.ts";
import { createTracking } from "./tracking.ts";
import { createReclaimer } from "./worker.ts";

const LOST_LIMIT = 3;
const database = useDatabase();
const millrace = useMillrace(database, { tracking: { stageTimeoutSeconds: { "mysql-sender": 60 } } });
const table = trackingTable(database);
const post = (path: string, body: unknown) =>
  millrace.api.post<{ items: { fence: string }[] }>(`/api/v1/pipeline${path}`, body);
const log = createLog({ level: "fatal" });

/** One run of the scheduler's reclaim. */
function tracking() {
  const { db } = database;
  const settings = { lostLimit: LOST_LIMIT, stageTimeoutSeconds: {}, keepDays: 365 };
  return createTracking({
    db,
    wake: createWake(),
    hints: noHints,
    metrics: createMetrics().define(CATALOGUE.metrics),
    settings,
  });
}
const reclaim = () => tracking().reclaim();

async function claimAndFallSilent(stage: QueueStage, filename: string): Promise<string> {
  const { body } = await post(`/queues/${stage}/claim`, { worker: "lost", lease_seconds: 1 });
  await table.expire(filename);
  return body.items[0]?.fence ?? "none";
}

beforeEach(() => table.clear());

describe("a shard whose lease expired", () => {
  test("goes back to its queue, and the loss is counted", async () => {
    const filename = await table.put(reached("shard-worker", "new"));
    const before = await table.row(filename);
    const fence = await claimAndFallSilent("shard-worker", filename);
    expect(await reclaim()).toEqual({ reclaimed: 1, failed: 0 });
    expect(await table.row(filename)).toEqual({ ...before, lost_count: 1 });
    expect(await post("/stages/shard-worker/done", { filename, shard: 0, fence })).toMatchObject({
      status: 409,
      body: { code: "LEASE_LOST" },
    });
    expect(await table.row(filename)).toEqual({ ...before, lost_count: 1 });
  });

  test("may still be finished by its worker until it is reclaimed", async () => {
    const filename = await table.put(reached("shard-worker", "new"));
    const fence = await claimAndFallSilent("shard-worker", filename);
    expect(await post("/stages/shard-worker/done", { filename, shard: 0, fence })).toMatchObject({ status: 200 });
    expect(await reclaim()).toEqual({ reclaimed: 0, failed: 0 });
    expect(await table.row(filename)).toMatchObject({ shard_worker_status: "done", lost_count: 0 });
  });

  test("is failed after too many lost workers, until it is retried", async () => {
    const filename = await table.put(reached("shard-worker", "new"));
    for (let loss = 1; loss < LOST_LIMIT; loss += 1) {
      await claimAndFallSilent("shard-worker", filename);
      expect(await reclaim()).toEqual({ reclaimed: 1, failed: 0 });
    }
    await claimAndFallSilent("shard-worker", filename);
    expect(await reclaim()).toEqual({ reclaimed: 0, failed: 1 });
    expect(await table.row(filename)).toMatchObject({
      shard_worker_status: "failed",
      lost_count: LOST_LIMIT,
      last_error: `lost ${LOST_LIMIT} workers in a row`,
      leased: false,
    });
    await post("/stages/shard-worker/retry", { filename, shard: 0 });
    expect(await table.row(filename)).toMatchObject({ shard_worker_status: "new", lost_count: 0 });
  });

  test("resets its count of lost workers when one succeeds", async () => {
    const filename = await table.put(reached("shard-splitter", "new"));
    await claimAndFallSilent("shard-splitter", filename);
    await reclaim();
    const { body } = await post("/queues/shard-splitter/claim", { worker: "w" });
    await post("/stages/shard-splitter/done", { filename, shard: 0, fence: body.items[0]?.fence });
    expect(await table.row(filename)).toMatchObject({ shard_splitter_status: "done", lost_count: 0 });
  });
});

describe("a shard that is not reclaimed", () => {
  test("has a valid lease while another has expired", async () => {
    const expired = await table.put(reached("shard-worker", "new"));
    await claimAndFallSilent("shard-worker", expired);
    const running = await table.put(reached("shard-worker", "new"));
    await post("/queues/shard-worker/claim", { worker: "w" });
    const row = await table.row(running);
    expect(await reclaim()).toEqual({ reclaimed: 1, failed: 0 });
    expect(await table.row(running)).toEqual(row);
    expect(row).toMatchObject({ shard_worker_status: "started", leased: true });
  });

  test("was started without a lease, however long ago", async () => {
    const filename = await table.put(reached("shard-worker", "new"));
    await post("/stages/shard-worker/start", { filename, shard: 0 });
    await database.query("update tracking.pipeline_tracking set updated_at = now() - interval '30 days'");
    expect(await reclaim()).toEqual({ reclaimed: 0, failed: 0 });
    expect(await table.row(filename)).toMatchObject({ shard_worker_status: "started" });
  });
});

describe("a start without a lease in a stage with a time-out", () => {
  test("goes back to the queue at the time-out", async () => {
    const filename = await table.put(reached("mysql-sender", "new"));
    await post("/stages/mysql-sender/start", { filename, shard: 0, worker: "w" });
    expect(await reclaim()).toEqual({ reclaimed: 0, failed: 0 });
    await table.expire(filename);
    expect(await reclaim()).toEqual({ reclaimed: 1, failed: 0 });
    expect(await table.row(filename)).toMatchObject({ mysql_sender_status: "new", worker: null, lost_count: 1 });
  });

  test("needs no fence to be finished in time", async () => {
    const filename = await table.put(reached("mysql-sender", "new"));
    await post("/stages/mysql-sender/start", { filename, shard: 0 });
    expect(await post("/stages/mysql-sender/done", { filename, shard: 0 })).toMatchObject({ status: 200 });
    expect(await table.row(filename)).toMatchObject({ mysql_sender_status: "done", leased: false });
  });
});

describe("the scheduler", () => {
  test("gives reclaimed work to a daemon that waits on another server", async () => {
    const filename = await table.put(reached("shard-worker", "new"));
    await claimAndFallSilent("shard-worker", filename);
    const waiting = millrace.api.post<{ items: object[] }>("/api/v1/pipeline/queues/shard-worker/claim", {
      worker: "heir",
      wait_seconds: 30,
    });
    const scheduler = await startMillrace(database, { env: { MILLRACE_ROLES: "scheduler" } });
    try {
      expect((await waiting).body.items).toMatchObject([{ filename, shard: 0 }]);
    } finally {
      await scheduler.app.stop();
    }
  });

  test("does not pause between batches when thousands of leases expired", async () => {
    const shards = Array.from({ length: 2_500 }, (_, shard) => shard);
    await table.put(reached("shard-worker", "started"), { shards });
    await database.query(
      "update tracking.pipeline_tracking set leased_until = now() - interval '1 s', shard_worker_fence = 1",
    );
    const outcomes: number[] = [];
    const reclaimer = createReclaimer(tracking(), {
      log,
      onRun: (_name, _outcome, { reclaimed = 0 }) => void outcomes.push(reclaimed),
    });
    const begun = performance.now();
    reclaimer.start();
    while (outcomes.length < 3) await reclaimer.nextRun();
    await reclaimer.stop();
    expect(outcomes.slice(0, 3)).toEqual([1_000, 1_000, 500]);
    expect(performance.now() - begun).toBeLessThan(5_000);
  });

  test("reclaims a lease when it expires, whatever its interval", async () => {
    await table.put(reached("shard-worker", "started"), { shards: [0] });
    await database.query(
      "update tracking.pipeline_tracking set leased_until = now() + interval '1.5 s', shard_worker_fence = 1",
    );
    const outcomes: number[] = [];
    const reclaimer = createReclaimer(tracking(), {
      log,
      onRun: (_name, _outcome, { reclaimed = 0 }) => void outcomes.push(reclaimed),
    });
    const begun = performance.now();
    reclaimer.start();
    while (!outcomes.includes(1)) await reclaimer.nextRun();
    await reclaimer.stop();
    expect(performance.now() - begun).toBeLessThan(10_000);
  });

  test("shares expired leases with other processes, each reclaimed once", async () => {
    const shards = Array.from({ length: 500 }, (_, shard) => shard);
    await table.put(reached("shard-worker", "started"), { shards });
    await database.query(
      "update tracking.pipeline_tracking set leased_until = now() - interval '1 s', shard_worker_fence = 1",
    );
    const counts = await Promise.all(Array.from({ length: 4 }, reclaim));
    expect(counts.reduce((sum, { reclaimed }) => sum + reclaimed, 0)).toBe(500);
    expect(new Set((await table.rows()).map(({ lost_count }) => lost_count))).toEqual(new Set([1]));
  });
});
