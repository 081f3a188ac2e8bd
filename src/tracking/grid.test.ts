/** What pages show of the whole pipeline: queues of all stages, files by shards in windows, shards of one file. */
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";
import { reached, trackingTable } from "../../test/tracking.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const table = trackingTable(database);
const API = "/api/v1/pipeline";

interface Grid {
  shards: number[];
  next_shard: number | null;
  items: { filename: string; cells: string }[];
  next: string | null;
}
const grid = async (query = "") => (await millrace.api.get<Grid>(`${API}/grid${query}`)).body;
const rows = ({ items }: Grid) => items.map(({ filename, cells }) => `${filename} ${cells}`);

beforeEach(() => table.clear());

describe("the grid", () => {
  test("has a character for where each shard is, and a dot where a file has no such shard", async () => {
    await table.put(reached("event-ingest", "started"), { filename: "1", shards: [0] });
    await table.put(reached("event-ingest", "failed"), { filename: "2", shards: [0] });
    await table.put(reached("shard-splitter", "new"), { filename: "3", shards: [0] });
    await table.put(reached("shard-worker", "started"), { filename: "4", shards: [0, 7] });
    await table.put(["done", "done", "started", "failed"], { filename: "5", shards: [7] });
    await table.put(reached("mysql-sender", "new"), { filename: "6", shards: [0] });
    await table.put(reached("mysql-sender", "done"), { filename: "7", shards: [0, 3, 7] });
    const all = await grid();
    expect(all.shards).toEqual([0, 3, 7]);
    expect(rows(all)).toEqual(["7 ***", "6 d..", "5 ..D", "4 3.3", "3 b..", "2 A..", "1 1.."]);
    expect([all.next, all.next_shard]).toEqual([null, null]);
    expect(rows(await grid("?status=failed"))).toEqual(["5 ..D", "2 A.."]);
    expect(rows(await grid("?stage=shard-worker"))).toEqual(["5 ..D", "4 3.3"]);
  });

  test("is read in windows of files and of shards", async () => {
    for (const filename of ["a", "b", "c"])
      await table.put(reached("mysql-sender", "done"), { filename, shards: [2, 4, 6, 8] });
    const first = await grid("?limit=2&shards=3");
    expect([first.shards, first.next_shard, first.next]).toEqual([[2, 4, 6], 8, "b"]);
    expect(rows(first)).toEqual(["c ***", "b ***"]);
    const below = await grid("?limit=2&shards=3&after=b");
    expect([rows(below), below.next]).toEqual([["a ***"], null]);
    const right = await grid("?shards=3&from=8");
    expect([right.shards, right.next_shard, rows(right)]).toEqual([[8], null, ["c *", "b *", "a *"]]);
    expect(rows(await grid("?after=no-such-file"))).toEqual([]);
  });

  test("neither repeats nor misses a file of several that were registered at the same time", async () => {
    await database.query(
      `insert into tracking.pipeline_file (filename, created_at) select 'same-' || n, '2026-01-01' from generate_series(1, 9) n`,
    );
    const found: string[] = [];
    for (let after = ""; ; ) {
      const page: Grid = await grid(`?limit=2${after && `&after=${after}`}`);
      found.push(...page.items.map(({ filename }) => filename));
      if (page.next === null) break;
      after = page.next;
    }
    expect(found).toEqual(Array.from({ length: 9 }, (_, n) => `same-${n + 1}`));
  });
});

describe("the queues of all stages", () => {
  test("have what is ready, started, leased, done and failed, and since when the oldest waits", async () => {
    await table.put(reached("event-ingest", "started"), { filename: "a", shards: [0, 1] });
    await table.put(reached("shard-splitter", "new"), { filename: "b", shards: [0, 1, 2] });
    await table.put(reached("shard-worker", "failed"), { filename: "c" });
    await table.put(reached("mysql-sender", "started"), { filename: "d" });
    await database.query(
      "update tracking.pipeline_tracking set created_at = '2026-01-01' where filename = 'b' and shard = 2",
    );
    const claimed = await millrace.api.post<{ items: { shard: number }[] }>(`${API}/queues/shard-splitter/claim`, {
      worker: "w",
    });
    expect(claimed.body.items[0]?.shard).toBe(2);
    const { body } = await millrace.api.get<{ stages: Record<string, unknown>[] }>(`${API}/queues`);
    const none = { ready: 0, started: 0, done: 0, failed: 0, leased: 0, lease_expired: 0, started_long: 0 };
    expect(body.stages).toEqual([
      { ...none, stage: "event-ingest", started: 2, done: 5 },
      {
        ...none,
        stage: "shard-splitter",
        ready: 2,
        started: 1,
        leased: 1,
        done: 2,
        oldest_ready_at: expect.stringMatching(/^20.*Z$/),
      },
      { ...none, stage: "shard-worker", failed: 1, done: 1 },
      { ...none, stage: "mysql-sender", started: 1 },
    ]);
  });
});

describe("the shards of a file", () => {
  test("come in pages by number, also those with a status in some stage only", async () => {
    await table.put(reached("shard-worker", "new"), { filename: "a", shards: [1, 5, 9] });
    await millrace.api.post(`${API}/stages/shard-worker/fail`, { filename: "a", shard: 5, error: "no table" });
    const of = async (query: string) =>
      (
        await millrace.api.get<{ items: { shard: number; last_error?: string }[]; next: number | null }>(
          `${API}/files/a/shards${query}`,
        )
      ).body;
    expect(await of("?limit=2")).toMatchObject({
      items: [{ shard: 1 }, { shard: 5, last_error: "no table" }],
      next: 9,
    });
    expect(await of("?from=9")).toMatchObject({ items: [{ shard: 9, mysql_sender_status: "new" }], next: null });
    expect((await of("?status=failed")).items.map(({ shard }) => shard)).toEqual([5]);
    expect(await millrace.api.get(`${API}/files/none/shards`)).toMatchObject({
      status: 404,
      body: { code: "FILE_NOT_FOUND" },
    });
    expect((await millrace.api.get(`${API}/files/a/shards?from=10`)).body).toMatchObject({ items: [], next: null });
  });
});
