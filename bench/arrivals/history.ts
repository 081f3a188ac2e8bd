/** A database with a past: published models with their dependencies, and arrivals of long ago. */
import { type Db, openDb } from "../../src/kernel/data/db.ts";
import { migrate } from "../../src/kernel/data/migrate.ts";
import { withDatabase } from "../../test/connection.ts";
import type { BenchPostgres } from "../postgres.ts";

export interface Size {
  models: number;
  dependenciesEach: number;
  arrivals: number;
}

/** How many statements were sent, by name. */
export type Sent = Map<string, number>;

export interface Site {
  db: Db;
  sent: Sent;
}

/** Every model waits for a table of its own, `IDLE-<n>`, which never arrives, and for tables that it shares with others. */
export async function createSite({ sql, connection }: BenchPostgres, name: string, size: Size): Promise<Site> {
  await sql(`create database ${name}`);
  const sent: Sent = new Map();
  const db = openDb({
    connection: withDatabase(connection, name),
    poolSize: 20,
    onStatement: (statement) => void sent.set(statement, (sent.get(statement) ?? 0) + 1),
  });
  await migrate(db);
  await db.exclusive(async (client) => {
    await client.query(
      `insert into arrivals.metrics_model (model_id, name, state, engine, sql, time_zone, rerun, timeout_seconds)
       select 'idle-' || n, 'idle', 1, 'duckdb', 'select 1', 'UTC', 'auto', 60 from generate_series(1, $1::int) n`,
      [size.models],
    );
    await client.query(
      `insert into arrivals.metrics_model_dependency (model_id, dependency_table_name)
       select 'idle-' || n, case k when 1 then 'IDLE-' || n else 'SHARED-' || (n * 7 + k) % $1::int end
       from generate_series(1, $1::int) n, generate_series(1, $2::int) k on conflict do nothing`,
      [size.models, size.dependenciesEach],
    );
    await client.query(
      `insert into arrivals.metrics_etl_log (table_name, op_time)
       select 'SHARED-' || n % 1000, 'past-' || n / 1000 from generate_series(1, $1::int) n`,
      [size.arrivals],
    );
    await client.query("create schema bench");
    await client.query(
      `create table bench.arrival (table_name text, op_time text, arrival_time timestamptz, primary key (table_name, op_time))`,
    );
    await client.query(
      "insert into bench.arrival select table_name, op_time, arrival_time from arrivals.metrics_etl_log",
    );
    await client.query("vacuum analyze");
  });
  return { db, sent };
}
