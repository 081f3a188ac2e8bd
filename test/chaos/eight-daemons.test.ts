/** Many daemons on one queue, through two servers: each shard goes to exactly one of them. */
import { expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { startServer } from "../server.ts";
import { newFilename } from "../tracking.ts";
import { until } from "../until.ts";
import { startChild } from "./child.ts";

const DAEMONS = 8;
const BATCH = 100;
const [FILES, SHARDS] = process.env["MILLRACE_TEST_LONG"] ? [4, 5_000] : [2, 2_500];
const CELLS = FILES * SHARDS;

const database = useDatabase();

interface Line {
  started?: [filename: string, shard: number, fence: string][];
  done?: number;
}

test(`${DAEMONS} daemons start each of ${CELLS} shards exactly once`, async () => {
  await recordStarts();
  const [one, two] = await Promise.all([startServer({ database }), startServer({ database })]);
  const daemons = Array.from({ length: DAEMONS }, (_, n) =>
    startChild<Line>("daemon.js", [`daemon ${n}`, String(BATCH)], n % 2 === 0 ? one : two),
  );
  await Promise.all(daemons.map((daemon) => daemon.next())); // They wait before there is any work.
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
  for (let file = 0; file < FILES; file += 1) {
    const filename = newFilename();
    await one.api.post("/api/v1/pipeline/files/register", { filename, shards });
    const { body } = await one.api.post("/api/v1/pipeline/stages/event-ingest/done", { filename });
    expect(body).toMatchObject({ updated_rows: SHARDS });
  }

  const output = () => daemons.flatMap((daemon) => daemon.output);
  const finished = () => output().reduce((sum, { done = 0 }) => sum + done, 0);
  await until(() => finished() >= CELLS, "all shards to be done");
  expect(await Promise.all(daemons.map((daemon) => daemon.finish()))).toEqual(daemons.map(() => 0));

  const inLogs = output().flatMap(({ started = [] }) => started);
  expect(inLogs).toHaveLength(CELLS);
  expect(new Set(inLogs.map(([filename, shard]) => `${filename}/${shard}`)).size).toBe(CELLS);
  expect(new Set(inLogs.map(([, , fence]) => fence)).size).toBe(CELLS);
  expect(daemons.filter(({ output: lines }) => lines.some(({ started }) => started))).toHaveLength(DAEMONS);
  expect(finished()).toBe(CELLS);

  expect(await database.query("select count(*)::int as starts, count(distinct cell)::int as cells from start")).toEqual(
    [{ starts: CELLS, cells: CELLS }],
  );
  const { body: summary } = await two.api.get("/api/v1/pipeline/metrics/summary");
  expect(summary).toMatchObject({ by_stage: { shard_splitter: { new: 0, started: 0, done: CELLS, failed: 0 } } });
  expect(await Promise.all([one.stop(), two.stop()])).toEqual([0, 0]);
});

/** Records every start in the database, independently of the daemons. */
async function recordStarts(): Promise<void> {
  await database.query("create table start (cell text not null)");
  await database.query(`create function note_start() returns trigger language plpgsql as $$
    begin
      insert into start select filename || '/' || shard from new_rows where shard_splitter_status = 'started';
      return null;
    end $$`);
  await database.query(`create trigger note_start after update on tracking.pipeline_tracking
    referencing new table as new_rows for each statement execute function note_start()`);
}
