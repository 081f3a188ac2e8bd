/** Which file names and shards are accepted, over HTTP, and that an accepted name comes back as it was sent. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const register = (filename: unknown, shards: unknown) =>
  millrace.api.post("/api/v1/pipeline/files/register", { filename, shards });

describe("a file name", () => {
  test.each([
    ["of one character", "x"],
    ["of 255 characters", "x".repeat(255)],
    ["of 255 characters outside the basic plane", "😀".repeat(255)],
    ["with spaces", " two  words "],
    ["with percent signs", "100%25.txt"],
    ["with quotes", `it's "quoted" \`so\``],
    ["with a backslash", "a\\b"],
    ["with SQL", "'; drop table tracking.pipeline_tracking; --"],
    ["with a question mark and a hash", "a?b=c&d#e"],
    ["with letters of many scripts", "файл-文件-ملف-é-é"],
    ["of three dots", "..."],
    ["that begins with a dot", ".hidden"],
    ["that is a placeholder", ":filename"],
    ["that is a word of the API", "register"],
  ])("%s is accepted and comes back as it was sent", async (_what, filename) => {
    expect(await register(filename, [0])).toMatchObject({ status: 200, body: { filename, created: true } });
    expect(await millrace.api.post("/api/v1/pipeline/stages/event-ingest/done", { filename })).toMatchObject({
      status: 200,
      body: { updated_rows: 1 },
    });
    const read = await millrace.api.get(`/api/v1/pipeline/files/${encodeURIComponent(filename)}`);
    expect(read).toMatchObject({
      status: 200,
      body: { filename, shards: [{ shard: 0, event_ingest_status: "done" }] },
    });
    const listed = await millrace.api.get(`/api/v1/pipeline/files?q=${encodeURIComponent(filename)}`);
    expect(listed).toMatchObject({ body: { items: [{ filename }] } });
  });

  test.each([
    ["that is empty", ""],
    ["of 256 characters", "x".repeat(256)],
    ["with a slash", "a/b"],
    ["with a line break", "a\nb"],
    ["with a tab", "a\tb"],
    ["with a NUL", "a\0b"],
    ["with a delete character", "a\u007fb"],
    ["with a C1 control character", "a\u0085b"],
    ["with an unpaired surrogate", "a\ud800b"],
    ["that is a dot", "."],
    ["that is two dots", ".."],
    ["that is a number", 20250101000000],
    ["that is null", null],
    ["that is a list", ["x"]],
    ["that is missing", undefined],
  ])("%s is refused with a sentence", async (_what, filename) => {
    expect(await register(filename, [0])).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/^[A-Z].+\.$/s) },
    });
  });

  test.each(["%00", "a%2Fb", "%2E", "x".repeat(256), "%FF", "%", "a%0Ab"])(
    "in the path as %s is refused",
    async (segment) => {
      const { status, body } = await millrace.api.get(`/api/v1/pipeline/files/${segment}`);
      expect(status, JSON.stringify(body)).toBe(400);
    },
  );
});

describe("a shard", () => {
  test.each([0, 1, 2_147_483_647])("%d is accepted", async (shard) => {
    expect(await register("shards", [shard])).toMatchObject({ status: 200 });
    expect(
      await millrace.api.post("/api/v1/pipeline/stages/shard-worker/fail", { filename: "shards", shard }),
    ).toMatchObject({ status: 200 });
  });

  test.each([-1, 2_147_483_648, 1.5, 1e300, "0", true, null, [0], {}])(
    "%j is refused with a sentence",
    async (shard) => {
      const refused = { status: 400, body: { code: "VALIDATION_FAILED", error: expect.stringContaining("shard") } };
      expect(await register("shards", [shard])).toMatchObject(refused);
      expect(
        await millrace.api.post("/api/v1/pipeline/stages/shard-worker/fail", { filename: "shards", shard }),
      ).toMatchObject(refused);
    },
  );

  test.each([
    ["no list", 0],
    ["an empty list", []],
    ["null", null],
    ["nothing", undefined],
  ])("is needed: %s is refused", async (_what, shards) => {
    expect(await register("shards", shards)).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
  });
});
