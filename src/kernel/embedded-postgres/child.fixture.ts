/** A process with only the embedded Postgres, for tests that kill it: reports the result of the start, then runs until a message ends it. */

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
