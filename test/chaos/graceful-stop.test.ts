/**
 * SIGTERM while requests and waiting claims are in flight: all of them are answered, new ones are refused, items claimed for
 * a disconnected caller are released, and nothing is left running.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { isAlive } from "../../src/kernel/embedded-postgres/processes.ts";
import { query, stoppedDataDir } from "../../src/kernel/embedded-postgres/testing.fixture.ts";
import { useDatabase } from "../database.ts";
import { seededRandom } from "../random.ts";
import { type Server, startServer } from "../server.ts";
import { newFilename, reached, trackingTable } from "../tracking.ts";
import { until } from "../until.ts";
import { connectionOf, processesOf } from "./embedded.ts";
import { createLedger, type Row, SELECT_ROWS } from "./ledger.ts";
import { createLoad } from "./load.ts";

const PIPELINE = "/api/v1/pipeline";
/** Long enough for a server to close its connections too early, if it does. */
const EARLY_CLOSE_MS = 500;

describe("on SIGTERM", () => {
  const database = useDatabase();
  const table = trackingTable(database);

  test("requests in flight are answered and new ones are refused", async () => {
    const server = await startServer({ database });
    const held = await table.put(reached("shard-worker", "started"));
    const ready = await table.put(reached("shard-splitter", "new"));
    const fresh = newFilename();
    const polls = [1, 2, 3].map(() => claim(server, "mysql-sender", 60));
    await until(() => claimsMade(server, "mysql_sender", polls.length), "the polls to wait");

    const unlock = await lockTable();
    const inFlight = [
      server.api.post(`${PIPELINE}/stages/shard-worker/done`, { filename: held, shard: 0 }),
      server.api.post(`${PIPELINE}/files/register`, { filename: fresh, shards: [0, 1] }),
      claim(server, "shard-splitter", 60),
    ];
    await until(() => statementsBlocked(inFlight.length), "the requests to be in flight");
    server.kill("SIGTERM");
    for (const poll of await Promise.all(polls)) expect(poll).toMatchObject({ status: 200, body: { items: [] } });

    await expect(server.api.get("/healthz")).rejects.toThrow("fetch failed");
    await unlock();
    expect(await Promise.all(inFlight)).toMatchObject([
      { status: 200, body: { status: "done" } },
      { status: 200, body: { created: true } },
      { status: 200, body: { items: [{ filename: ready, shard: 0 }] } },
    ]);
    expect(await server.exited).toBe(0);

    expect(await table.row(held)).toMatchObject({ shard_worker_status: "done" });
    expect(await table.row(ready)).toMatchObject({ shard_splitter_status: "started", leased: true });
    expect(await table.row(fresh, 1)).toMatchObject({ event_ingest_status: "started" });
    expect(await database.query("select from kernel.session where closed_at is null")).toEqual([]);
  });

  test("a claim in flight for a waiter that was already answered is released", async () => {
    await table.clear();
    const server = await startServer({ database });
    const poll = claim(server, "shard-splitter", 60);
    await until(() => claimsMade(server, "shard_splitter", 1), "the poll to wait");

    const filename = newFilename();
    const unlock = await lockTable(filename);
    await database.query("select pg_notify('millrace_wake', 'elsewhere tracking.shard-splitter')");
    await until(() => statementsBlocked(1), "the claim to be in flight");
    server.kill("SIGTERM");
    expect(await poll).toMatchObject({ status: 200, body: { items: [] } });
    await Promise.race([until(databaseLeft, "the server to leave the database"), sleep(EARLY_CLOSE_MS)]);
    await unlock();
    expect(await server.exited).toBe(0);
    expect(await table.row(filename)).toMatchObject({ shard_splitter_status: "new", leased: false, lost_count: 0 });
  });

  /** Blocks every statement on the table until the returned function is called, which may add a ready shard. */
  async function lockTable(filename?: string): Promise<() => Promise<void>> {
    const client = await database.db.dedicated("holds the lock");
    onTestFinished(() => client.end());
    await client.query("begin");
    await client.query("lock table tracking.pipeline_tracking in access exclusive mode");
    if (filename !== undefined) {
      await client.query("insert into tracking.pipeline_file (filename) values ($1)", [filename]);
      await client.query(
        "insert into tracking.pipeline_tracking (filename, shard, event_ingest_status) values ($1, 0, 'done')",
        [filename],
      );
    }
    return async () => void (await client.query("commit"));
  }

  /** The listener for hints is the last service that stops before the connections are closed. */
  async function databaseLeft(): Promise<boolean> {
    const listening =
      "select from pg_stat_activity where datname = current_database() and application_name like '% listen'";
    return (await database.query(listening)).length === 0;
  }

  async function statementsBlocked(count: number): Promise<boolean> {
    const waiting = await database.query(
      "select from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())",
    );
    return waiting.length >= count;
  }
});

test("a server under load stops with its Postgres and leaves nothing running", async () => {
  const dataDir = await stoppedDataDir();
  const server = await startServer({ database: { dataDir } });
  const ledger = createLedger();
  const load = createLoad({ ledger, random: seededRandom() });
  load.start(server.api);
  await load.answers(300);
  const processes = await processesOf(dataDir);
  expect(processes.filter(isAlive)).not.toEqual([]);

  expect(await server.stop()).toBe(0);
  await load.stop();
  expect(processes.filter(isAlive)).toEqual([]);

  const next = await startServer({ database: { dataDir } });
  expect(next.logged("Postgres is ready")).toMatchObject([{ origin: "started" }]);
  expect(ledger.contradictions(await query<Row>(await connectionOf(dataDir), SELECT_ROWS))).toEqual([]);
  expect(await next.stop()).toBe(0);
});

function claim(server: Server, stage: string, waitSeconds: number) {
  return server.api.post(`${PIPELINE}/queues/${stage}/claim`, { worker: "w", wait_seconds: waitSeconds });
}

/** A claim that finds nothing waits right after its statement. */
async function claimsMade({ url }: Server, stage: string, count: number): Promise<boolean> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const line = new RegExp(`^millrace_db_statement_seconds_count\\{.*"tracking\\.${stage}\\.claim".*\\} (\\d+)`, "m");
  return Number(line.exec(metrics)?.[1]) >= count;
}
