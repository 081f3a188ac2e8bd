/**
 * The shared set-up of a test run: one Postgres with a migrated template database that each test file clones (the embedded
 * server unless TEST_DATABASE_URL is set), and one stopped cluster that tests copy to run their own server. The first
 * project that needs them creates them for all.
 */
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { type Connection, openDb } from "../src/kernel/data/db.ts";
import { migrate } from "../src/kernel/data/migrate.ts";
import { startEmbeddedPostgres } from "../src/kernel/embedded-postgres/index.ts";
import { withDatabase } from "./connection.ts";
import { runs } from "./projects.ts";
import { makeRunFolder } from "./run-folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The server's maintenance database. */
    postgres: Connection;
    template: string;
    /** A data directory whose cluster is stopped. */
    stoppedDataDir: string;
  }
}

export default async function setup({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  const run = vitest.getRootProject();
  if ("postgres" in run.getProvidedContext() || !runs(vitest, "isolated", "processes", "database")) return undefined;
  const folder = makeRunFolder();
  process.env["TMPDIR"] = folder; // The workers inherit it.
  const stoppedDataDir = join(folder, "stopped");
  await (await startEmbeddedPostgres({ dataDir: stoppedDataDir })).stop();

  const server = await startServer(stoppedDataDir, join(folder, "shared"));
  const template = `millrace_template_${process.pid}`;
  const admin = openDb({ connection: server.connection });
  await admin.exclusive((client) => client.query(`create database ${template}`));
  const db = openDb({ connection: withDatabase(server.connection, template) });
  await migrate(db);
  await db.close();
  run.provide("postgres", server.connection);
  run.provide("template", template);
  run.provide("stoppedDataDir", stoppedDataDir);
  return async () => {
    await admin.exclusive((client) => client.query(`drop database ${template} with (force)`));
    await admin.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
}

async function startServer(
  stoppedDataDir: string,
  dataDir: string,
): Promise<{ connection: Connection; stop(): Promise<void> }> {
  const given = process.env["TEST_DATABASE_URL"];
  if (given) return { connection: { connectionString: given }, stop: async () => {} };
  cpSync(stoppedDataDir, dataDir, { recursive: true });
  // No test crashes this server, so it need not survive a crash.
  const settings = { fsync: "off", full_page_writes: "off", max_connections: "200" };
  return startEmbeddedPostgres({ dataDir, settings });
}
