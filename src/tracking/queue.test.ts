/** Listing queues without claiming. */
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";
import { reached, trackingTable } from "../../test/tracking.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const table = trackingTable(database);
const list = (query: string) =>
  millrace.api.get<{ items: { filename: string; shard: number }[] }>(`/api/v1/pipeline/queues/shard-worker${query}`);
const shards = async (query: string) => (await list(query)).body.items.map(({ shard }) => shard);

beforeEach(() => table.clear());

describe("a queue", () => {
  test("lists the oldest first, then by file and shard", async () => {
    await table.put(reached("shard-worker", "new"), { filename: "b", shards: [2, 1] });
    await table.put(reached("shard-worker", "new"), { filename: "a", shards: [0] });
    const { body } = await list("");
    expect(body.items.map(({ filename, shard }) => `${filename}/${shard}`)).toEqual(["b/1", "b/2", "a/0"]);
  });

  test("is read in pages of 100, or as many as asked for", async () => {
    await table.put(reached("shard-worker", "new"), { shards: Array.from({ length: 250 }, (_, i) => i) });
    expect((await shards("")).length).toBe(100);
    expect(await shards("?limit=3&offset=5")).toEqual([5, 6, 7]);
    expect((await shards("?limit=1000")).length).toBe(250);
    expect(await shards("?offset=250")).toEqual([]);
  });

  test.each([
    "limit=0",
    "limit=1001",
    "limit=x",
    "limit=",
    "offset=-1",
    "offset=1e9",
    "limit=1&limit=2",
    "updated_after=yesterday",
    "order=desc",
  ])("refuses %s with 400", async (query) => {
    expect(await list(`?${query}`)).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
  });

  test.each(["event-ingest", "nothing"])("does not exist for %s", async (stage) => {
    expect(await millrace.api.get(`/api/v1/pipeline/queues/${stage}`)).toMatchObject({
      status: 400,
      body: { code: "STAGE_UNKNOWN" },
    });
  });

  test("can be filtered by `updated_after`, in any time zone", async () => {
    const filename = await table.put(reached("shard-worker", "new"), { shards: [0, 1] });
    await database.query(
      `update tracking.pipeline_tracking set updated_at = case shard when 0 then timestamptz '2025-01-01T00:00:00Z'
         else timestamptz '2025-01-01T00:00:01Z' end where filename = $1`,
      [filename],
    );
    expect(await shards("?updated_after=2024-12-31T23:59:59Z")).toEqual([0, 1]);
    expect(await shards("?updated_after=2025-01-01T00:00:00Z")).toEqual([1]);
    expect(await shards("?updated_after=2025-01-01T03:00:00%2B03:00")).toEqual([1]);
    expect(await shards("?updated_after=2025-01-01T03:00:00+03:00")).toEqual([1]); // An unencoded plus arrives as a space.
    expect(await shards("?updated_after=2025-01-01T00:00:00.999Z")).toEqual([1]);
    expect(await shards("?updated_after=2025-01-01T00:00:01Z")).toEqual([]);
  });
});
