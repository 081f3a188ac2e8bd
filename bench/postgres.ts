/** The Postgres that a benchmark runs on: our embedded one with its durable settings, or BENCH_DATABASE_URL. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Connection, type Db, openDb } from "../src/kernel/data/db.ts";
import { migrate } from "../src/kernel/data/migrate.ts";
import { startEmbeddedPostgres } from "../src/kernel/embedded-postgres/index.ts";

export interface BenchPostgres {
  db: Db;
  connection: Connection;
  /** Any SQL, one statement after the other. */
  sql(...texts: string[]): Promise<void>;
  stop(): Promise<void>;
}

/** Starts it for the time of `work`. */
export async function withPostgres(work: (postgres: BenchPostgres) => Promise<void>): Promise<void> {
  const postgres = await startPostgres();
  try {
    await work(postgres);
  } finally {
    await postgres.stop();
  }
}

async function startPostgres(): Promise<BenchPostgres> {
  const { connection, stop } = await server();
  const db = openDb({ connection, poolSize: 20, applicationName: "bench" });
  await migrate(db);
  return {
    db,
    connection,
    async sql(...texts) {
      await db.exclusive(async (client) => {
        for (const text of texts) await client.query(text);
      });
    },
    async stop() {
      await db.close();
      await stop();
    },
  };
}

async function server(): Promise<{ connection: Connection; stop(): Promise<void> }> {
  const given = process.env["BENCH_DATABASE_URL"];
  if (given) return { connection: { connectionString: given }, stop: async () => {} };
  const dataDir = await mkdtemp(join(tmpdir(), "millrace-bench-"));
  const postgres = await startEmbeddedPostgres({ dataDir });
  return {
    connection: postgres.connection,
    async stop() {
      await postgres.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
