/**
 * The lake, for modules that write tables into it. A partition of a table is replaced whole, and a query sees either the earlier
 * file or the new one:
 *
 *     tables/<table>/op_time=<opTime>/<owner>.<version>.parquet
 *
 * Each version has a name of its own, because DuckDB opens a file several times during one query: of a file that was replaced
 * under its name, half of the queries failed or would have read parts of both. The new file comes before the earlier one is
 * removed, and readers take the highest version of an owner (landed-files.ts). The versions are fences: a process that lost its
 * lease cannot hide the file of its successor.
 */
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory, syncFile } from "../../kernel/sync-directory.ts";
import { LANDED_MARK, landedName, landedNames, noneIfMissing } from "./landed-files.ts";

/** Where tables are written, partition by partition: the lake, or a Postgres engine. */
export interface TableStore {
  partition(place: PartitionPlace): Partition;
}

export interface Lake extends TableStore {
  readonly dir: string;
}

export interface PartitionPlace {
  table: string;
  opTime: string;
  /** Who writes it. In the lake, files of several owners make up a partition. */
  owner: string;
}

export interface Partition {
  /** The tag of what readers use now. */
  tag(): Promise<string | undefined>;
  /** Begins to write this version. No reader sees it. The tag, a short text, is stored with it. */
  write(version: string, file: { columns: readonly LakeColumn[]; tag: string }): Promise<LakeWriter>;
  /** Makes the version that was written the current one, durably. Repeating it is harmless. */
  replace(version: string): Promise<void>;
  /** Removes what was written of a version, unless it is in place. */
  discard(version: string): Promise<void>;
}

export interface LakeColumn {
  name: string;
  type: "string" | "integer" | "number" | "boolean" | "date" | "timestamp" | "json";
}
/** A date is text (`2026-08-20`), and so is JSON. */
export type LakeValue = string | number | bigint | boolean | Date | null;
/** In the order of the columns. */
export type LakeRow = readonly LakeValue[];

export interface LakeWriter {
  append(rows: readonly LakeRow[]): Promise<void>;
  finish(): Promise<void>;
  /** Instead of `finish`, or after it has failed. */
  abort(): void;
}

/** Staged files do not end like Parquet files, so that no other reader takes them either. */
const STAGED = /^\.staged-(\d+)$/;
const DIRECTORY_MODE = 0o700;

export function openLake(dir: string): Lake {
  return {
    dir,
    partition({ table, opTime, owner }) {
      const tableDir = join(dir, "tables", table);
      const partitionDir = join(tableDir, `op_time=${opTime}`);
      const stagedPath = (version: string) => join(partitionDir, `.staged-${version}`);
      const pathOf = (version: string) => join(partitionDir, landedName(owner, version));

      /** The versions of this owner in the directory, the highest first. */
      async function versions(): Promise<{ name: string; version: bigint }[]> {
        const names = await readdir(partitionDir).catch(noneIfMissing);
        const own = landedNames(names).filter((file) => file.owner === owner);
        return own.toSorted((a, b) => (a.version < b.version ? 1 : -1));
      }

      return {
        async tag() {
          const [latest] = await versions();
          return latest && (await import("./parquet.ts")).tagOf(join(partitionDir, latest.name));
        },
        async write(version, file) {
          await mkdir(dir, { recursive: true, mode: DIRECTORY_MODE });
          await mkdir(partitionDir, { recursive: true });
          for (const name of await readdir(partitionDir)) {
            const [, earlier] = STAGED.exec(name) ?? [];
            if (earlier !== undefined && BigInt(earlier) < BigInt(version)) await rm(join(partitionDir, name));
          }
          const { openParquetWriter } = await import("./parquet.ts");
          return openParquetWriter(stagedPath(version), file);
        },
        async replace(version) {
          const isStaged = (await readdir(partitionDir)).includes(`.staged-${version}`);
          if (isStaged) {
            await syncFile(stagedPath(version));
            await rename(stagedPath(version), pathOf(version));
          }
          for (const path of [partitionDir, tableDir, join(tableDir, ".."), dir]) await syncDirectory(path);
          await mark(tableDir, `${owner} ${opTime} ${version}`);
          for (const found of await versions()) {
            if (found.version < BigInt(version)) await rm(join(partitionDir, found.name), { force: true });
          }
        },
        discard: (version) => rm(stagedPath(version), { force: true }),
      };
    },
  };
}

/** Tells readers that the files of the table have changed. */
async function mark(tableDir: string, text: string): Promise<void> {
  const path = join(tableDir, LANDED_MARK);
  const written = `${path}-${text.replaceAll(" ", "-")}`;
  await writeFile(written, text);
  await rename(written, path);
}
