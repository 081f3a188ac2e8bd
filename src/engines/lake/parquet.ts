/** Writes rows of any number to a Parquet file, and reads the tag of one. */

import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBDataChunk,
  DuckDBDateValue,
  DuckDBInstance,
  DuckDBTimestampTZValue,
  type DuckDBValue,
} from "@duckdb/node-api";
import { DAY_MS } from "../../kernel/time/units.ts";
import { literal, quoted } from "../sql/text.ts";
import type { LakeColumn, LakeRow, LakeValue, LakeWriter } from "./lake.ts";

/** DuckDB takes vectors of this size. */
const CHUNK_ROWS = 2_048;
/** Rows beyond it go to temporary files. */
const MEMORY_LIMIT = "256MB";
const THREADS = "1";
const TAG = "millrace";

const SQL_TYPES = {
  string: "varchar",
  integer: "bigint",
  number: "double",
  boolean: "boolean",
  date: "date",
  timestamp: "timestamptz",
  json: "json",
} as const satisfies Record<LakeColumn["type"], string>;

export async function openParquetWriter(
  path: string,
  { columns, tag }: { columns: readonly LakeColumn[]; tag: string },
): Promise<LakeWriter> {
  const instance = await DuckDBInstance.create(":memory:", {
    memory_limit: MEMORY_LIMIT,
    threads: THREADS,
    preserve_insertion_order: "false", // Keeping it takes memory.
    temp_directory: join(tmpdir(), `millrace-lake-${process.pid}`),
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
  });
  let connection: DuckDBConnection | undefined;
  let appender: DuckDBAppender;
  let isReleased = false;
  const release = () => {
    if (isReleased) return;
    isReleased = true;
    connection?.closeSync();
    instance.closeSync();
  };
  try {
    connection = await instance.connect();
    const definitions = columns.map(({ name, type }) => `${quoted(name)} ${SQL_TYPES[type]}`);
    await connection.run(`create table landed (${definitions.join(", ")})`);
    appender = await connection.createAppender("landed");
  } catch (error) {
    release();
    throw error;
  }
  const open = connection;
  // One for all rows: the memory of a chunk is outside of the limit, and the garbage collector does not know its size.
  const types = columns.map((_, index) => appender.columnType(index));
  const chunk = DuckDBDataChunk.create(types, CHUNK_ROWS);

  return {
    async append(rows) {
      for (let at = 0; at < rows.length; at += CHUNK_ROWS) {
        const some = rows.slice(at, at + CHUNK_ROWS);
        chunk.reset();
        chunk.rowCount = some.length;
        chunk.setColumns(columns.map(({ type }, index) => some.map((row) => valueOf(type, row[index] ?? null))));
        appender.appendDataChunk(chunk);
        appender.flushSync(); // Else it keeps 200,000 rows outside of the limit.
        await nextTurn(); // A chunk takes some milliseconds of this thread.
      }
    },
    async finish() {
      const options = `format parquet, compression zstd, kv_metadata {${TAG}: ${literal(tag)}}, use_tmp_file false, row_group_size_bytes '16MB'`;
      try {
        appender.closeSync();
        await open.run(`copy landed to ${literal(path)} (${options})`);
      } finally {
        release();
      }
    },
    abort: release,
  };
}

function valueOf(type: LakeColumn["type"], value: LakeRow[number]): DuckDBValue {
  if (value === null) return null;
  switch (type) {
    case "integer":
      return BigInt(value as number | bigint);
    case "date":
      return new DuckDBDateValue(Math.floor(Date.parse(value as string) / DAY_MS));
    case "timestamp":
      return new DuckDBTimestampTZValue(BigInt((value as Date).getTime()) * 1_000n);
    case "string":
    case "number":
    case "boolean":
    case "json":
      return value as Exclude<LakeValue, Date>;
  }
}

/** Undefined if the file has none or cannot be read, so that it is written again. */
export async function tagOf(path: string): Promise<string | undefined> {
  const instance = await DuckDBInstance.create(":memory:", { memory_limit: MEMORY_LIMIT, threads: "1" });
  const connection = await instance.connect();
  try {
    const found = await connection.run(
      `from parquet_kv_metadata(${literal(path)}) select decode(value) where decode(key) = ${literal(TAG)}`,
    );
    const [[tag] = []] = await found.getRows();
    return tag === undefined ? undefined : String(tag);
  } catch {
    return undefined;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
