/** The connection for heartbeats and hints: how its failure is detected, and how soon it is replaced. */
import { afterEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog, silentLog } from "../../../test/log.ts";
import { startPostgresProxy } from "../../../test/postgres-proxy.ts";
import { signal, until } from "../../../test/until.ts";
import { type Db, isUnavailable, openDb } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { openPulse, type Pulse, type PulseOptions } from "./pulse.ts";

const database = useDatabase();
const APPLICATION = "millrace pulse";
const PID = statement<{ pid: number }>("test.pulse.pid", "select pg_backend_pid() as pid");
const SLEEP = statement("test.pulse.sleep", "select pg_sleep($1)");

const opened: { pulse: Pulse; db: Db }[] = [];
afterEach(async () => {
  for (const { pulse, db } of opened.splice(0)) {
    await pulse.stop();
    await db.close();
  }
});

describe("a pulse", () => {
  test("has one connection of its own, whatever it is used for", async () => {
    const pulse = await open();
    const [first] = await pulse.rows(PID);
    await pulse.notify(["a"]);
    expect(await pulse.rows(PID)).toEqual([first]);
    expect(await connections()).toEqual([first]);
  });

  test("answers while every connection of the pool is busy", async () => {
    const db = openDb({ connection: database.connection, poolSize: 2 });
    const pulse = await open({ db });
    const busy = [1, 2, 3].map(() => db.rows(SLEEP, [1]));
    expect(await pulse.rows(PID)).toHaveLength(1);
    expect(db.stats().waiting).toBe(1);
    await Promise.all(busy);
  });

  test("sends notifications to all processes, itself included", async () => {
    const [here, there] = [await open(), await open()];
    const received = [here, there].map((pulse) => firstNotification(pulse));
    await here.notify(["what happened"]);
    expect(await Promise.all(received)).toEqual(["what happened", "what happened"]);
  });

  test("measures its statements like the pools", async () => {
    const names: string[] = [];
    const db = openDb({ connection: database.connection, onStatement: (name) => void names.push(name) });
    const pulse = await open({ db });
    await pulse.rows(PID);
    expect(names).toEqual(["kernel.pulse.listen", "kernel.pulse.listen_hints", "test.pulse.pid"]);
  });

  test("keeps its connection when a statement is refused or times out on the server", async () => {
    const pulse = await open({ timeoutMs: 2_000 });
    const before = await pulse.rows(PID);
    await expect(pulse.rows(statement("test.pulse.wrong", "select 1 / 0"))).rejects.toThrow("division by zero");
    await expect(pulse.rows(SLEEP, [30])).rejects.toThrow("statement timeout");
    expect(await pulse.rows(PID)).toEqual(before);
  });

  test("is not opened without a database", async () => {
    const proxy = await startPostgresProxy(database);
    await proxy.cut();
    await expect(open({ url: proxy.url })).rejects.toSatisfy(isUnavailable);
  });
});

describe("a connection that is lost", () => {
  test("is replaced by one that listens again", async () => {
    const log = recordingLog();
    const pulse = await open({ log });
    const reconnected = nextReconnect(pulse);
    const [lost] = await pulse.rows(PID);
    await database.query("select pg_terminate_backend($1, 10000)", [lost?.pid]);
    await reconnected;
    expect(await pulse.rows(PID)).not.toEqual([lost]);
    expect(await connections()).toHaveLength(1);
    expect(log.lines).toMatchObject([
      { level: "warn", message: "the connection for heartbeats and hints was lost and is made again" },
    ]);
    const received = firstNotification(pulse);
    await (await open()).notify(["again"]);
    expect(await received).toBe("again");
  });

  test("because it no longer answers is detected at the time-out of the next statement, and replaced at once", async () => {
    const proxy = await startPostgresProxy(database);
    const timeoutMs = 1_500;
    const pulse = await open({ url: proxy.url, timeoutMs });
    const reconnected = nextReconnect(pulse);
    proxy.freeze();
    const startedMs = performance.now();
    await expect(pulse.rows(PID)).rejects.toThrow("timeout");
    await reconnected;
    expect(performance.now() - startedMs).toBeLessThan(timeoutMs + 900);
    const received = firstNotification(pulse);
    await (await open()).notify(["again"]);
    expect(await received).toBe("again");
  });

  test("fails statements as unavailable until it is replaced", async () => {
    const proxy = await startPostgresProxy(database);
    const db = openDb({ connection: { connectionString: proxy.url } });
    let failures = 0;
    const dedicated: Db["dedicated"] = (...asked) =>
      db.dedicated(...asked).catch((error: unknown) => {
        failures += 1;
        throw error;
      });
    const pulse = await open({ db: { ...db, dedicated } });
    const reconnected = nextReconnect(pulse);
    await proxy.cut();
    await until(() => !pulse.isConnected(), "the loss");
    await expect(pulse.rows(PID)).rejects.toSatisfy(isUnavailable);
    await until(() => failures > 1, "attempts that fail");
    await proxy.restore();
    await reconnected;
    expect(await pulse.rows(PID)).toHaveLength(1);
  });

  test("is tried again when the connection attempt times out", async () => {
    const proxy = await startPostgresProxy(database);
    const pulse = await open({ url: proxy.url, timeoutMs: 300 });
    const reconnected = nextReconnect(pulse);
    proxy.freezeNext();
    proxy.freeze();
    await expect(pulse.rows(PID)).rejects.toThrow();
    await reconnected;
    expect(await pulse.rows(PID)).toHaveLength(1);
  });
});

describe("stop", () => {
  test("closes the connection", async () => {
    const pulse = await open();
    await pulse.stop();
    expect(await connections()).toEqual([]);
    await expect(pulse.rows(PID)).rejects.toSatisfy(isUnavailable);
  });

  test("does not wait for a connection that no longer answers", async () => {
    const proxy = await startPostgresProxy(database);
    const pulse = await open({ url: proxy.url, timeoutMs: 300 });
    proxy.freeze();
    const answer = expect(pulse.rows(PID)).rejects.toThrow();
    await pulse.stop();
    await answer;
  });

  test("ends the attempts to reconnect", async () => {
    const proxy = await startPostgresProxy(database);
    const pulse = await open({ url: proxy.url });
    await proxy.cut();
    await until(() => !pulse.isConnected(), "the loss");
    await pulse.stop();
    await proxy.restore();
    expect(await connections()).toEqual([]);
  });
});

async function open({ url, ...options }: Partial<PulseOptions> & { url?: string } = {}): Promise<Pulse> {
  const connection = url === undefined ? database.connection : { connectionString: url };
  const db = options.db ?? openDb({ connection });
  try {
    const pulse = await openPulse({ log: silentLog, ...options, db });
    opened.push({ pulse, db });
    return pulse;
  } catch (error) {
    await db.close();
    throw error;
  }
}

function firstNotification(pulse: Pulse): Promise<string> {
  const { promise, resolve } = signal<string>();
  pulse.onNotification(resolve);
  return promise;
}

function nextReconnect(pulse: Pulse): Promise<void> {
  const { promise, resolve } = signal();
  pulse.onReconnect(resolve);
  return promise;
}

function connections(): Promise<{ pid: number }[]> {
  return database.query(
    "select pid from pg_stat_activity where datname = current_database() and application_name = $1 and state is not null",
    [APPLICATION],
  );
}
