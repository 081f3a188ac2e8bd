/** SQL of tables that are written in a Postgres engine: the table itself, the versions of its partitions, and their rows. */
import pg from "pg";
import { EngineRefusal } from "../../engine.ts";
import type { LakeColumn, LakeRow, LakeValue, LakeWriter } from "../../lake/lake.ts";
import { literal, quoted } from "../../sql/text.ts";
import { explained } from "../postgres.ts";

const LANDED = "millrace_landed";
const UNDEFINED_TABLE = "42P01";
const ROWS_AT_ONCE = 1_000;
/** DDL waits for readers of the table, and whoever reads next waits for it. */
const LOCK_TIMEOUT = "30s";
/** A process that is suspended does not hold its locks for ever. */
const IDLE_TIMEOUT = "10min";

/** The type that a column is made with, then others that hold the same values. */
const SQL_TYPES = {
  string: ["text", "character varying"],
  integer: ["bigint", "numeric"],
  number: ["double precision"],
  boolean: ["boolean"],
  date: ["date"],
  timestamp: ["timestamp with time zone"],
  json: ["json", "jsonb"],
} as const satisfies Record<LakeColumn["type"], readonly [string, ...string[]]>;
const OP_TIME = { name: "op_time", type: "string" } as const satisfies LakeColumn;

/** Undefined if the partition, or the whole table, is not there. */
export async function landedOf(
  client: pg.Client,
  table: string,
  opTime: string,
): Promise<{ tag: string; version: string } | undefined> {
  try {
    const { rows } = await client.query<{ tag: string; version: string }>(
      `select tag, version::text from ${LANDED} where table_name = $1 and op_time = $2 and to_regclass($3) is not null`,
      [table, opTime, quoted(table)],
    );
    return rows[0];
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === UNDEFINED_TABLE) return undefined;
    throw error;
  }
}

async function columnsOf(client: pg.Client, table: string): Promise<Map<string, string>> {
  const { rows } = await client.query<{ name: string; type: string }>(
    `select attname as name, format_type(atttypid, null) as type from pg_attribute
     where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
    [quoted(table)],
  );
  return new Map(rows.map(({ name, type }) => [name, type]));
}

/** Makes the table, or adds the columns that it lacks. Throws for one of another type, and for a table of somebody else. */
export async function prepareTable(client: pg.Client, table: string, columns: readonly LakeColumn[]): Promise<void> {
  await client.query(`set lock_timeout = '${LOCK_TIMEOUT}'`);
  const before = await columnsOf(client, table);
  const isTold = (await columnsOf(client, LANDED)).size > 0;
  if (isTold && before.size > 0 && missing(table, columns, before).length === 0) return;
  await client.query("begin");
  // Two processes that make the same table at once would fail. The lock orders them, and what is there is read behind it.
  await client.query("select pg_advisory_xact_lock(hashtextextended('millrace.landed', 0))");
  await client.query(
    `create table if not exists ${LANDED} (table_name text, op_time text, version bigint not null, tag text not null,
       rows bigint not null default 0, landed_at timestamptz not null default now(), primary key (table_name, op_time))`,
  );
  const there = await columnsOf(client, table);
  if (there.size === 0) {
    const all = [OP_TIME, ...columns].map(({ name, type }) => `${quoted(name)} ${SQL_TYPES[type][0]}`);
    await client.query(`create table ${quoted(table)} (${all.join(", ")}, primary key (op_time, _key))`);
    await client.query(`comment on table ${quoted(table)} is ${literal("Written by Millrace; see millrace_landed.")}`);
  } else {
    for (const { name, type } of missing(table, columns, there)) {
      await client.query(`alter table ${quoted(table)} add column ${quoted(name)} ${SQL_TYPES[type][0]}`);
    }
  }
  await client.query("commit");
}

/** The columns that the table lacks. */
function missing(table: string, columns: readonly LakeColumn[], there: ReadonlyMap<string, string>): LakeColumn[] {
  for (const name of [OP_TIME.name, "_key", "_version", "_deleted"]) {
    if (there.has(name)) continue;
    throw new EngineRefusal(
      `The table \`${table}\` was not made by Millrace: it has no column \`${name}\`. Rename it, or land in another table.`,
    );
  }
  return [OP_TIME, ...columns].filter(({ name, type }) => {
    const found = there.get(name);
    const accepted: readonly string[] = SQL_TYPES[type];
    if (found === undefined || accepted.includes(found)) return found === undefined;
    const [wanted] = accepted;
    throw new EngineRefusal(
      `The column \`${name}\` of the table \`${table}\` is \`${found}\`, and the definition says \`${type}\`, which is \`${wanted}\`. Name the field differently, or change the column: alter table ${quoted(table)} alter column ${quoted(name)} type ${wanted} using ${quoted(name)}::${wanted}`,
    );
  });
}

interface Version {
  table: string;
  opTime: string;
  version: string;
  tag: string;
}

/** Begins the transaction that replaces the partition, and empties it. The row of the partition is locked until it ends. */
export async function beginReplacement(client: pg.Client, { table, opTime, version, tag }: Version): Promise<void> {
  await client.query(
    `begin; set local lock_timeout = '${LOCK_TIMEOUT}'; set local idle_in_transaction_session_timeout = '${IDLE_TIMEOUT}'`,
  );
  const { rowCount } = await client.query(
    `insert into ${LANDED} as t (table_name, op_time, version, tag) values ($1, $2, $3, $4)
     on conflict (table_name, op_time) do update
     set version = excluded.version, tag = excluded.tag, rows = 0, landed_at = now() where t.version < excluded.version`,
    [table, opTime, version, tag],
  );
  if (rowCount === 0) {
    throw new Error(
      `A later version of ${table} ${opTime} is in place. If another Millrace has written it, delete its rows from ${LANDED}.`,
    );
  }
  await client.query(`delete from ${quoted(table)} where op_time = $1`, [opTime]);
}

interface Written {
  table: string;
  opTime: string;
  columns: readonly LakeColumn[];
  abort(): void;
}

export function writerOf(client: pg.Client, { table, opTime, columns, abort }: Written): LakeWriter {
  const names = [OP_TIME, ...columns].map(({ name }) => quoted(name)).join(", ");
  const values = columns.map(({ type }, at) => `c${at}::${SQL_TYPES[type][0]}`).join(", ");
  const arrays = columns.map((_, at) => `$${at + 2}::text[]`).join(", ");
  const aliases = columns.map((_, at) => `c${at}`).join(", ");
  const insert = `insert into ${quoted(table)} (${names}) select $1, ${values} from unnest(${arrays}) as u(${aliases})`;
  let written = 0;

  async function run(sql: string, parameters: unknown[]): Promise<void> {
    try {
      await client.query(sql, parameters);
    } catch (error) {
      throw explained(error);
    }
  }

  return {
    async append(rows) {
      for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
        const some = rows.slice(at, at + ROWS_AT_ONCE);
        await run(insert, [opTime, ...columns.map((_, column) => textsOf(some, column))]);
        written += some.length;
      }
    },
    finish: () =>
      run(`update ${LANDED} set rows = $3 where table_name = $1 and op_time = $2`, [table, opTime, written]),
    abort,
  };
}

/** One column of the rows, as Postgres reads it. */
function textsOf(rows: readonly LakeRow[], column: number): (string | null)[] {
  return rows.map((row) => textOf(row[column] ?? null));
}

function textOf(value: LakeValue): string | null {
  if (value === null) return null;
  return value instanceof Date ? value.toISOString() : String(value);
}
