/** A server with nothing to do does next to nothing. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { startServer } from "../server.ts";
import { until } from "../until.ts";

/** The loops that only look for lost hints come round every two minutes; the short look sees the busier ones. */
const WATCH_SECONDS = process.env["MILLRACE_TEST_LONG"] ? 120 : 20;
const STATEMENTS_A_MINUTE_MAX = 30;
const MEMORY_MB_MAX = 150;

const database = useDatabase();

const TIMEOUT_MS = (WATCH_SECONDS + 60) * 1000;

test("an idle server sends fewer than 30 statements a minute and stays below 150 MB", {
  timeout: TIMEOUT_MS,
}, async () => {
  const server = await startServer({ database });
  let before = await look();
  // That belongs to the start.
  await until(async () => {
    const earlier = before;
    await sleep(1_500); // Figures may be a second old.
    before = await look();
    return before.statements === earlier.statements;
  }, "the first round of every loop");
  await sleep(WATCH_SECONDS * 1000); // How long it is quiet is what is measured.
  const after = await look();
  expect(before.statements).toBeGreaterThan(0);
  expect(((after.statements - before.statements) * 60) / WATCH_SECONDS).toBeLessThan(STATEMENTS_A_MINUTE_MAX);
  expect(after.memoryMb).toBeLessThan(MEMORY_MB_MAX);

  /** What the server says of itself. Asking costs no statement. */
  async function look() {
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    const values = (pattern: RegExp) => [...metrics.matchAll(pattern)].map(([, value]) => Number(value));
    const statements = values(/^millrace_db_statement_seconds_count\{.*\} (\S+)$/gm).reduce((sum, n) => sum + n, 0);
    const [bytes = Number.NaN] = values(/^process_resident_memory_bytes (\S+)$/gm);
    return { statements, memoryMb: bytes / 1024 ** 2 };
  }
});
