/** A separate database for a test file, cloned from the migrated template and dropped afterwards. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, inject } from "vitest";
import { type Connection, type Db, openDb } from "../src/kernel/data/db.ts";
import { statement } from "../src/kernel/data/statement.ts";
import { withDatabase } from "./connection.ts";

export interface TestDatabase {
  db: Db;
  connection: Connection;
  /** For processes under test. */
  url: string;
  /** Runs any SQL, to set up and to check. */
  query<Row>(text: string, values?: unknown[]): Promise<Row[]>;
}

/** Call it at the top of a test file; the fields are set once the tests run. */
export function useDatabase(): TestDatabase {
  const database = {} as TestDatabase;
  const name = `millrace_test_${randomBytes(6).toString("hex")}`;
  const server = inject("postgres");
  const admin = openDb({ connection: server });

  beforeAll(async () => {
    // Copying the files of the template takes half the time of writing its pages to the WAL.
    const how = `template ${inject("template")} strategy file_copy`;
    await admin.exclusive((client) => client.query(`create database ${name} ${how}`));
    const connection = withDatabase(server, name);
    const db = openDb({ connection, applicationName: "test" });
    let queries = 0;
    Object.assign(database, {
      db,
      connection,
      url: toUrl(connection),
      query: (text: string, values: unknown[] = []) => {
        queries += 1;
        return db.rows(statement(`test.${name}.${queries}`, text), values);
      },
    });
  });
  afterAll(async () => {
    await database.db.close();
    await admin.exclusive((client) => client.query(`drop database ${name} with (force)`));
    await admin.close();
  });
  return database;
}

function toUrl(connection: Connection): string {
  if ("connectionString" in connection) return connection.connectionString;
  const { host, port, user, password, database } = connection;
  const credentials = password === undefined ? user : `${user}:${encodeURIComponent(password)}`;
  return `postgres://${credentials}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`;
}
