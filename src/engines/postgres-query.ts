/**
 * One query on a connection to Postgres, its rows handed over in batches. While the taker is busy the socket is not read,
 * so that the rows wait at the server and not in the memory of this process.
 */
import pg from "pg";
import type { DriverOptions, DriverResult, Row } from "./engine.ts";
import { numbered } from "./params.ts";
import { parserOf } from "./postgres-values.ts";
import { holdsSeveral } from "./sql-tokens.ts";
import { uniqueNames } from "./unique-names.ts";

const BATCH_ROWS = 1_000;

export function submit(client: pg.PoolClient, sql: string, options: DriverOptions): Promise<DriverResult> {
  const { params, rowsMax, onRows } = options;
  const { text, values } = numbered(sql, params);
  const socket = client.connection.stream;
  // Of several statements the last one's rows count, and only at the end it is known which one that was.
  const isHeld = holdsSeveral(sql);
  return new Promise((resolve, reject) => {
    const query = new pg.Query({
      text,
      values,
      rowMode: "array",
      types: { getTypeParser: parserOf },
    } as pg.QueryArrayConfig);
    let current: Pick<pg.QueryArrayResult, "fields"> | undefined;
    let columns: string[] = [];
    let kept: Row[] = [];
    let seen = 0;
    let handing: Promise<void> | undefined;

    function begin(result: typeof current): void {
      current = result;
      columns = uniqueNames(result?.fields.map(({ name }) => name) ?? []);
      kept = [];
      seen = 0;
    }

    /** The last row that is wanted does not wait for a full batch: it may be the one too many, which ends the query. */
    function isDue(): boolean {
      return kept.length >= BATCH_ROWS || (kept.length > 0 && seen >= rowsMax);
    }

    async function handOver(): Promise<void> {
      socket.pause();
      try {
        // What has been received already still comes, paused or not.
        while (isDue()) await onRows(kept.splice(0));
      } catch {
        kept = []; // The query was interrupted, which the server tells in its own time.
      } finally {
        handing = undefined;
        socket.resume();
      }
    }

    query.on("row", (row: unknown[], result?: typeof current) => {
      if (result !== current) begin(result);
      seen += 1;
      if (seen > rowsMax) return;
      kept.push(Object.fromEntries(columns.map((name, column) => [name, row[column]])));
      if (!isHeld && isDue()) handing ??= handOver();
    });
    query.on("error", reject);
    query.on("end", (results: pg.QueryArrayResult | pg.QueryArrayResult[]) => {
      const last = Array.isArray(results) ? results.at(-1) : results;
      if (last !== current) begin(last);
      const rest = async () => {
        await handing;
        if (kept.length > 0) await onRows(kept);
        return { columns, rowsChanged: last?.rowCount ?? 0 };
      };
      rest().then(resolve, reject);
    });
    client.query(query);
  });
}
