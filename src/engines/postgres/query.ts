/**
 * Runs one query on a connection to Postgres and passes its rows on in batches. While the receiver works on a batch the socket
 * is paused, so that further rows wait on the server and not in this process's memory.
 */
import pg from "pg";
import { BATCH, type DriverOptions, type DriverResult, type Row } from "../engine.ts";
import { uniqueNames } from "../result/unique-names.ts";
import { numbered } from "../sql/params.ts";
import { holdsSeveral } from "../sql/tokens.ts";
import { parserOf } from "./values.ts";

export function submit(client: pg.PoolClient, sql: string, options: DriverOptions): Promise<DriverResult> {
  const { params, rowsMax, signal, size, onRows } = options;
  const { text, values } = numbered(sql, params);
  const socket = client.connection.stream;
  // Only the rows of the last statement are the result, and which one is last is known only at the end.
  const isBuffered = holdsSeveral(sql);
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
    let keptBytes = 0;
    let seen = 0;
    let passing: Promise<void> | undefined;

    function begin(result: typeof current): void {
      current = result;
      columns = uniqueNames(result?.fields.map(({ name }) => name) ?? []);
      keep([]);
      seen = 0;
      size.reset();
    }

    function keep(rows: Row[]): Row[] {
      const before = kept;
      kept = rows;
      keptBytes = 0;
      return before;
    }

    /** The row that exceeds the limit does not wait for a full batch, because it ends the query. */
    function isDue(): boolean {
      const isFull = kept.length >= BATCH.rowsMax || keptBytes >= BATCH.bytesMax;
      return isFull || (kept.length > 0 && seen >= rowsMax);
    }

    async function passRows(): Promise<void> {
      socket.pause();
      try {
        // Rows that were already received still arrive while the socket is paused.
        while (isDue()) await onRows(keep([]));
      } catch {
        keep([]); // The query was interrupted; the server reports that as an error of the query.
      } finally {
        passing = undefined;
        socket.resume();
      }
    }

    query.on("row", (row: unknown[], result?: typeof current) => {
      if (result !== current) begin(result);
      seen += 1;
      if (seen > rowsMax || signal.aborted) return;
      const converted = Object.fromEntries(columns.map((name, column) => [name, row[column]]));
      kept.push(converted);
      keptBytes += size.add(converted);
      if (!isBuffered && isDue()) passing ??= passRows();
    });
    query.on("error", reject);
    query.on("end", (results: pg.QueryArrayResult | pg.QueryArrayResult[]) => {
      const last = Array.isArray(results) ? results.at(-1) : results;
      if (last !== current) begin(last);
      const rest = async () => {
        await passing;
        if (kept.length > 0) await onRows(kept);
        return { columns, rowsChanged: last?.rowCount ?? 0 };
      };
      rest().then(resolve, reject);
    });
    client.query(query);
  });
}
