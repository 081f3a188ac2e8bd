/** An empty database, for tests that migrate it themselves; dropped after the test. */
import { randomBytes } from "node:crypto";
import { inject, onTestFinished } from "vitest";
import { type Connection, openDb } from "../src/kernel/data/db.ts";
import { withDatabase } from "./connection.ts";

export async function emptyDatabase(): Promise<Connection> {
  const server = inject("postgres");
  const admin = openDb({ connection: server });
  const name = `millrace_test_${randomBytes(6).toString("hex")}`;
  await admin.exclusive((client) => client.query(`create database ${name}`));
  onTestFinished(async () => {
    await admin.exclusive((client) => client.query(`drop database ${name} with (force)`));
    await admin.close();
  });
  return withDatabase(server, name);
}
