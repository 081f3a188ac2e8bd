/**
 * Forty clients of two servers tell of the same few tables at once: they are created, renamed, dropped, read and written.
 * No client sees an error (at most it is told to come again), the database no deadlock, and the graph is the one that the
 * events make one by one.
 */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { anyEvent } from "../../src/lineage/graph/stories.fixture.ts";
import { testLineage } from "../../src/lineage/lineage.fixture.ts";
import { useDatabase } from "../database.ts";
import { contradictions, graphOf, inTime, makeTenant, startLineageLoad } from "../lineage-process.ts";
import { seededRandom } from "../random.ts";
import { startServer } from "../server.ts";

const EVENTS = process.env["MILLRACE_TEST_LONG"] ? 1_000 : 160;
const CLIENTS = 40;
const TABLES = Array.from({ length: 8 }, (_, n) => `t${n}`);

const database = useDatabase();
const lineage = testLineage(database);

test(`${CLIENTS} writers of the same tables get along`, { timeout: 60_000 + EVENTS * 400 }, async () => {
  const random = seededRandom();
  const told = `seed ${random.seed}`;
  const events = inTime(fc.sample(anyEvent({ tables: TABLES, runs: 20 }), { numRuns: EVENTS, seed: random.seed }));
  const servers = await Promise.all([0, 1].map(() => startServer({ database })));
  const tenant = await makeTenant((servers[0] as (typeof servers)[0]).api, 7);
  const load = startLineageLoad({ tenant, events, clients: CLIENTS, urls: servers.map(({ url }) => url) });
  await load.done();
  expect(load.odd, told).toEqual([]);
  expect(load.unanswered(), told).toBe(0);
  expect(await Promise.all(servers.map((server) => server.stop()))).toEqual([0, 0]);

  expect(await contradictions(database, tenant.id, load.acknowledged), told).toEqual([]);
  expect(await lineage.flaws("7"), told).toEqual([]);
  expect(await lineage.graph("7"), told).toEqual(await graphOf(lineage, events));
  // The connections of the servers have ended, so that all they met with is counted.
  const counted = await database.query(
    "select deadlocks::int from pg_stat_database where datname = current_database()",
  );
  expect(counted, told).toEqual([{ deadlocks: 0 }]);
});
