/**
 * Announces tables for tracked files: when the last stage of all shards of a file is done, the table that its name stands
 * for arrives in the same transaction.
 */
import type { Tx } from "../kernel/data/db.ts";
import type { Arrivals } from "./arrivals.ts";
import { type FileArrival, fileArrivals } from "./file-arrivals.ts";
import type { ArrivalsSettings } from "./settings.ts";

export interface Files {
  /** For the tracking module. */
  completion: {
    isArrival(filename: string): boolean;
    /** Call it in the transaction that completes the files. */
    complete(tx: Tx, filenames: readonly string[]): Promise<void>;
  };
  /** Calls the listener for files that have arrived. Register it before the start. */
  onFilesArrived(listener: OnFilesArrived): void;
}

/** Called in the transaction of the arrivals. */
export type OnFilesArrived = (tx: Tx, files: readonly FileArrival[]) => Promise<void>;

export function createFiles(deps: {
  settings: ArrivalsSettings;
  arrivals: Pick<Arrivals, "announceIn" | "tableName">;
}): Files {
  const { settings, arrivals } = deps;
  const arrivalOf = fileArrivals(settings);
  const listeners: OnFilesArrived[] = [];
  return {
    completion: {
      isArrival: (filename) => arrivalOf(filename) !== undefined,
      async complete(tx, filenames) {
        const found = filenames.flatMap((filename) => {
          const arrival = arrivalOf(filename);
          return arrival ? [{ ...arrival, filename }] : [];
        });
        const files = found.map((file) => ({ ...file, table: arrivals.tableName(file.table) }));
        const named = files.map(({ table, opTime, filename }) => {
          return { table, opTime, idempotencyKey: null, by: `file ${filename}` };
        });
        const announcements = [...new Map(named.map((one) => [`${one.table} ${one.opTime}`, one])).values()];
        await arrivals.announceIn(tx, announcements);
        for (const listener of listeners) await listener(tx, files);
      },
    },
    onFilesArrived: (listener) => void listeners.push(listener),
  };
}
