/**
 * Migrates the schema to the version of this build: the files of `sql/` in the order of their numbers, each in its own
 * transaction, forward only. Safe to run from many processes at once; refuses a schema newer than the build.
 *
 * A file that adds indexes to tables with history has only `create index concurrently`, each behind its
 * `drop index concurrently if exists`: processes of the version before write to those tables while it runs. Its statements are
 * executed one by one, and all again if one of them failed, since an index that was left unfinished is of no use.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { OperatorError } from "../errors.ts";
import { PACKAGE_ROOT } from "../package-root.ts";
import type { Db } from "./db.ts";

const MIGRATIONS_DIR = join(PACKAGE_ROOT, "sql/");

const POSTGRES_VERSION_MIN = 15;
const FILE_NAME = /^(\d{6})_([a-z0-9_]+)\.sql$/;
const ADVISORY_LOCK = 7_400_001; // Any number that only Millrace uses.

interface Migration {
  version: number;
  name: string;
  sql: string;
  checksum: string;
}

export interface MigrationReport {
  /** The names of the migrations applied now. */
  applied: string[];
  version: number;
}

export async function migrate(db: Db, dir: string = MIGRATIONS_DIR): Promise<MigrationReport> {
  const migrations = await readMigrations(dir);
  return db.exclusive(async (client) => {
    await refuseOldPostgres(client);
    await lock(client);
    await client.query(
      `create schema if not exists kernel;
       create table if not exists kernel.schema_migration (
         version integer primary key, name text not null, checksum text not null,
         applied_at timestamptz not null default now())`,
    );
    const { rows } = await client.query<{ version: number; name: string; checksum: string }>(
      "select version, name, checksum from kernel.schema_migration order by version",
    );
    refuseForeignSchema(rows, migrations);
    const applied: string[] = [];
    for (const migration of migrations.slice(rows.length)) {
      await apply(client, migration);
      applied.push(migration.name);
    }
    return { applied, version: migrations.at(-1)?.version ?? 0 };
  });
}

const LOCK_POLL_MS = 100;

/** Asked for again and again: a statement that waits has a snapshot, and an index that is built concurrently waits for those. */
async function lock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ mine: boolean }>("select pg_try_advisory_lock($1) as mine", [ADVISORY_LOCK]);
    if (rows[0]?.mine) return;
    await sleep(LOCK_POLL_MS);
  }
}

/** The schema version of this build. */
export async function latestVersion(dir: string = MIGRATIONS_DIR): Promise<number> {
  return (await readMigrations(dir)).at(-1)?.version ?? 0;
}

async function readMigrations(dir: string): Promise<Migration[]> {
  const files = (await readdir(dir)).filter((file) => file.endsWith(".sql")).sort();
  return Promise.all(
    files.map(async (file, index) => {
      const [, number, name] = FILE_NAME.exec(file) ?? [];
      if (Number(number) !== index + 1 || !name) {
        throw new Error(`${file} does not continue the numbering of ${dir}: expected number ${index + 1}`);
      }
      const sql = await readFile(`${dir}/${file}`, "utf8");
      return { version: index + 1, name, sql, checksum: createHash("sha256").update(sql).digest("hex") };
    }),
  );
}

async function refuseOldPostgres(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ number: string; version: string }>(
    "select current_setting('server_version_num') as number, current_setting('server_version') as version",
  );
  if (Number(rows[0]?.number) < POSTGRES_VERSION_MIN * 10_000) {
    throw new OperatorError(
      `Millrace needs PostgreSQL ${POSTGRES_VERSION_MIN} or newer; DATABASE_URL points to ${rows[0]?.version}.`,
    );
  }
}

function refuseForeignSchema(
  found: readonly { version: number; name: string; checksum: string }[],
  known: readonly Migration[],
): void {
  if (found.length > known.length) {
    throw new OperatorError(
      `The database has schema version ${found.length}, this Millrace knows ${known.length}. ` +
        "A newer Millrace has migrated it: start that version, or restore a backup made before its upgrade.",
    );
  }
  for (const [index, { version, name, checksum }] of found.entries()) {
    if (checksum !== known[index]?.checksum) {
      throw new OperatorError(
        `Migration ${version} (${name}) in the database is not the one in this build. ` +
          "Migrations never change once released: check that this is the right database and the right version.",
      );
    }
  }
}

const CONCURRENT = /^(create( unique)?|drop) index concurrently /i;

/** Those of a file that builds indexes concurrently. It has no others: they would not be undone when it fails. */
function concurrentStatements({ version, name, sql }: Migration): string[] {
  const statements = sql
    .replaceAll(/^--.*$/gm, "")
    .split(/;\s*$/m)
    .map((text) => text.trim())
    .filter((text) => text !== "");
  if (!statements.some((text) => CONCURRENT.test(text))) return [];
  const other = statements.find((text) => !CONCURRENT.test(text));
  if (other === undefined) return statements;
  throw new Error(`migration ${version} (${name}) mixes concurrent indexes with \`${other.slice(0, 60)}\``);
}

async function record(client: pg.Client, { version, name, checksum }: Migration): Promise<void> {
  await client.query("insert into kernel.schema_migration (version, name, checksum) values ($1, $2, $3)", [
    version,
    name,
    checksum,
  ]);
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  const { version, name, sql } = migration;
  const concurrent = concurrentStatements(migration);
  if (concurrent.length > 0) {
    try {
      for (const one of concurrent) await client.query(one);
      return await record(client, migration);
    } catch (error) {
      throw new Error(`migration ${version} (${name}) failed; the next start begins it anew`, { cause: error });
    }
  }
  try {
    await client.query("begin");
    await client.query(sql);
    await record(client, migration);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => {}); // A broken connection has rolled back already.
    throw new Error(`migration ${version} (${name}) failed and was rolled back`, { cause: error });
  }
}
