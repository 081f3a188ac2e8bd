/** Registering files, and moving whole files through event-ingest. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";
import { newFilename, reached, trackingTable } from "../../test/tracking.ts";
import { until } from "../../test/until.ts";
import { FILE_TRANSITIONS } from "./states.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const table = trackingTable(database);
const post = (path: string, body: unknown) => millrace.api.post(`/api/v1/pipeline${path}`, body);
const register = (filename: string, shards: number[]) => post("/files/register", { filename, shards });

describe("registering a file", () => {
  test("again changes nothing and says so", async () => {
    const filename = newFilename();
    await register(filename, [0, 1]);
    await post("/stages/event-ingest/done", { filename });
    const before = await table.row(filename);
    expect((await register(filename, [0, 1])).body).toEqual({ filename, shards: [0, 1], created: false });
    expect(await table.row(filename)).toEqual(before);
  });

  test("with further shards adds only those, and echoes the request", async () => {
    const filename = newFilename();
    await register(filename, [0]);
    await post("/stages/event-ingest/done", { filename });
    expect((await register(filename, [2, 0, 2])).body).toEqual({ filename, shards: [2, 0, 2], created: true });
    expect(await table.row(filename, 0)).toMatchObject({ event_ingest_status: "done" });
    expect(await table.row(filename, 2)).toMatchObject({ event_ingest_status: "started" });
  });

  test("from many callers at once inserts each shard once", async () => {
    const filename = newFilename();
    const answers = await Promise.all(Array.from({ length: 20 }, () => register(filename, [0, 1, 2])));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(answers.filter(({ body }) => body["created"])).toHaveLength(1);
    expect((await table.rows()).filter((row) => row.filename === filename)).toHaveLength(3);
  });

  test("takes up to 10,000 shards in one call", async () => {
    const shards = Array.from({ length: 10_001 }, (_, shard) => shard);
    const filename = newFilename();
    expect(await register(filename, shards)).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
    expect(await register(filename, shards.slice(1))).toMatchObject({ status: 200, body: { created: true } });
    const [row] = await database.query(
      "select count(*)::int as n from tracking.pipeline_tracking where filename = $1",
      [filename],
    );
    expect(row).toEqual({ n: 10_000 });
  });
});

describe("event-ingest of a whole file", () => {
  test.each([
    ["done", "started", "done"],
    ["fail", "started", "failed"],
    ["retry", "failed", "started"],
  ] as const)("%s moves all shards from `%s` to `%s`, and none when repeated", async (transition, from, to) => {
    const filename = await table.put(reached("event-ingest", from), { shards: [0, 1, 2] });
    expect((await post(`/stages/event-ingest/${transition}`, { filename })).body).toEqual({
      filename,
      updated_rows: 3,
    });
    expect(await table.row(filename, 2)).toMatchObject({ event_ingest_status: to });
    expect(await post(`/stages/event-ingest/${transition}`, { filename })).toMatchObject({
      status: 200,
      body: { updated_rows: 0 },
    });
  });

  test("done reaches the shards that were added later", async () => {
    const filename = newFilename();
    await register(filename, [0, 1]);
    await post("/stages/event-ingest/done", { filename });
    await register(filename, [2]);
    expect((await post("/stages/event-ingest/done", { filename })).body).toEqual({ filename, updated_rows: 1 });
  });

  test("fail and retry do not change shards that are done", async () => {
    const filename = await table.put(reached("event-ingest", "done"), { shards: [0] });
    await register(filename, [1]);
    expect((await post("/stages/event-ingest/fail", { filename, error: "disk full" })).body).toEqual({
      filename,
      updated_rows: 1,
    });
    expect(await table.row(filename, 0)).toMatchObject({ event_ingest_status: "done", last_error: null });
    expect(await table.row(filename, 1)).toMatchObject({ event_ingest_status: "failed", last_error: "disk full" });
    expect((await post("/stages/event-ingest/retry", { filename })).body).toEqual({ filename, updated_rows: 1 });
    expect(await table.row(filename, 1)).toMatchObject({ event_ingest_status: "started", last_error: null });
  });

  test("done is refused as long as a shard is failed, and changes nothing", async () => {
    const filename = await table.put(reached("event-ingest", "failed"), { shards: [0] });
    await register(filename, [1]);
    expect(await post("/stages/event-ingest/done", { filename })).toMatchObject({
      status: 409,
      body: { code: "FILE_WRONG_STATUS", details: { started: 1, done: 0, failed: 1 } },
    });
    expect(await table.row(filename, 1)).toMatchObject({ event_ingest_status: "started" });
  });

  test.each(["fail", "retry"])("%s is refused when all shards are done", async (transition) => {
    const filename = await table.put(reached("event-ingest", "done"));
    const answer = await post(`/stages/event-ingest/${transition}`, { filename });
    expect(answer).toMatchObject({
      status: 409,
      body: { code: "FILE_WRONG_STATUS", error: expect.stringContaining("`done`") },
    });
  });

  test.each(FILE_TRANSITIONS)("%s of an unknown file is 404", async (transition) => {
    const answer = await post(`/stages/event-ingest/${transition}`, { filename: newFilename() });
    expect(answer).toMatchObject({ status: 404, body: { code: "FILE_NOT_FOUND" } });
  });

  test("cannot be started: registering does that", async () => {
    expect(await post("/stages/event-ingest/start", { filename: "f" })).toMatchObject({
      status: 400,
      body: { code: "TRANSITION_UNKNOWN", error: expect.stringContaining("Registering a file starts it") },
    });
  });

  test("done that waited for a concurrent retry also moves the retried shards", async () => {
    const filename = await table.put(reached("event-ingest", "failed"), { shards: [0, 1] });
    let done: ReturnType<typeof post> | undefined;
    await database.db.exclusive(async (client) => {
      await client.query("begin");
      await client.query("update tracking.pipeline_tracking set event_ingest_status = 'started' where filename = $1", [
        filename,
      ]);
      done = post("/stages/event-ingest/done", { filename });
      await until(async () => {
        const waiting = await database.query(
          "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
        );
        return waiting.length > 0;
      }, "done to wait for the retry");
      await client.query("commit");
    });
    expect(await done).toMatchObject({ status: 200, body: { filename, updated_rows: 2 } });
    expect(await table.row(filename, 1)).toMatchObject({ event_ingest_status: "done" });
  });

  test("concurrent done and fail have one winner, for all shards", async () => {
    for (let round = 0; round < 10; round += 1) {
      const filename = await table.put(reached("event-ingest", "started"), { shards: [0, 1, 2, 3] });
      const answers = await Promise.all(
        ["done", "fail"].map((move) => post(`/stages/event-ingest/${move}`, { filename })),
      );
      expect(answers.filter(({ body }) => body["updated_rows"] === 4)).toHaveLength(1);
      const rows = (await table.rows()).filter((row) => row.filename === filename);
      expect(new Set(rows.map(({ event_ingest_status }) => event_ingest_status)).size).toBe(1);
    }
  });
});
