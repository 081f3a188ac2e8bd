import { hostname } from "node:os";
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { rememberingLog, silentLog } from "../../../test/log.ts";
import { openSession, SESSION_TTL_SECONDS } from "./session.ts";

const database = useDatabase();
beforeEach(() => database.query("truncate kernel.session"));

test("a session says which process lives, with what roles and version, for fifteen seconds", async () => {
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
  test("keeps the session for as long again", async () => {
    const session = await open();
    const id = session.id();
    await expireIn(1);
    expect(await session.service.runOnce()).toEqual({ beaten: 1 });
    expect(session.id()).toBe(id);
    expect(await secondsLeft(id)).toBeGreaterThan(SESSION_TTL_SECONDS - 5);
  });

  test("does not revive a session that ran out: the process is told, and goes on with a new one", async () => {
    const log = rememberingLog();
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

  test("is its own alone", async () => {
    const [mine, other] = [await open(), await open()];
    await expireIn(1);
    await mine.service.runOnce();
    expect(await secondsLeft(other.id())).toBeLessThan(5);
  });

  test("tells when another process has fallen silent, for some beats and not for ever", async () => {
    const session = await open();
    let told = 0;
    session.onSilence(() => {
      told += 1;
    });
    await session.service.runOnce();
    expect(told).toBe(0);
    await database.query(
      "insert into kernel.session (process, roles, version, expires_at) values ('other', '{}', '1', now() - interval '1 second')",
    );
    await session.service.runOnce();
    expect(told).toBe(1);
    await database.query("update kernel.session set expires_at = now() - interval '1 minute' where process = 'other'");
    await session.service.runOnce();
    expect(told).toBe(1);
  });

  test("forgets the sessions of processes that died over an hour ago", async () => {
    const [dead, silent, alive] = [await open(), await open(), await open()];
    await expireIn(-3_700, dead.id());
    await expireIn(-3_500, silent.id());
    await alive.service.runOnce();
    expect(await ids()).toEqual([silent.id(), alive.id()]);
  });
});

test("close ends the heartbeat and removes the session", async () => {
  const session = await open();
  const beaten = session.service.nextRun();
  session.service.start();
  await beaten;
  await session.close();
  expect(await ids()).toEqual([]);
});

const open = (options: Partial<Parameters<typeof openSession>[0]> = {}) =>
  openSession({ db: database.db, log: silentLog, version: "1.2.3", roles: ["worker"], ...options });

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
