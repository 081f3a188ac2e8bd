/**
 * Who knows of tables. Nodes of chains wait for them, and the module that records their arrival is opened later: it hands
 * in what it knows before anything is started. Without it no table ever arrives.
 */
import type { HasArrived } from "./engine/open-books.ts";

export interface Tables {
  /** Which of them have arrived before a run begins to wait for them. */
  hasArrived: HasArrived;
  /** The name under which a table is kept, where that is not the one that was given. */
  tableName(given: string): string;
}

export interface TablesSocket extends Tables {
  connect(tables: Tables): void;
}

const NO_TABLES: Tables = { hasArrived: async () => new Set(), tableName: (given) => given };

export function createTables(): TablesSocket {
  let known = NO_TABLES;
  return {
    hasArrived: (reader, tables, opTime) => known.hasArrived(reader, tables, opTime),
    tableName: (given) => known.tableName(given),
    connect(tables) {
      if (known !== NO_TABLES) throw new Error("tables are connected already");
      known = tables;
    },
  };
}
