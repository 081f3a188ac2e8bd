/** Hints as another process sends them, for tests that change tables by themselves. */
import { HINTS_CHANNEL } from "../src/kernel/work/pulse.ts";
import type { TestDatabase } from "./database.ts";

export async function sendHint(database: TestDatabase, kind: string, id: string): Promise<void> {
  await database.query("select pg_notify($1, pg_current_xact_id()::text || ' ' || $2::text)", [
    HINTS_CHANNEL,
    JSON.stringify([{ kind, id }]),
  ]);
}
