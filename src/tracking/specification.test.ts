/** The examples of the pipeline API's specification, one by one, with exactly their requests and answers. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";
import { reached, trackingTable } from "../../test/tracking.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const table = trackingTable(database);

const FILE = "20250101000000";
const RFC_3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const post = async (path: string, body: unknown) => {
  const { status, body: answer } = await millrace.api.post(`/api/v1/pipeline${path}`, body);
  return [status, answer] as const;
};
const get = async (path: string) => {
  const { status, body } = await millrace.api.get(`/api/v1/pipeline${path}`);
  return [status, body] as const;
};

describe("the specification's scenario", () => {
  test("1) a file is registered and its generation finished", async () => {
    const registered = await post("/files/register", { filename: FILE, shards: [0, 1] });
    expect(registered).toEqual([200, { filename: FILE, shards: [0, 1], created: true }]);
    expect(await table.rows()).toMatchObject([
      {
        filename: FILE,
        shard: 0,
        event_ingest_status: "started",
        shard_splitter_status: "new",
        shard_worker_status: "new",
        mysql_sender_status: "new",
      },
      {
        filename: FILE,
        shard: 1,
        event_ingest_status: "started",
        shard_splitter_status: "new",
        shard_worker_status: "new",
        mysql_sender_status: "new",
      },
    ]);

    expect(await post("/stages/event-ingest/done", { filename: FILE })).toEqual([
      200,
      { filename: FILE, updated_rows: 2 },
    ]);
  });

  test.each(["shard-splitter", "shard-worker", "mysql-sender"])(
    "2-4) %s lists its queue, starts each task and finishes it",
    async (stage) => {
      const [status, queue] = await get(`/queues/${stage}`);
      const item = (shard: number) => ({ filename: FILE, shard, created_at: expect.stringMatching(RFC_3339_UTC) });
      expect([status, queue]).toEqual([200, { stage, items: [item(0), item(1)] }]);
      for (const shard of [0, 1]) {
        const cell = { filename: FILE, shard };
        expect(await post(`/stages/${stage}/start`, cell)).toEqual([200, { ...cell, stage, status: "started" }]);
      }
      expect(await get(`/queues/${stage}`)).toEqual([200, { stage, items: [] }]);
      for (const shard of [0, 1]) {
        const cell = { filename: FILE, shard };
        expect(await post(`/stages/${stage}/done`, cell)).toEqual([200, { ...cell, stage, status: "done" }]);
      }
    },
  );

  test("4) what mysql-sender dropped goes back to `new` by a retry", async () => {
    const filename = await table.put(reached("mysql-sender", "new"), { shards: [1] });
    const cell = { filename, shard: 1 };
    await post("/stages/mysql-sender/start", cell);
    expect(await post("/stages/mysql-sender/fail", cell)).toEqual([
      200,
      { ...cell, stage: "mysql-sender", status: "failed" },
    ]);
    expect(await post("/stages/mysql-sender/retry", cell)).toEqual([
      200,
      { ...cell, stage: "mysql-sender", status: "new" },
    ]);
    const [, queue] = await get("/queues/mysql-sender");
    expect(queue).toMatchObject({ items: [cell] });
  });
});

describe("the specification's reads", () => {
  test("6) the statuses of a file, shard by shard", async () => {
    const filename = await table.put(reached("shard-worker", "started"), { shards: [0] });
    expect(await get(`/files/${filename}`)).toEqual([
      200,
      {
        filename,
        shards: [
          {
            shard: 0,
            event_ingest_status: "done",
            shard_splitter_status: "done",
            shard_worker_status: "started",
            mysql_sender_status: "new",
            updated_at: expect.stringMatching(RFC_3339_UTC),
            lost_count: 0, // Beyond the example: how many workers were lost.
          },
        ],
      },
    ]);
  });

  test("7) the summary by stage and by shard", async () => {
    await table.clear();
    await table.put(reached("mysql-sender", "done"), { shards: [0, 1] });
    await table.put(reached("mysql-sender", "failed"), { shards: [1] });
    await table.put(reached("shard-worker", "started"), { shards: [0] });
    await table.put(reached("shard-worker", "failed"), { shards: [0] });
    await table.put(reached("shard-splitter", "new"), { shards: [1] });
    expect(await get("/metrics/summary")).toEqual([
      200,
      {
        total: 6,
        by_stage: {
          event_ingest: { new: 0, started: 0, done: 6, failed: 0 },
          shard_splitter: { new: 1, started: 0, done: 5, failed: 0 },
          shard_worker: { new: 1, started: 1, done: 3, failed: 1 },
          mysql_sender: { new: 3, started: 0, done: 2, failed: 1 },
        },
        by_shard: [
          { shard: 0, total: 3, done: 1, failed: 0 },
          { shard: 1, total: 3, done: 1, failed: 1 },
        ],
      },
    ]);
  });
});
