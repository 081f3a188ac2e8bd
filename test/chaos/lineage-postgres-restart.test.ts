/** Postgres goes away while lineage is sent, and comes back: clients are told to come back too, and lose nothing. */
import * as fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { openDb } from "../../src/kernel/data/db.ts";
import { statement } from "../../src/kernel/data/statement.ts";
import { postmasterPid, stoppedDataDir } from "../../src/kernel/embedded-postgres/testing.fixture.ts";
import { anyEvent } from "../../src/lineage/graph/stories.fixture.ts";
import { testLineage } from "../../src/lineage/lineage.fixture.ts";
import type { TestDatabase } from "../database.ts";
import { contradictions, graphOf, inTime, makeTenant, startLineageLoad } from "../lineage-process.ts";
import { seededRandom } from "../random.ts";
import { startServer } from "../server.ts";
import { until } from "../until.ts";
import { connectionOf } from "./embedded.ts";

const RESTARTS = process.env["MILLRACE_TEST_LONG"] ? 10 : 2;
const EVENTS_PER_RESTART = 60;
const TABLES = Array.from({ length: 30 }, (_, n) => `t${n}`);
/** Clients of OpenLineage wait for 5 s; an attempt to connect is given up after as long. */
const SLOWEST_MS_MAX = 8_000;

/** The database that a server runs by itself. */
async function databaseIn(dataDir: string): Promise<TestDatabase> {
  const connection = await connectionOf(dataDir);
  const db = openDb({ connection });
  onTestFinished(() => db.close());
  let queries = 0;
  const query = <Row>(text: string, values: unknown[] = []) => {
    queries += 1;
    return db.rows(statement<Row>(`test.${queries}`, text), values);
  };
  return { db, connection, url: "", query };
}

test(`lineage goes on after its Postgres is killed ${RESTARTS} times`, {
  timeout: 60_000 + RESTARTS * 30_000,
}, async () => {
  const random = seededRandom();
  const told = `seed ${random.seed}`;
  const count = (RESTARTS + 1) * EVENTS_PER_RESTART;
  const events = inTime(fc.sample(anyEvent({ tables: TABLES, runs: 60 }), { numRuns: count, seed: random.seed }));
  const dataDir = await stoppedDataDir();
  const server = await startServer({ database: { dataDir } });
  const tenant = await makeTenant(server.api, 7);
  const load = startLineageLoad({ tenant, events, clients: 8, urls: [server.url] });
  for (let restart = 1; restart <= RESTARTS; restart += 1) {
    await load.goesOn(random.between(1, EVENTS_PER_RESTART));
    process.kill(postmasterPid(dataDir), restart % 2 === 0 ? "SIGINT" : "SIGKILL");
    await until(() => server.logged("Postgres is back").length >= restart, "Postgres to come back");
  }
  await load.done();

  expect(load.odd, "anything but 503 with Retry-After").toEqual([]);
  expect(load.unanswered()).toBe(0);
  expect(load.refused()).toBeGreaterThan(0);
  expect(load.slowestMs()).toBeLessThan(SLOWEST_MS_MAX);
  const database = await databaseIn(dataDir);
  const lineage = testLineage(database);
  expect(await contradictions(database, tenant.id, load.acknowledged), told).toEqual([]);
  expect(await lineage.graph("7"), told).toEqual(await graphOf(lineage, events));
  expect(await server.stop()).toBe(0);
});
