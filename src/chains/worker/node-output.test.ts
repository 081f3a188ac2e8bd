import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog } from "../../../test/log.ts";
import { until } from "../../../test/until.ts";
import type { Db } from "../../kernel/data/db.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import { addRun, hold } from "../run.fixture.ts";
import type { ClaimedNode } from "../store/live.ts";
import { createNodeOutput } from "./node-output.ts";

const database = useDatabase();
let held: ClaimedNode;
beforeEach(async () => {
  await database.query("truncate chains.live_node, chains.job_run_log");
  held = await hold(database, await addRun(database, { a: [] }), "a");
});

const lineOf = (line: string, of: ClaimedNode = held) => ({ ...of, level: "info", line });
const progressOf = (progress: number, note: string | null = null) => ({ ...held, progress, note });
const lines = async () =>
  (await database.query<{ line: string }>("select line from chains.job_run_log order by id")).map(({ line }) => line);
const progressRow = async () => {
  const [row] = await database.query<{ progress: number; note: string | null }>(
    "select progress::float8 as progress, progress_note as note from chains.job_run_node where run_id = $1",
    [held.run_id],
  );
  return row;
};

function outputTo(db: Db, log: ServiceLog = recordingLog()) {
  const hints: string[] = [];
  const progress = { changed: (runIds: Iterable<string>) => void hints.push(...runIds) };
  return { ...createNodeOutput({ db, progress, log }), hints };
}

/** Records the statements that are sent. */
function recording(): { db: Db; statements: string[] } {
  const statements: string[] = [];
  const rows: Db["rows"] = (statement, values) => (
    statements.push(statement.name), database.db.rows(statement, values)
  );
  return { db: { ...database.db, rows }, statements };
}

describe("the output of a node", () => {
  test("is written in order, in one statement each for lines and progress", async () => {
    const { db, statements } = recording();
    const output = outputTo(db);
    for (let n = 0; n < 1_000; n += 1) output.line(lineOf(`line ${n}`));
    for (let n = 0; n <= 10; n += 1) output.progress(progressOf(n / 10, `step ${n}`));
    await output.flush();
    expect(await lines()).toEqual(Array.from({ length: 1_000 }, (_, n) => `line ${n}`));
    expect(await progressRow()).toMatchObject({ progress: 1, note: "step 10" });
    expect(statements).toEqual(["chains.log.write", "chains.node.progress"]);
    expect(output.hints).toEqual([held.run_id]);
  });

  test("is written without a flush", async () => {
    const output = outputTo(database.db);
    output.line(lineOf("hello"));
    await until(async () => (await lines()).length === 1, "the line to be written");
  });

  test("is written only under the current fence", async () => {
    const output = outputTo(database.db);
    const old = { ...held, fence: String(BigInt(held.fence) - 1n) };
    output.line(lineOf("from a former holder", old));
    output.progress({ ...old, progress: 0.5, note: null });
    output.line(lineOf("from the holder"));
    await output.flush();
    expect(await lines()).toEqual(["from the holder"]);
    expect((await progressRow())?.progress).toBeNull();
  });

  test.each([
    ["NUL", "a\0b", "a\uFFFDb"],
    ["half a surrogate pair", "a\uD800b", "a\uFFFDb"],
    ["a pair that the limit would cut", `${"x".repeat(8_191)}😀`, `${"x".repeat(8_191)}\uFFFD`],
    ["more than a line may have", "y".repeat(9_000), "y".repeat(8_192)],
  ])("is stored if it contains %s, and so are other lines", async (_, text, stored) => {
    const log = recordingLog();
    const output = outputTo(database.db, log);
    output.line(lineOf("before"));
    output.line(lineOf(text));
    output.progress(progressOf(0.5, text));
    await output.flush();
    expect(await lines()).toEqual(["before", stored]);
    expect(await progressRow()).toMatchObject({ progress: 0.5, note: stored.slice(0, 500) });
    expect(log.lines).toEqual([]);
  });

  test("is dropped beyond the limit, which its log says, with one warning", async () => {
    const log = recordingLog();
    const output = outputTo(database.db, log);
    for (let n = 0; n < 20_003; n += 1) output.line(lineOf(`line ${n}`));
    await output.flush();
    expect(await lines()).toHaveLength(20_001);
    expect((await lines()).at(-1)).toBe("3 lines came too fast and were dropped here.");
    expect(log.lines).toMatchObject([
      { level: "warn", fields: { lines: 3 }, message: "log lines of chain nodes were dropped: they came too fast" },
    ]);
    output.line(lineOf("there is room again"));
    await output.flush();
    expect((await lines()).at(-1)).toBe("there is room again");
    expect(log.lines).toHaveLength(1);
  });

  test("does not fail the node if it cannot be written, and a warning is logged", async () => {
    const log = recordingLog();
    const broken = { ...database.db, rows: () => Promise.reject(new Error("no database")) };
    const output = outputTo(broken, log);
    output.line(lineOf("hello"));
    await output.flush();
    expect(log.lines).toMatchObject([{ level: "warn", message: "log lines of chain nodes were not written" }]);
  });
});

test("a flush waits for a write that is in progress", async () => {
  const output = outputTo(database.db);
  output.line(lineOf("hello"));
  void output.flush();
  await output.flush();
  expect(await lines()).toEqual(["hello"]);
});

test("output of a holder that is losing its lease is not written", async () => {
  const output = outputTo(database.db);
  const other = await database.db.dedicated("test");
  try {
    await other.query("begin");
    await other.query("update chains.live_node set fence = nextval('kernel.fence') where run_id = $1", [held.run_id]);
    output.line(lineOf("too late"));
    output.progress(progressOf(0.5));
    await output.flush();
    await other.query("commit");
  } finally {
    await other.end();
  }
  expect(await lines()).toEqual([]);
  expect((await progressRow())?.progress).toBeNull();
});
