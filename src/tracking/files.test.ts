/** The lists and totals of files. */
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";
import { newFilename, reached, trackingTable } from "../../test/tracking.ts";
import { QUEUE_STAGES, STAGES, STATUSES, type Status } from "./states.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const table = trackingTable(database);

interface Files {
  items: { filename: string; shards: number; stages: Record<string, Partial<Record<Status, number>>> }[];
  page: number;
  size: number;
  total: number;
}
const list = (query = "") => millrace.api.get<Files>(`/api/v1/pipeline/files${query}`);
const names = async (query: string) => (await list(query)).body.items.map(({ filename }) => filename).sort();

describe("the list of files", () => {
  beforeAll(async () => {
    await table.clear();
    await table.put(reached("event-ingest", "started"), { filename: "a-ingesting", shards: [0, 1] });
    await table.put(reached("shard-splitter", "failed"), { filename: "a-split-failed", shards: [0] });
    await table.put(reached("shard-worker", "started"), { filename: "b-working", shards: [0, 1, 2] });
    await table.put(reached("mysql-sender", "done"), { filename: "b%_done", shards: [0] });
    await millrace.api.post("/api/v1/pipeline/stages/shard-worker/done", { filename: "b-working", shard: 0 });
  });

  test("has the newest first, with the number of shards by stage and status", async () => {
    const { body } = await list();
    expect(body).toMatchObject({ page: 1, size: 20, total: 4 });
    expect(body.items.map(({ filename }) => filename)).toEqual([
      "b%_done",
      "b-working",
      "a-split-failed",
      "a-ingesting",
    ]);
    const time = expect.stringMatching(/Z$/);
    expect(body.items[1]).toEqual({
      filename: "b-working",
      created_at: time,
      updated_at: time,
      shards: 3,
      stages: {
        event_ingest: { done: 3 },
        shard_splitter: { done: 3 },
        shard_worker: { started: 2, done: 1 },
        mysql_sender: { new: 3 },
      },
    });
  });

  test.each([
    ["?status=failed", ["a-split-failed"]],
    ["?status=started", ["a-ingesting", "b-working"]],
    ["?status=done", ["a-split-failed", "b%_done", "b-working"]],
    ["?stage=shard-worker&status=done", ["b%_done", "b-working"]],
    ["?stage=mysql-sender&status=new", ["a-ingesting", "a-split-failed", "b-working"]],
    ["?stage=event-ingest&status=new", []],
    ["?stage=shard-worker", ["b-working"]],
    ["?stage=shard-splitter", ["a-split-failed"]],
    ["?q=a-", ["a-ingesting", "a-split-failed"]],
    ["?q=b%25_", ["b%_done"]],
    ["?q=%25", []],
    ["?q=", ["a-ingesting", "a-split-failed", "b%_done", "b-working"]],
    ["?q=b&status=done&stage=mysql-sender", ["b%_done"]],
  ])("narrowed by %s", async (query, expected) => {
    const answer = await list(query);
    expect(answer.status).toBe(200);
    expect(answer.body.items.map(({ filename }) => filename).sort()).toEqual(expected);
    expect(answer.body.total).toBe(expected.length);
  });

  test("is read in pages that neither repeat nor miss a file", async () => {
    const pages = await Promise.all([1, 2, 3].map((page) => list(`?size=2&page=${page}`)));
    expect(pages.map(({ body }) => [body.page, body.size, body.total, body.items.length])).toEqual([
      [1, 2, 4, 2],
      [2, 2, 4, 2],
      [3, 2, 4, 0],
    ]);
    expect(pages.flatMap(({ body }) => body.items.map(({ filename }) => filename)).sort()).toEqual(await names(""));
  });

  test.each([
    "page=0",
    "page=1.5",
    "size=1001",
    "size=-1",
    "status=paused",
    "stage=loader",
    `q=${"x".repeat(256)}`,
    "q=%00",
    "sort=name",
  ])("refuses %s with 400", async (query) => {
    expect(await list(`?${query}`)).toMatchObject({ status: 400, body: { code: expect.stringMatching(/^[A-Z_]+$/) } });
  });
});

describe("one file", () => {
  test("that is unknown is 404 with a sentence", async () => {
    const filename = newFilename();
    expect(await millrace.api.get(`/api/v1/pipeline/files/${filename}`)).toMatchObject({
      status: 404,
      body: { code: "FILE_NOT_FOUND", error: expect.stringContaining(filename) },
    });
  });

  test("lists its shards in order, with who holds them", async () => {
    const filename = await table.put(reached("shard-worker", "new"), { shards: [10, 9, 2] });
    await millrace.api.post("/api/v1/pipeline/stages/shard-worker/start", { filename, shard: 9, worker: "w" });
    const { body } = await millrace.api.get(`/api/v1/pipeline/files/${filename}`);
    expect(body).toMatchObject({ shards: [{ shard: 2 }, { shard: 9, worker: "w" }, { shard: 10 }] });
    expect(body["shards"]).toMatchObject({ 0: expect.not.objectContaining({ worker: expect.anything() }) });
  });
});

describe("the summary", () => {
  beforeEach(() => table.clear());

  const summary = async () => (await millrace.api.get("/api/v1/pipeline/metrics/summary")).body;

  /** The same, with the specification's own SQL. */
  async function countedByHand() {
    const columns = STAGES.map((stage) => `${stage.replace("-", "_")}_status`);
    const counts = columns.flatMap((column) =>
      STATUSES.map((status) => `count(*) filter (where ${column} = '${status}')::int as ${column}_${status}`),
    );
    const [all = {}] = await database.query<Record<string, number>>(
      `select count(*)::int as total, ${counts.join(", ")} from tracking.pipeline_tracking`,
    );
    const by_shard = await database.query(
      `select shard, count(*)::int as total, count(*) filter (where mysql_sender_status = 'done')::int as done,
              count(*) filter (where mysql_sender_status = 'failed')::int as failed
       from tracking.pipeline_tracking group by shard order by shard`,
    );
    const by_stage = Object.fromEntries(
      columns.map((column) => [
        column.replace("_status", ""),
        Object.fromEntries(STATUSES.map((status) => [status, all[`${column}_${status}`]])),
      ]),
    );
    return { total: all["total"], by_stage, by_shard };
  }

  test("of nothing is zero everywhere", async () => {
    const none = { new: 0, started: 0, done: 0, failed: 0 };
    expect(await summary()).toEqual({
      total: 0,
      by_stage: { event_ingest: none, shard_splitter: none, shard_worker: none, mysql_sender: none },
      by_shard: [],
    });
  });

  test("is exact after concurrent traffic of every kind", async () => {
    const post = (path: string, body: unknown) => millrace.api.post(`/api/v1/pipeline${path}`, body);
    const files = Array.from({ length: 12 }, newFilename);
    const shards = [0, 1, 2, 3, 4];
    await Promise.all(files.map((filename) => post("/files/register", { filename, shards })));
    await Promise.all(
      files.map((filename, i) => post(`/stages/event-ingest/${i % 6 === 5 ? "fail" : "done"}`, { filename })),
    );
    // All stages at once: some moves succeed, some are refused, and the totals must be exact.
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(
        QUEUE_STAGES.flatMap((stage) => [
          ...Array.from({ length: 4 }, () => claimAndFinish(stage, 3)),
          ...files.slice(0, 4).map((filename, i) => post(`/stages/${stage}/start`, { filename, shard: i })),
          ...files.slice(4, 8).map((filename, i) => post(`/stages/${stage}/fail`, { filename, shard: i })),
          ...files.slice(4, 6).map((filename, i) => post(`/stages/${stage}/retry`, { filename, shard: i })),
        ]),
      );
      expect(await summary()).toEqual(await countedByHand());
    }
    await database.query("delete from tracking.pipeline_tracking where filename = $1", [files[0]]);
    const last = await summary();
    expect(last).toEqual(await countedByHand());
    expect(last["total"]).toBe(55);

    async function claimAndFinish(stage: string, limit: number): Promise<void> {
      const { body } = await millrace.api.post<{ items: { filename: string; shard: number; fence: string }[] }>(
        `/api/v1/pipeline/queues/${stage}/claim`,
        { worker: "w", limit },
      );
      await Promise.all(
        body.items.map(({ filename, shard, fence }, i) =>
          post(`/stages/${stage}/${i === 2 ? "fail" : "done"}`, { filename, shard, fence }),
        ),
      );
    }
  });
});
