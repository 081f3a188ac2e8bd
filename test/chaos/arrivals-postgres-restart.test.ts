/** Postgres restarts, or loses all connections, during arrivals and runs: nothing is lost or done twice. */
import { expect, test } from "vitest";
import { findViolations } from "../../src/arrivals/store/invariants.ts";
import { openDb } from "../../src/kernel/data/db.ts";
import { postmasterPid, stoppedDataDir } from "../../src/kernel/embedded-postgres/testing.fixture.ts";
import { announce, defineModel, KPI, setUpServers, valuesOf } from "../arrivals-servers.ts";
import { useDatabase } from "../database.ts";
import { seededRandom } from "../random.ts";
import type { Server } from "../server.ts";
import { until } from "../until.ts";
import { connectionOf } from "./embedded.ts";

const CUTS = process.env["MILLRACE_TEST_LONG"] ? 50 : 2;
const ARRIVALS_BETWEEN_MAX = 10;
/** Some milliseconds of work. */
const WORK = { engine: "duckdb", sql: `select '${KPI}' as kpi_id, sum(i)::double as value from range(3000000) t(i)` };
const VALUE = (3_000_000 * 2_999_999) / 2;

const database = useDatabase();

/** Announces one opTime after the other, each until it is acknowledged. */
function createLoad({ api }: Server) {
  const acknowledged: string[] = [];
  const stopping = new AbortController();
  const running = (async () => {
    for (let n = 1; !stopping.signal.aborted; n += 1) {
      const opTime = `T${n}`;
      await until(
        () =>
          announce(api, opTime, opTime).then(
            ({ status }) => status === 200,
            () => false,
          ),
        `the arrival of ${opTime} to be acknowledged`,
      );
      acknowledged.push(opTime);
    }
  })();
  return {
    acknowledged,
    /** Waits for this many more. */
    async acknowledges(count: number): Promise<void> {
      const goal = acknowledged.length + count;
      await until(() => acknowledged.length >= goal, `${count} more arrivals`);
    },
    async stop(): Promise<void> {
      stopping.abort();
      await running;
    },
  };
}

/** Every arrival that was acknowledged has led to one success, and its result is there. */
async function allDone(server: Server, opTimes: readonly string[]): Promise<void> {
  const tasks = async (opTime: string) => {
    const { body } = await server.api.get<{ items: { status: string; generation: number }[] }>(
      `/api/v1/kpi/task-logs?modelId=m&opTime=${opTime}`,
    );
    return body.items;
  };
  for (const opTime of opTimes) {
    await until(async () => (await tasks(opTime))[0]?.status === "SUCCESS", `the run of ${opTime}`);
    const successes = (await tasks(opTime)).filter(({ status }) => status === "SUCCESS");
    expect(successes, opTime).toMatchObject([{ generation: 1 }]);
    expect(await valuesOf(server, opTime), opTime).toEqual([[VALUE, 1]]);
  }
}

test("models run once when the server's own Postgres is killed", async () => {
  const setup = await setUpServers(database);
  const dataDir = await stoppedDataDir();
  const server = await setup.start("api,scheduler,worker", { dataDir });
  await defineModel(server, WORK);
  const load = createLoad(server);
  await load.acknowledges(5);
  process.kill(postmasterPid(dataDir), "SIGKILL");
  await until(() => server.logged("Postgres is back").length > 0, "Postgres to come back");
  await load.acknowledges(5);
  await load.stop();
  await allDone(server, load.acknowledged);
  const db = openDb({ connection: await connectionOf(dataDir) });
  expect(await findViolations(db)).toEqual([]);
  await db.close();
  expect(await server.stop()).toBe(0);
});

test(`models run once when all connections are cut ${CUTS} times`, { timeout: 60_000 + CUTS * 5_000 }, async () => {
  const random = seededRandom();
  const setup = await setUpServers(database);
  const servers = await Promise.all([setup.start("api,scheduler,worker"), setup.start("worker")]);
  await defineModel(servers[0], WORK);
  const load = createLoad(servers[0]);
  for (let cut = 0; cut < CUTS; cut += 1) {
    await load.acknowledges(random.between(1, ARRIVALS_BETWEEN_MAX));
    const ours = "datname = current_database() and application_name like 'millrace%'";
    const ended = await database.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${ours}`);
    expect(ended.length).toBeGreaterThan(0);
  }
  await load.acknowledges(ARRIVALS_BETWEEN_MAX);
  await load.stop();
  await allDone(servers[0], load.acknowledged);
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all(servers.map((server) => server.stop()))).toEqual([0, 0]);
});
