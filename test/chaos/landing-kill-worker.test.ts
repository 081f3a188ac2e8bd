/**
 * The process that lands a window is killed, each time at another moment. Another process lands it, and whatever the lake had
 * before, it has every record once in the end, and the table has arrived.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { createEngines } from "../../src/engines/engines.ts";
import { makeSource } from "../../src/harvest/landing/windows.fixture.ts";
import { endSessionOf } from "../arrivals-servers.ts";
import { useDatabase } from "../database.ts";
import { startServer } from "../server.ts";
import { until } from "../until.ts";

const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
const KILLS = LONG ? 20 : 4;
const RECORDS = 3_000;

const database = useDatabase();

test(`a window lands although its process is killed ${KILLS} times`, { timeout: 60_000 + KILLS * 40_000 }, async () => {
  const directory = await mkdtemp(join(tmpdir(), "millrace-landing-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const lakeDir = join(directory, "lake");
  const env = { MILLRACE_ROLES: "api,worker", MILLRACE_LAKE_DIR: lakeDir, MILLRACE_SECRET_KEY: "0".repeat(64) };
  const start = () => startServer({ database, env });
  const source = await makeSource(database);
  const records = (text: string) =>
    Array.from({ length: RECORDS }, (_, no) => ({ key: `${no}`, title: `${text} ${no}` }));
  const isLanding = async () => (await source.landing())["status"] === "LANDING";

  let server = await start();
  await source.harvest(records("first"));
  for (let kill = 1; kill <= KILLS; kill += 1) {
    await database.query("select pg_notify('millrace_wake', 'test harvest.landing')");
    await until(
      async () => (await isLanding()) || (await source.landing())["status"] === "LANDED",
      "the landing to begin",
    );
    await sleep((kill * 37) % 120); // From the first read to the commit.
    server.kill("SIGKILL");
    await server.exited;
    await endSessionOf(database, server.pid);
    await source.harvest(records(`after kill ${kill}`));
    server = await start();
  }
  await until(async () => (await source.landing())["status"] === "LANDED", "the last landing", 60_000);
  expect(await source.landing()).toMatchObject({ wanted: KILLS + 1, landed: KILLS + 1, rows: RECORDS });

  const engines = createEngines({}, { lakeDir });
  const { rows } = await engines.get("duckdb").query(
    `select count(*) as rows, count(distinct _key) as keys, count(*) filter (where title like 'after kill ${KILLS} %') as last
     from crossref_works`,
    { signal: AbortSignal.timeout(30_000), rowsMax: 10 },
  );
  await engines.close();
  expect(rows).toEqual([{ rows: RECORDS, keys: RECORDS, last: RECORDS }]);
  const arrived = await database.query("select from arrivals.metrics_etl_log where table_name = 'crossref_works'");
  expect(arrived).toHaveLength(1);
  expect(await server.stop()).toBe(0);
});
