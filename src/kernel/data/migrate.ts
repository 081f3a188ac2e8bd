/**
 * Migrates the schema to the version of this build: the files of `sql/` in the order of their numbers, each in its own
 * transaction, forward only. Safe to run from many processes at once; refuses a schema newer than the build.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type pg from "pg";
import { OperatorError } from "../errors.ts";
import type { Db } from "./db.ts";

/** `sql/` at the package's root, seen from both `src/kernel` and `dist/kernel`. */
const MIGRATIONS_DIR = fileURLToPath(new URL("../../../sql/", import.meta.url));

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
    await client.query("select pg_advisory_lock($1)", [ADVISORY_LOCK]);
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

async function apply(client: pg.Client, { version, name, sql, checksum }: Migration): Promise<void> {
  try {
    await client.query("begin");
    await client.query(sql);
    await client.query("insert into kernel.schema_migration (version, name, checksum) values ($1, $2, $3)", [
      version,
      name,
      checksum,
    ]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => {}); // A broken connection has rolled back already.
    throw new Error(`migration ${version} (${name}) failed and was rolled back`, { cause: error });
  }
}
