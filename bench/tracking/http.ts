/**
 * `POST /stages/shard-worker/done` beside a route that does one bare UPDATE of one row: the same server, keys, validation
 * and pool, so the difference is what tracking adds. The load comes from a process of its own.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { statement } from "../../src/kernel/statement.ts";
import { MoveBody, MoveReply } from "../../src/tracking/schemas.ts";
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
      return load({ url: server.url + path, key: server.key, filename, amount: REQUESTS });
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

/** Requests/s as seen by the load process. */
async function load(options: { url: string; key: string; filename: string; amount: number }): Promise<number> {
  const script = fileURLToPath(new URL("./load.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", script, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`the load process ended with ${code}`);
  return Number(output);
}
