/**
 * One Postgres for the whole test run, with a migrated template database that each test file clones. It is our own
 * embedded server unless TEST_DATABASE_URL names another.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { buildIfStale } from "../scripts/build-if-stale.js";
import { type Connection, openDb } from "../src/kernel/data/db.ts";
import { migrate } from "../src/kernel/data/migrate.ts";
import { startEmbeddedPostgres } from "../src/kernel/embedded-postgres/index.ts";
import { withDatabase } from "./connection.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The server's maintenance database. */
    postgres: Connection;
    template: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  buildIfStale(); // Tests that start real processes run the build.
  const server = await startServer();
  const template = `millrace_template_${process.pid}`;
  const admin = openDb({ connection: server.connection });
  await admin.exclusive((client) => client.query(`create database ${template}`));
  const db = openDb({ connection: withDatabase(server.connection, template) });
  await migrate(db);
  await db.close();
  project.provide("postgres", server.connection);
  project.provide("template", template);
  return async () => {
    await admin.exclusive((client) => client.query(`drop database ${template} with (force)`));
    await admin.close();
    await server.stop();
  };
}

async function startServer(): Promise<{ connection: Connection; stop(): Promise<void> }> {
  const given = process.env["TEST_DATABASE_URL"];
  if (given) return { connection: { connectionString: given }, stop: async () => {} };
  const dataDir = await mkdtemp(join(tmpdir(), "millrace-test-"));
  const postgres = await startEmbeddedPostgres({ dataDir, settings: { fsync: "off", max_connections: "200" } });
  return {
    connection: postgres.connection,
    async stop() {
      await postgres.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
