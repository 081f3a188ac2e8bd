/**
 * Servers that take lineage are killed at random moments while several clients send. Every event that was acknowledged is
 * there afterwards, once and word for word, and the graph is the one that the events tell of.
 */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { anyEvent } from "../../src/lineage/graph/stories.fixture.ts";
import { testLineage } from "../../src/lineage/lineage.fixture.ts";
import { useDatabase } from "../database.ts";
import { contradictions, graphOf, inTime, makeTenant, startLineageLoad } from "../lineage-process.ts";
import { seededRandom } from "../random.ts";
import { startServer } from "../server.ts";

const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
const KILLS = LONG ? 12 : 3;
const EVENTS_PER_KILL = LONG ? 100 : 60;
const CLIENTS = 12;
const TABLES = Array.from({ length: 30 }, (_, n) => `t${n}`);

const database = useDatabase();
const lineage = testLineage(database);

test(`after ${KILLS} kills of one of two servers nothing that was acknowledged is lost or doubled`, {
  timeout: 120_000 + KILLS * 20_000,
}, async () => {
  const random = seededRandom();
  const events = inTime(
    fc.sample(anyEvent({ tables: TABLES, runs: 60 }), { numRuns: KILLS * EVENTS_PER_KILL, seed: random.seed }),
  );
  const servers = await Promise.all([0, 1].map(() => startServer({ database })));
  const urls = () => servers.map(({ url }) => url);
  const tenant = await makeTenant((servers[0] as (typeof servers)[0]).api, 7);
  const load = startLineageLoad({ tenant, events, clients: CLIENTS, urls: urls() });

  for (let kill = 0; kill < KILLS; kill += 1) {
    await load.goesOn(random.between(1, EVENTS_PER_KILL));
    const victim = servers[kill % 2];
    victim?.kill("SIGKILL");
    expect(await victim?.exited).toBe("SIGKILL");
    servers[kill % 2] = await startServer({ database });
    load.aimAt(urls());
  }
  await load.done();

  const told = `seed ${random.seed}`;
  expect(load.odd, told).toEqual([]);
  expect(load.acknowledged.size).toBe(events.length);
  expect(await contradictions(database, tenant.id, load.acknowledged), told).toEqual([]);
  expect(await lineage.flaws("7"), told).toEqual([]);
  expect(await lineage.graph("7"), told).toEqual(await graphOf(lineage, events));
  expect(await Promise.all(servers.map((server) => server.stop()))).toEqual([0, 0]);
});
