/**
 * The connection to the module that records the arrival of tables. That module is opened after chains and connects itself
 * before anything is started. Without it, no table ever arrives.
 */
import type { HasArrived } from "./engine/open-books.ts";

export interface Tables {
  /** Which tables arrived before a run started to wait for them. */
  hasArrived: HasArrived;
  /** The stored name of a table, where it differs from the given one. */
  tableName(given: string): string;
}

export interface ConnectableTables extends Tables {
  connect(tables: Tables): void;
}

const NO_TABLES: Tables = { hasArrived: async () => new Set(), tableName: (given) => given };

export function createTables(): ConnectableTables {
  let connected = NO_TABLES;
  return {
    hasArrived: (reader, tables, opTime) => connected.hasArrived(reader, tables, opTime),
    tableName: (given) => connected.tableName(given),
    connect(tables) {
      if (connected !== NO_TABLES) throw new Error("tables are already connected");
      connected = tables;
    },
  };
}
