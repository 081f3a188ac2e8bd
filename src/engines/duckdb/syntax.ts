/**
 * Finds SQL that DuckDB cannot parse. On a database of its own, in memory and closed to files: nothing is bound or run, so tables
 * need not exist, and the file of an engine, which only one process can open, stays closed.
 */
import { DuckDBInstance } from "@duckdb/node-api";
import { messageOf } from "../../kernel/text/message-of.ts";

export interface Parser {
  /** In one line: `syntax error at or near "selec" in line 1`. */
  errorIn(sql: string): Promise<string | undefined>;
  close(): void;
}

const PARSER_ERROR = /Parser Error: (.*)(?:\n+LINE (\d+):)?/;

export async function openParser(): Promise<Parser> {
  const instance = await DuckDBInstance.create(":memory:", { enable_external_access: "false", threads: "1" });
  const connection = await instance.connect();
  return {
    async errorIn(sql) {
      try {
        await connection.extractStatements(sql);
        return undefined;
      } catch (error) {
        const [, reason, line] = PARSER_ERROR.exec(messageOf(error)) ?? [];
        if (reason === undefined) return undefined; // Parsing `import database` reads files, and a run may be allowed to.
        return line === undefined ? reason : `${reason} in line ${line}`;
      }
    },
    close() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}
