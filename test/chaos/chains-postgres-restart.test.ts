/** Postgres restarts in the middle of runs, or all connections are cut: the runs continue, and end correctly. */
import { Client } from "pg";
import { expect, test } from "vitest";
import { findViolations } from "../../src/chains/store/invariants.ts";
import { openDb } from "../../src/kernel/data/db.ts";
import { postmasterPid, stoppedDataDir } from "../../src/kernel/embedded-postgres/testing.fixture.ts";
import { useDatabase } from "../database.ts";
import { seededRandom } from "../random.ts";
import { until } from "../until.ts";
import { contradictions } from "./chains-audit.ts";
import { createChainsLoad } from "./chains-load.ts";
import { openSetup, recordMoves, type Store } from "./chains-setup.ts";
import { connectionOf } from "./embedded.ts";

const CUTS = process.env["MILLRACE_TEST_LONG"] ? 50 : 2;
const ENDS_MAX = 8;
const SETTINGS = { slots: 10, lostLimit: 1_000 };

const database = useDatabase();

test("runs continue when the embedded Postgres is killed", async () => {
  const setup = await openSetup(undefined, SETTINGS);
  const dataDir = await stoppedDataDir();
  const server = await setup.start("api,scheduler,worker", { dataDir });
  const store = storeIn(dataDir);
  await recordMoves(store);
  const load = await createChainsLoad({ store, random: seededRandom() }, server);
  load.start(server);
  await load.ends(ENDS_MAX);

  process.kill(postmasterPid(dataDir), "SIGKILL");
  await until(() => server.logged("Postgres is back").length > 0, "Postgres to come back");
  await load.ends(ENDS_MAX);
  await load.stop();
  await load.ended();

  expect(await contradictions(store, setup, load.acknowledged)).toEqual([]);
  const db = openDb({ connection: await connectionOf(dataDir) });
  expect(await findViolations(db)).toEqual([]);
  await db.close();
  expect(await server.stop()).toBe(0);
});

test(`runs continue when all connections are cut ${CUTS} times`, { timeout: 60_000 + CUTS * 5_000 }, async () => {
  const random = seededRandom();
  const setup = await openSetup(database, SETTINGS);
  await recordMoves(database);
  const servers = await Promise.all([setup.start("api,scheduler,worker"), setup.start("worker")]);
  const load = await createChainsLoad({ store: database, random }, servers[0]);
  load.start(servers[0]);
  for (let cut = 0; cut < CUTS; cut += 1) {
    await load.ends(random.between(1, ENDS_MAX));
    const ours = "datname = current_database() and application_name like 'millrace%'";
    const ended = await database.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${ours}`);
    expect(ended.length).toBeGreaterThan(0);
  }
  await load.ends(ENDS_MAX);
  await load.stop();
  await load.ended();

  expect(await contradictions(database, setup, load.acknowledged)).toEqual([]);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all(servers.map((server) => server.stop()))).toEqual([0, 0]);
});

/** A restarted Postgres has another address, so each query looks it up first. */
function storeIn(dataDir: string): Store {
  return {
    async query<Row>(text: string, values: unknown[] = []) {
      const client = new Client(await connectionOf(dataDir));
      client.on("error", () => {}); // A statement on a cut connection fails by itself.
      await client.connect();
      try {
        return (await client.query(text, values)).rows as Row[];
      } finally {
        await client.end();
      }
    },
  };
}
