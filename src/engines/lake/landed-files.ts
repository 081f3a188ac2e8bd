/**
 * The files of tables that Millrace itself writes (lake.ts). Of the versions of a file, which exist side by side for a moment,
 * readers use the highest. Each change of such a table changes its mark, so an unchanged table costs one read of a small file.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** A file in the folder of the table. Its text differs after each change of the table's files. */
export const LANDED_MARK = ".landed";
const NAME = /^(.+)\.v(\d{19})\.parquet$/;
export const HIDDEN = /^[._]/;

export interface LandedName {
  name: string;
  owner: string;
  version: bigint;
}

export function landedName(owner: string, version: string): string {
  return `${owner}.v${version.padStart(19, "0")}.parquet`;
}

export function landedNames(names: readonly string[]): LandedName[] {
  return names.flatMap((name) => {
    const [, owner, version] = NAME.exec(name) ?? [];
    return owner === undefined || version === undefined ? [] : [{ name, owner, version: BigInt(version) }];
  });
}

/** The mark of the table; undefined for a table that Millrace does not write. */
export async function markOf(tableDir: string): Promise<string | undefined> {
  try {
    return await readFile(join(tableDir, LANDED_MARK), "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

/** The Parquet files of the table, in the order of their paths. */
export async function landedFiles(tableDir: string): Promise<string[]> {
  const entries = await readdir(tableDir, { withFileTypes: true });
  const shown = entries.filter(({ name }) => !HIDDEN.test(name));
  const below = shown
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => landedFiles(join(tableDir, name)).catch(noneIfMissing));
  const files = shown.filter((entry) => !entry.isDirectory() && entry.name.endsWith(".parquet"));
  const names = files.map(({ name }) => name);
  const landed = landedNames(names);
  const earlier = new Set(landed.filter((one) => landed.some((other) => isLater(other, one))).map(({ name }) => name));
  const own = names.filter((name) => !earlier.has(name)).map((name) => join(tableDir, name));
  return [...own, ...(await Promise.all(below)).flat()].toSorted();
}

function isLater(one: LandedName, other: LandedName): boolean {
  return one.owner === other.owner && one.version > other.version;
}

export function noneIfMissing(error: unknown): string[] {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
  throw error;
}
