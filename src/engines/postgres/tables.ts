/**
 * Tables of a Postgres engine that other modules write, partition by partition. A partition is the rows of one `op_time`, and is
 * replaced whole in one transaction: readers see the earlier rows or the new ones.
 *
 * Which version of a partition is there, and its tag, is in `millrace_landed`, written in the same transaction. So whoever
 * repeats a replacement that was committed finds its tag, and a process that lost its lease cannot replace a later version.
 * Names of tables and columns are folded to lower case, so that SQL may write them in any case without quotes.
 */
import pg from "pg";
import type { Partition, PartitionPlace, TableStore } from "../lake/lake.ts";
import { explained, type PostgresConnection } from "./postgres.ts";
import { beginReplacement, landedOf, prepareTable, writerOf } from "./store/landed-tables.ts";

export interface PostgresTables extends TableStore {
  /** Rolls back what is not committed. */
  close(): Promise<void>;
}

export function openPostgresTables(connection: PostgresConnection): PostgresTables {
  /** Transactions that have replaced a partition and are not committed. */
  const open = new Map<string, pg.Client>();

  async function connect(): Promise<pg.Client> {
    const client = new pg.Client(connection);
    client.on("error", () => {}); // The query that runs fails too, and reports it.
    await client.connect();
    return client;
  }

  async function withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = await connect();
    try {
      return await work(client);
    } catch (error) {
      throw explained(error);
    } finally {
      await client.end().catch(() => {});
    }
  }

  async function rollBack(key: string): Promise<void> {
    const client = open.get(key);
    open.delete(key);
    await client?.end().catch(() => {});
  }

  function partition({ table: given, opTime }: PartitionPlace): Partition {
    const table = given.toLowerCase();
    const keyOf = (version: string) => `${table} ${opTime} ${version}`;
    return {
      tag: async () => (await withClient((client) => landedOf(client, table, opTime)))?.tag,

      async write(version, { columns, tag }) {
        const folded = columns.map(({ name, type }) => ({ name: name.toLowerCase(), type }));
        await withClient((client) => prepareTable(client, table, folded));
        const client = await connect();
        const key = keyOf(version);
        open.set(key, client);
        try {
          await beginReplacement(client, { table, opTime, version, tag });
        } catch (error) {
          await rollBack(key);
          throw explained(error);
        }
        return writerOf(client, { table, opTime, columns: folded, abort: () => void rollBack(key) });
      },

      async replace(version) {
        const key = keyOf(version);
        const client = open.get(key);
        if (!client) {
          const there = await withClient((reader) => landedOf(reader, table, opTime));
          if (there?.version === version) return; // It is repeated.
          throw new Error(`version ${version} of ${table} ${opTime} is not written`);
        }
        try {
          await client.query("commit");
        } catch (error) {
          throw explained(error);
        } finally {
          await rollBack(key); // Closes the connection.
        }
      },

      async discard(version) {
        await rollBack(keyOf(version));
      },
    };
  }

  return {
    partition,
    async close() {
      await Promise.all([...open.keys()].map(rollBack));
    },
  };
}
