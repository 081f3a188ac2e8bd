import { once } from "node:events";
import type pg from "pg";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { rememberingLog, silentLog } from "../../../test/log.ts";
import { signal, until } from "../../../test/until.ts";
import { type Db, openDb } from "../data/db.ts";
import { createWake, type Wake } from "./wake.ts";

const database = useDatabase();

/** Two processes, as far as Postgres can tell. */
let here: Wake;
let there: Wake;
let opened: Db[];

beforeEach(async () => {
  opened = [open("wake here"), open("wake there")];
  [here, there] = opened.map((db) => createWake({ db, log: silentLog })) as [Wake, Wake];
  await Promise.all([here.start(), there.start()]);
});
afterEach(async () => {
  await Promise.all([here.stop(), there.stop()]);
  await Promise.all(opened.map((db) => db.close()));
});

describe("a hint", () => {
  test("reaches listeners in this process at once, and those in another one soon", async () => {
    const heard = signal();
    there.on("topic", () => heard.resolve());
    let local = 0;
    here.on("topic", () => (local += 1));
    here.hint("topic");
    expect(local).toBe(1);
    await heard.promise;
    expect(local).toBe(1); // Its own notification has come back by now, and is no news.
  });

  test("reaches those who listen to its topic, and no others", async () => {
    const heard: string[] = [];
    const last = signal();
    there.on("a b", () => heard.push("a b"));
    there.on("a", () => heard.push("a"));
    there.on("last", () => last.resolve());
    here.hint("a b");
    here.hint("last");
    await last.promise;
    expect(heard).toEqual(["a b"]);
  });

  test("goes out though its process stops right after it", async () => {
    const heard = signal();
    there.on("topic", () => heard.resolve());
    here.hint("other"); // What follows has to wait for its turn.
    here.hint("topic");
    await here.stop();
    await heard.promise;
  });

  test("does not reach a listener that went away", async () => {
    let heard = 0;
    const leave = here.on("topic", () => (heard += 1));
    here.hint("topic");
    leave();
    here.hint("topic");
    expect(heard).toBe(1);
  });

  test("of a burst goes out once, and later ones at most every ten milliseconds", async () => {
    const received = await countNotifications(async () => {
      for (let n = 0; n < 1_000; n += 1) here.hint("burst");
    });
    expect(received).toBe(1);

    let elapsedMs = 0;
    const paced = await countNotifications(async () => {
      const started = performance.now();
      for (let n = 0; n < 200; n += 1) {
        here.hint("paced");
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      elapsedMs = performance.now() - started;
    });
    expect(paced).toBeGreaterThan(1);
    expect(paced).toBeLessThanOrEqual(elapsedMs / 9 + 2); // A timer may fire a millisecond early.
  });

  test("before the start stays in the process", async () => {
    const idle = createWake({ db: database.db, log: silentLog });
    let heard = 0;
    idle.on("topic", () => (heard += 1));
    expect(await countNotifications(async () => idle.hint("topic"))).toBe(0);
    expect(heard).toBe(1);
  });

  test("that cannot be sent is told to the log, and to nobody else", async () => {
    const db = open("wake broken");
    const log = rememberingLog();
    const broken = createWake({ db, log });
    await broken.start();
    await db.close();
    broken.hint("topic");
    await until(() => log.lines.length > 0, "the log");
    expect(log.lines).toMatchObject([{ level: "warn", message: "a wake-up hint was not sent" }]);
    await broken.stop();
  });
});

describe("a listener's connection that breaks", () => {
  test("is replaced; then everyone looks again, since hints may have been missed, and hears the next ones", async () => {
    const heard: string[] = [];
    const looked = signal();
    const next = signal();
    there.on("a", () => {
      heard.push("a");
      looked.resolve();
    });
    there.on("b", () => {
      heard.push("b");
      if (heard.length > 2) next.resolve();
    });
    await terminate("wake there listen");
    await looked.promise;
    expect(heard.sort()).toEqual(["a", "b"]);
    here.hint("b");
    await next.promise;
    expect(await connections("wake there listen")).toHaveLength(1);
  });

  test("is tried for again until it is there", async () => {
    const db = open("wake flaky");
    let refusals = 0;
    const dedicated = async (purpose: string) => {
      refusals -= 1;
      if (refusals >= 0) throw new Error("connection refused");
      return db.dedicated(purpose);
    };
    const flaky = createWake({ db: { ...db, dedicated }, log: silentLog });
    await flaky.start();
    const looked = signal();
    flaky.on("topic", () => looked.resolve());
    refusals = 2;
    await terminate("wake flaky listen");
    await looked.promise;
    expect(refusals).toBe(-1);
    await flaky.stop();
    await db.close();
  });
});

describe("stop", () => {
  test("closes the connection and ends the sending", async () => {
    await there.stop();
    expect(await connections("wake there listen")).toEqual([]);
    expect(await countNotifications(async () => there.hint("topic"))).toBe(0);
  });

  test("in the middle of a reconnect closes the connection that comes of it", async () => {
    const { wake, db, reconnecting } = await inTheMiddleOfAReconnect();
    await wake.stop();
    const client = await db.dedicated("reconnected");
    const ended = once(client, "end");
    reconnecting.resolve(client);
    await ended;
    await db.close();
  });

  test("in the middle of a reconnect ends the trying", async () => {
    const { wake, db, reconnecting } = await inTheMiddleOfAReconnect();
    await wake.stop();
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    reconnecting.reject(new Error("connection refused"));
    await new Promise(setImmediate);
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
    await db.close();
  });
});

async function inTheMiddleOfAReconnect() {
  const db = open("wake stopped");
  const begun = signal();
  const reconnecting = signal<pg.Client>();
  let attempts = 0;
  const dedicated = (purpose: string) => {
    attempts += 1;
    if (attempts === 1) return db.dedicated(purpose);
    begun.resolve();
    return reconnecting.promise;
  };
  const wake = createWake({ db: { ...db, dedicated }, log: silentLog });
  await wake.start();
  await terminate("wake stopped listen");
  await begun.promise;
  return { wake, db, reconnecting };
}

function open(applicationName: string): Db {
  return openDb({ connection: database.connection, applicationName, poolSize: 2 });
}

function connections(applicationName: string): Promise<{ pid: number }[]> {
  return database.query(
    "select pid from pg_stat_activity where datname = current_database() and application_name = $1 and state is not null",
    [applicationName],
  );
}

async function terminate(applicationName: string): Promise<void> {
  for (const { pid } of await connections(applicationName)) {
    await database.query("select pg_terminate_backend($1, 10000)", [pid]);
  }
}

/** How many notifications Postgres delivers to a listener on account of `act`. */
async function countNotifications(act: () => Promise<void>): Promise<number> {
  const client = await database.db.dedicated("raw listener");
  let received = 0;
  const end = signal();
  client.on("notification", ({ payload = "" }) => (payload === "end" ? end.resolve() : (received += 1)));
  await client.query("listen millrace_wake");
  await act();
  // What was to be sent has been sent ten milliseconds later; notifications come in the order of their commits.
  await new Promise((resolve) => setTimeout(resolve, 50));
  await database.query("select pg_notify('millrace_wake', 'end')");
  await end.promise;
  await client.end();
  return received;
}
