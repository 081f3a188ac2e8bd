/** What pages show of the whole pipeline: the queues of all stages, files by shards in windows, and the shards of a file. */
import type { Db } from "../kernel/data/db.ts";
import { trackingError } from "./catalogue.ts";
import type { Status } from "./states.ts";
import { type GridRow, gridRows, type StageQueue, shardNumbers, shardsFrom, stageQueues } from "./store/grid.ts";
import { type FileFilter, knownFiles } from "./store.ts";

export interface GridWindow {
  /** The last file of the page before. */
  after: string | null;
  files: number;
  /** The first shard, and how many. */
  from: number;
  width: number;
}

export function createGrid(db: Db) {
  return {
    queues: (): Promise<StageQueue[]> => stageQueues(db),

    async window(filter: FileFilter, { after, files, from, width }: GridWindow) {
      const numbers = await shardNumbers(db, from, width + 1);
      const shards = numbers.slice(0, width);
      const rows = await gridRows(db, filter, { after, limit: files, from, to: shards.at(-1) ?? from });
      return {
        shards,
        next_shard: numbers[width] ?? null,
        items: rows.map((row) => ({ filename: row.filename, created_at: row.created_at, cells: cellsOf(row, shards) })),
        next: rows.length === files ? (rows.at(-1)?.filename ?? null) : null,
      };
    },

    /** Shards by number; `next` is the first of those behind. */
    async shards(filename: string, { from, status, limit }: { from: number; status: Status | null; limit: number }) {
      const rows = await shardsFrom(db, filename, { from, status, limit: limit + 1 });
      if (rows.length === 0 && !(await knownFiles(db, [filename])).has(filename))
        throw trackingError("FILE_NOT_FOUND", { filename });
      return { items: rows.slice(0, limit), next: rows[limit]?.shard ?? null };
    },
  };
}

export type Grid = ReturnType<typeof createGrid>;

/** One character for each column. */
function cellsOf({ shards: own, codes }: GridRow, columns: readonly number[]): string {
  const codeOf = new Map(own?.map((shard, index) => [shard, codes?.[index] ?? "."]));
  return columns.map((shard) => codeOf.get(shard) ?? ".").join("");
}
