import { hostname } from "node:os";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog, silentLog } from "../../../test/log.ts";
import { startPostgresProxy } from "../../../test/postgres-proxy.ts";
import { signal, until } from "../../../test/until.ts";
import { openDb } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { openPulse, type Pulse } from "./pulse.ts";
import { openSession, SESSION_TTL_SECONDS, type SessionOptions } from "./session.ts";

const database = useDatabase();
let pulse: Pulse;

beforeAll(async () => {
  pulse = await openPulse({ db: database.db, log: silentLog });
});
afterAll(() => pulse.stop());
beforeEach(() => database.query("truncate kernel.session"));

test("a session has the process, its roles and version, and lasts fifteen seconds", async () => {
  const session = await open();
  const [row] = await database.query<{ seconds: number }>(
    "select *, extract(epoch from expires_at - now())::float8 as seconds from kernel.session where id = $1",
    [session.id()],
  );
  expect(row).toMatchObject({ process: `${hostname()}:${process.pid}`, roles: ["worker"], version: "1.2.3" });
  expect(row?.seconds).toBeGreaterThan(SESSION_TTL_SECONDS - 5);
  expect(row?.seconds).toBeLessThanOrEqual(SESSION_TTL_SECONDS);
});

describe("a heartbeat", () => {
  test("extends the session", async () => {
    const session = await open();
    const id = session.id();
    await expireIn(1);
    expect(await session.service.runOnce()).toEqual({ beaten: 1 });
    expect(session.id()).toBe(id);
    expect(await secondsLeft(id)).toBeGreaterThan(SESSION_TTL_SECONDS - 5);
  });

  test("does not extend an expired session: the process opens a new one and calls its listeners", async () => {
    const log = recordingLog();
    const session = await open({ log });
    const announced = announcementsOf(session);
    const old = session.id();
    await database.query("delete from kernel.session"); // As after the time for which expired sessions are kept.
    expect(await session.service.runOnce()).toEqual({ reopened: 1 });
    expect(announced()).toBe(1);
    expect(session.id()).not.toBe(old);
    await expireIn(-1);
    expect(await session.service.runOnce()).toEqual({ reopened: 1 });
    expect(announced()).toBe(2);
  });

  test("does not change the expired session", async () => {
    const log = recordingLog();
    const session = await open({ log });
    const old = session.id();
    await expireIn(-1);
    expect(await session.service.runOnce()).toEqual({ reopened: 1 });
    expect(session.id()).not.toBe(old);
    expect(log.lines).toMatchObject([{ level: "warn", fields: { session: session.id() } }]);
    expect(await secondsLeft(old)).toBeLessThan(0);
    expect(await secondsLeft(session.id())).toBeGreaterThan(SESSION_TTL_SECONDS - 5);
    expect(await session.service.runOnce()).toEqual({ beaten: 1 });
  });

  test("extends only its own session", async () => {
    const [mine, other] = [await open(), await open()];
    await expireIn(1);
    await mine.service.runOnce();
    expect(await secondsLeft(other.id())).toBeLessThan(5);
  });

  test("calls the listeners for another expired session, however old, at several heartbeats and not for ever", async () => {
    const session = await open();
    const announced = announcementsOf(session);
    await session.service.runOnce();
    expect(announced()).toBe(0);
    for (const ago of ["1 second", "50 minutes"]) {
      await database.query(
        "insert into kernel.session (process, roles, version, expires_at) values ('other', '{}', '1', now() - $1::interval)",
        [ago],
      );
      const before = announced();
      for (let beats = 0; beats < 10; beats += 1) await session.service.runOnce();
      expect(announced() - before).toBe(4);
    }
  });

  test("calls the listeners for a closed session, since its process may still hold work, but it has not died", async () => {
    const [mine, other, lost] = [await open(), await open(), await open()];
    const calls: boolean[] = [];
    mine.onExpiry((hasDied) => calls.push(hasDied));
    await mine.service.runOnce();
    await other.close();
    await mine.service.runOnce();
    expect(calls).toEqual([false]);
    await expireIn(-1, lost.id());
    await mine.service.runOnce();
    await mine.service.runOnce();
    expect(calls).toEqual([false, true, false]);
  });

  test("does not call the listeners for sessions that expired before its own was opened", async () => {
    const [closed, lost] = [await open(), await open()];
    await closed.close();
    await expireIn(-1, lost.id());
    const session = await open();
    const announced = announcementsOf(session);
    await session.service.runOnce();
    expect(announced()).toBe(0);
  });

  test("deletes the sessions that expired over an hour ago", async () => {
    const [old, recent, alive] = [await open(), await open(), await open()];
    await expireIn(-3_700, old.id());
    await expireIn(-3_500, recent.id());
    await alive.service.runOnce();
    expect(await ids()).toEqual([recent.id(), alive.id()]);
  });
});

describe("a session is kept", () => {
  // The ratios of production, shorter: a heartbeat may time out and another be sent before the session expires.
  const FAST = { ttlSeconds: 4, heartbeatIntervalMs: 500 };
  const SLEEP = statement("test.session.sleep", "select pg_sleep($1)");

  test("while every connection of the pool is busy for longer than a session lasts", async () => {
    const db = openDb({ connection: database.connection, poolSize: 10 });
    onTestFinished(() => db.close());
    const own = await openPulse({ db, log: silentLog });
    onTestFinished(own.stop);
    const session = await open({ pulse: own, ttlSeconds: 1, heartbeatIntervalMs: 200 });
    onTestFinished(session.close);
    const id = session.id();
    session.service.start();
    await Promise.all(Array.from({ length: 20 }, () => db.rows(SLEEP, [1.5])));
    expect(session.id()).toBe(id);
    expect(await secondsLeft(id)).toBeGreaterThan(0);
  });

  test("when the connection no longer answers: it is replaced, and the heartbeat is sent again in time", async () => {
    const proxy = await startPostgresProxy(database);
    const db = openDb({ connection: { connectionString: proxy.url } });
    onTestFinished(() => db.close());
    const own = await openPulse({ db, log: silentLog, timeoutMs: 1_000 });
    onTestFinished(own.stop);
    const reconnected = signal();
    own.onReconnect(reconnected.resolve);
    const session = await open({ pulse: own, ...FAST });
    onTestFinished(session.close);
    const id = session.id();
    const first = session.service.nextRun();
    session.service.start();
    await first;
    proxy.freeze();
    const frozenAt = performance.now();
    await reconnected.promise;
    await session.service.nextRun();
    expect(performance.now() - frozenAt).toBeLessThan(FAST.ttlSeconds * 1_000);
    expect(session.id()).toBe(id);
    await until(async () => ((await secondsLeft(id)) ?? 0) > FAST.ttlSeconds - 1, "the heartbeat");
  });
});

test("close ends the heartbeat, and the session expires at once", async () => {
  const session = await open();
  const beaten = session.service.nextRun();
  session.service.start();
  await beaten;
  await session.close();
  expect(await secondsLeft(session.id())).toBeLessThanOrEqual(0);
  expect(await database.query("select closed_at is not null as closed from kernel.session")).toEqual([
    { closed: true },
  ]);
});

const open = (options: Partial<SessionOptions> = {}) =>
  openSession({ pulse, log: silentLog, version: "1.2.3", roles: ["worker"], ...options });

function announcementsOf(session: Awaited<ReturnType<typeof open>>): () => number {
  let count = 0;
  session.onExpiry(() => (count += 1));
  return () => count;
}

async function expireIn(seconds: number, id?: string): Promise<void> {
  await database.query(
    "update kernel.session set expires_at = now() + make_interval(secs => $1) where $2::bigint is null or id = $2",
    [seconds, id],
  );
}

async function secondsLeft(id: string): Promise<number | undefined> {
  const [row] = await database.query<{ seconds: number }>(
    "select extract(epoch from expires_at - now())::float8 as seconds from kernel.session where id = $1",
    [id],
  );
  return row?.seconds;
}

async function ids(): Promise<string[]> {
  const rows = await database.query<{ id: string }>("select id from kernel.session order by id");
  return rows.map(({ id }) => id);
}
