/**
 * A server is suspended in the middle of its work, perhaps while it holds a tenant's graph. The other one goes on, at the
 * latest when Postgres ends the transaction of the suspended one; and when that comes back, it harms nothing.
 */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { anyEvent } from "../../src/lineage/graph/stories.fixture.ts";
import { testLineage } from "../../src/lineage/lineage.fixture.ts";
import { useDatabase } from "../database.ts";
import { contradictions, graphOf, inTime, makeTenant, startLineageLoad } from "../lineage-process.ts";
import { seededRandom } from "../random.ts";
import { type Server, startServer } from "../server.ts";

const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
const SLEEPS = LONG ? 6 : 1;
const EVENTS_PER_SLEEP = LONG ? 150 : 80;
const TABLES = Array.from({ length: 30 }, (_, n) => `t${n}`);

const database = useDatabase();
const lineage = testLineage(database);

test(`events are taken while a server sleeps, ${SLEEPS} times`, { timeout: 60_000 + SLEEPS * 60_000 }, async () => {
  const random = seededRandom();
  const told = `seed ${random.seed}`;
  const count = (SLEEPS + 1) * EVENTS_PER_SLEEP;
  const events = inTime(fc.sample(anyEvent({ tables: TABLES, runs: 60 }), { numRuns: count, seed: random.seed }));
  const [sleeper, awake] = (await Promise.all([0, 1].map(() => startServer({ database })))) as [Server, Server];
  const tenant = await makeTenant(awake.api, 7);
  const load = startLineageLoad({ tenant, events, clients: 12, urls: [sleeper.url, awake.url] });
  for (let sleep = 0; sleep < SLEEPS; sleep += 1) {
    await load.goesOn(random.between(1, EVENTS_PER_SLEEP / 2));
    sleeper.kill("SIGSTOP");
    load.aimAt([awake.url]);
    await load.goesOn(EVENTS_PER_SLEEP / 2);
    sleeper.kill("SIGCONT");
    load.aimAt([sleeper.url, awake.url]);
  }
  await load.done();
  expect(load.odd, told).toEqual([]);
  expect(await contradictions(database, tenant.id, load.acknowledged), told).toEqual([]);
  expect(await lineage.graph("7"), told).toEqual(await graphOf(lineage, events));
  expect(await Promise.all([sleeper.stop(), awake.stop()])).toEqual([0, 0]);
});
