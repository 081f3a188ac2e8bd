/** Databases with a past: so many shards that went through all stages long ago. */
import type { Db } from "../../src/kernel/data/db.ts";
import { openDb } from "../../src/kernel/data/db.ts";
import { migrate } from "../../src/kernel/data/migrate.ts";
import { withDatabase } from "../../test/connection.ts";
import type { BenchPostgres } from "../postgres.ts";

const SHARDS = 100;
const CHUNK_FILES = 5_000;

export interface History {
  rows: number;
  db: Db;
}

export async function createHistory(
  postgres: BenchPostgres,
  rows: number,
  progress: (line: string) => void,
): Promise<History> {
  const database = `history_${rows}`;
  await postgres.sql(`create database ${database}`);
  const db = openDb({ connection: withDatabase(postgres.connection, database), poolSize: 10 });
  await migrate(db);
  await db.exclusive(async (client) => {
    // Loading ten million rows needs neither foreign keys nor the counting triggers; the counters are set afterwards.
    await client.query("set session_replication_role = replica");
    const files = rows / SHARDS;
    for (let first = 0; first < files; first += CHUNK_FILES) {
      const last = Math.min(files, first + CHUNK_FILES) - 1;
      await client.query(`
        with file as (
          insert into tracking.pipeline_file (filename, created_at)
          select 'history-' || to_char(n, 'FM00000000'), now() - interval '30 days' + n * interval '1 second'
          from generate_series(${first}, ${last}) n returning *
        )
        insert into tracking.pipeline_tracking
          (filename, shard, event_ingest_status, shard_splitter_status, shard_worker_status, mysql_sender_status, created_at, updated_at)
        select filename, shard, 'done', 'done', 'done', 'done', created_at, created_at from file, generate_series(0, ${SHARDS - 1}) shard`);
      progress(`history of ${rows.toLocaleString("en")} rows: ${Math.round(((last + 1) / files) * 100)}%`);
    }
    await client.query(`insert into tracking.status_tally values (0, 'done', 'done', 'done', 'done', ${rows})`);
    await client.query(`
      insert into tracking.shard_tally select 0, shard, ${files}, ${files}, 0 from generate_series(0, ${SHARDS - 1}) shard`);
    await client.query("vacuum analyze");
    await client.query("checkpoint");
  });
  return { rows, db };
}
