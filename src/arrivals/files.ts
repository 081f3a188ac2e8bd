/**
 * Tracked files that are arrivals: when the last stage of all shards of a file is done, the table that its name stands for
 * has arrived, in the same transaction.
 */
import type { Tx } from "../kernel/data/db.ts";
import type { Arrivals } from "./arrivals.ts";
import { type FileArrival, fileArrivals } from "./file-arrivals.ts";
import type { ArrivalsSettings } from "./settings.ts";

export interface Files {
  /** For whoever tracks files. */
  completion: {
    concerns(filename: string): boolean;
    /** In the transaction that made them complete. */
    complete(tx: Tx, filenames: readonly string[]): Promise<void>;
  };
  /** Tells another module of files that have arrived. Ask for it before anything is started. */
  onFiles(listener: TellFiles): void;
}

/** In the transaction of the arrivals. */
export type TellFiles = (tx: Tx, files: readonly FileArrival[]) => Promise<void>;

export function createFiles(deps: {
  settings: ArrivalsSettings;
  arrivals: Pick<Arrivals, "announceIn" | "tableName">;
}): Files {
  const { settings, arrivals } = deps;
  const arrivalOf = fileArrivals(settings);
  const listeners: TellFiles[] = [];
  return {
    completion: {
      concerns: (filename) => arrivalOf(filename) !== undefined,
      async complete(tx, filenames) {
        const found = filenames.flatMap((filename) => arrivalOf(filename) ?? []);
        const files = found.map((file) => ({ ...file, table: arrivals.tableName(file.table) }));
        const named = files.map(({ table, opTime }) => ({ table, opTime, idempotencyKey: null }));
        const announcements = [...new Map(named.map((one) => [`${one.table} ${one.opTime}`, one])).values()];
        await arrivals.announceIn(tx, announcements);
        for (const listener of listeners) await listener(tx, files);
      },
    },
    onFiles: (listener) => void listeners.push(listener),
  };
}
