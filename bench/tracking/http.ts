/**
 * `POST /stages/shard-worker/done` beside a route that does one bare UPDATE of one row: the same server, keys, validation
 * and pool, so the difference is what tracking adds. The load comes from a process of its own.
 */
import { statement } from "../../src/kernel/data/statement.ts";
import { MoveBody, MoveReply } from "../../src/tracking/schemas.ts";
import { httpLoad } from "../http-load.ts";
import type { Contender } from "../measure.ts";
import type { BenchPostgres } from "../postgres.ts";
import { serveTracking } from "./server.ts";

const REQUESTS = 20_000;

const BARE_UPDATE = statement(
  "bench.bare_update",
  "update bench_cell set status = 'done', updated_at = now() where filename = $1 and shard = $2",
);

export async function httpContenders({
  db,
  sql,
}: BenchPostgres): Promise<{ contenders: Contender[]; stop(): Promise<void> }> {
  await sql(
    "create table bench_cell (filename text, shard int, status text not null, updated_at timestamptz, primary key (filename, shard))",
  );
  const server = await serveTracking(db, (http) => {
    http.post(
      "/bare/done",
      { config: { scope: "pipeline:write" }, schema: { body: MoveBody, response: { 200: MoveReply } } },
      async ({ body: { filename = "", shard = 0 } }) => {
        await db.rows(BARE_UPDATE, [filename, shard]);
        return { filename, shard, stage: "bare", status: "done" as const };
      },
    );
  });

  let round = 0;
  const contender = (name: string, path: string, prepare: (filename: string) => string[]): Contender => ({
    name,
    async round() {
      round += 1;
      const filename = `http-${round}`;
      await sql(...prepare(filename));
      const body = `{"filename":"${filename}","shard":{n}}`;
      return httpLoad({ url: server.url + path, key: server.key, body, amount: REQUESTS });
    },
  });
  const shards = `generate_series(0, ${REQUESTS - 1}) shard`;
  return {
    contenders: [
      contender("Millrace", "/api/v1/pipeline/stages/shard-worker/done", (filename) => [
        `insert into tracking.pipeline_file (filename) values ('${filename}')`,
        `insert into tracking.pipeline_tracking (filename, shard, event_ingest_status, shard_splitter_status, shard_worker_status)
         select '${filename}', shard, 'done', 'done', 'started' from ${shards}`,
        "vacuum analyze tracking.pipeline_tracking",
      ]),
      contender("bare UPDATE of one row", "/bare/done", (filename) => [
        `insert into bench_cell select '${filename}', shard, 'started', now() from ${shards}`,
        "vacuum analyze bench_cell",
      ]),
    ],
    stop: server.stop,
  };
}
