/**
 * The server is killed at random moments under load, and its embedded Postgres keeps running. Everything acknowledged is
 * there afterwards, nothing happened twice, and the next start continues.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { isAlive } from "../../src/kernel/embedded-postgres/processes.ts";
import { query, temporaryFolder } from "../../src/kernel/embedded-postgres/testing.fixture.ts";
import { seededRandom } from "../random.ts";
import { type Server, startServer } from "../server.ts";
import { connectionOf, processesOf } from "./embedded.ts";
import { createLedger, type Row, SELECT_ROWS } from "./ledger.ts";
import { createLoad } from "./load.ts";
import { countedSummary } from "./summary.ts";

const CYCLES = process.env["MILLRACE_TEST_LONG"] ? 50 : 3;
const ANSWERS_MAX = 400;
const FURTHER_MS_MAX = 15;

test(`after each of ${CYCLES} kills everything acknowledged is there, once`, {
  timeout: 30_000 + CYCLES * 15_000,
}, async () => {
  const random = seededRandom();
  const ledger = createLedger();
  const load = createLoad({ ledger, random });
  const dataDir = await temporaryFolder();
  const rows = async () => query<Row>(await connectionOf(dataDir), SELECT_ROWS);

  let server = await startServer({ database: { dataDir } });
  expect(server.logged("Postgres is ready")).toMatchObject([{ origin: "created" }]);

  for (let cycle = 0; cycle < CYCLES; cycle += 1) {
    load.start(server.api);
    await load.answers(random.between(1, ANSWERS_MAX));
    await sleep(random.between(0, FURTHER_MS_MAX));
    server.kill("SIGKILL");
    expect(await server.exited).toBe("SIGKILL");
    await load.stop();

    server = await startServer({ database: { dataDir } });
    expect(server.logged("Postgres is ready")).toMatchObject([{ origin: "adopted" }]);
    expect(warningsIn(server)).toEqual([]);
    expect(ledger.contradictions(await rows())).toEqual([]);
    await expectExactSummary(server, rows);
  }

  load.start(server.api);
  await load.answers(ANSWERS_MAX);
  await load.stop();
  expect(ledger.contradictions(await rows())).toEqual([]);
  const processes = await processesOf(dataDir);
  expect(await server.stop()).toBe(0);
  expect(processes.filter(isAlive)).toEqual([]);
});

/** Log lines with the level warn or worse. */
function warningsIn(server: Server): string[] {
  return server
    .output()
    .split("\n")
    .filter((line) => /"level":"?(40|50|60|warn|error|fatal)/.test(line));
}

/** A reclaim may change a row between the two reads; then it reads again. */
async function expectExactSummary(server: Server, rows: () => Promise<Row[]>): Promise<void> {
  const before = countedSummary(await rows());
  const { body } = await server.api.get("/api/v1/pipeline/metrics/summary");
  const after = countedSummary(await rows());
  if (JSON.stringify(before) !== JSON.stringify(after)) return expectExactSummary(server, rows);
  expect(body).toEqual(before);
}
