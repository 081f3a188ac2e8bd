/** A Millrace reduced to its Postgres, for tests that kill it: reports how the start went, then lives until it is told to stop. */

import { OperatorError } from "../errors.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "./index.ts";

export type Reply =
  | { pid: number; origin: EmbeddedPostgres["origin"]; connection: EmbeddedPostgres["connection"] }
  | { failed: string };

function report(reply: Reply): void {
  process.send?.(reply);
}

async function run(dataDir: string): Promise<void> {
  try {
    const postgres = await startEmbeddedPostgres({ dataDir });
    process.once("message", () => {
      void postgres.stop().then(() => process.disconnect());
    });
    report({ pid: postgres.pid(), origin: postgres.origin, connection: postgres.connection });
  } catch (error) {
    report({ failed: error instanceof OperatorError ? error.message : `a bug: ${String(error)}` });
    process.disconnect();
  }
}

void run(process.argv[2] ?? "");
