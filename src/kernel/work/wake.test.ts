import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog, silentLog } from "../../../test/log.ts";
import { type PostgresProxy, startPostgresProxy } from "../../../test/postgres-proxy.ts";
import { signal, until } from "../../../test/until.ts";
import { type Db, openDb } from "../data/db.ts";
import { openPulse, type Pulse } from "./pulse.ts";
import type { ServiceLog } from "./service.ts";
import { createWake, type Wake } from "./wake.ts";

const database = useDatabase();
const TIMEOUT_MS = 500;

interface Process {
  wake: Wake;
  pulse: Pulse;
  db: Db;
  proxy: PostgresProxy;
}

/** Two processes, from the view of Postgres. */
let here: Process;
let there: Process;
let opened: Process[];

beforeEach(async () => {
  opened = [];
  here = await open();
  there = await open();
});
afterEach(async () => {
  for (const { wake, pulse, db } of opened) {
    await wake.stop();
    await pulse.stop();
    await db.close();
  }
});

describe("a hint", () => {
  test("reaches listeners in this process at once, and those in another one soon", async () => {
    const received = signal();
    there.wake.on("topic", () => received.resolve());
    let local = 0;
    here.wake.on("topic", () => (local += 1));
    here.wake.hint("topic");
    expect(local).toBe(1);
    await received.promise;
    expect(local).toBe(1); // Its own notification has come back by now, and is ignored.
  });

  test("reaches the listeners of its topic, and no others", async () => {
    const received: string[] = [];
    const last = signal();
    there.wake.on("a b", () => received.push("a b"));
    there.wake.on("a", () => received.push("a"));
    there.wake.on("last", () => last.resolve());
    here.wake.hint("a b");
    here.wake.hint("last");
    await last.promise;
    expect(received).toEqual(["a b"]);
  });

  test("is sent even if its process stops right after it", async () => {
    const received = signal();
    there.wake.on("topic", () => received.resolve());
    here.wake.hint("other"); // The next one has to wait.
    here.wake.hint("topic");
    await here.wake.stop();
    await received.promise;
  });

  test("does not reach a removed listener", async () => {
    let received = 0;
    const leave = here.wake.on("topic", () => (received += 1));
    here.wake.hint("topic");
    leave();
    here.wake.hint("topic");
    expect(received).toBe(1);
  });

  test("of a burst is sent once, and later ones at most every ten milliseconds", async () => {
    const received = await countNotifications(async () => {
      for (let n = 0; n < 1_000; n += 1) here.wake.hint("burst");
    });
    expect(received).toBe(1);

    let elapsedMs = 0;
    const paced = await countNotifications(async () => {
      const started = performance.now();
      for (let n = 0; n < 200; n += 1) {
        here.wake.hint("paced");
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      elapsedMs = performance.now() - started;
    });
    expect(paced).toBeGreaterThan(1);
    expect(paced).toBeLessThanOrEqual(elapsedMs / 9 + 2); // A timer may fire a millisecond early.
  });

  test("stays in the process without a pulse", async () => {
    const alone = createWake();
    let received = 0;
    alone.on("topic", () => (received += 1));
    expect(await countNotifications(async () => alone.hint("topic"))).toBe(0);
    expect(received).toBe(1);
    await alone.stop();
  });

  test("is sent while every connection of the pool is busy", async () => {
    const received = signal();
    there.wake.on("topic", () => received.resolve());
    const unlock = signal();
    const busy = [1, 2].map(() => here.db.tx(() => unlock.promise));
    here.wake.hint("topic");
    await received.promise;
    unlock.resolve();
    await Promise.all(busy);
  });

  test("to more topics than the limit wakes all topics instead", async () => {
    const woken: string[] = [];
    const last = signal();
    there.wake.on("not hinted", () => woken.push("not hinted"));
    there.wake.on("last", () => last.resolve());
    const received = await countNotifications(async () => {
      for (let n = 0; n < 5_000; n += 1) here.wake.hint(`topic ${n}`);
    });
    expect(received).toBeLessThanOrEqual(1_001);
    here.wake.hint("last");
    await last.promise;
    expect(woken).toEqual(["not hinted"]);
  });

  test("that Postgres refuses is logged", async () => {
    const log = recordingLog();
    const refused = await open({
      log,
      through: (pulse) => ({ ...pulse, notify: () => Promise.reject(new Error("full")) }),
    });
    refused.wake.hint("topic");
    await until(() => log.lines.length > 0, "the log");
    expect(log.lines[0]).toMatchObject({ level: "warn", message: "a wake-up hint was not sent" });
  });
});

describe("a connection that no longer answers", () => {
  test("is detected by a sender: then all topics of the other processes are woken, and later hints arrive", async () => {
    const looked = signal();
    const next = signal();
    there.wake.on("never hinted", () => looked.resolve());
    there.wake.on("next", () => next.resolve());
    here.proxy.freeze();
    here.wake.hint("lost");
    await looked.promise;
    here.wake.hint("next");
    await next.promise;
  });

  test("wakes all topics of its own process once it is replaced, since hints were missed, and later ones arrive", async () => {
    const received: string[] = [];
    const next = signal();
    there.wake.on("a", () => received.push("a"));
    there.wake.on("b", () => received.push("b"));
    there.wake.on("next", () => received.length > 1 && next.resolve());
    there.proxy.freeze();
    here.wake.hint("a");
    await expect(there.pulse.notify(["as a heartbeat would"])).rejects.toThrow("timeout");
    await until(() => received.length > 1, "both listeners");
    expect(received).toEqual(["a", "b"]);
    here.wake.hint("next");
    await next.promise;
  });

  test("delays the hints of its process until it is replaced, without a log line for each", async () => {
    const log = recordingLog();
    const cut = await open({ log });
    const received = signal();
    there.wake.on("topic", () => received.resolve());
    await cut.proxy.cut();
    await until(() => !cut.pulse.isConnected(), "the loss");
    for (let n = 0; n < 100; n += 1) {
      cut.wake.hint("topic");
      await new Promise(setImmediate);
    }
    await cut.proxy.restore();
    await received.promise;
    expect(log.lines).toHaveLength(1);
  });
});

test("stop ends the sending", async () => {
  await there.wake.stop();
  expect(await countNotifications(async () => there.wake.hint("topic"))).toBe(0);
});

async function open({
  log = silentLog,
  through = (pulse) => pulse,
}: {
  log?: ServiceLog;
  through?: (pulse: Pulse) => Pulse;
} = {}): Promise<Process> {
  const proxy = await startPostgresProxy(database);
  const db = openDb({ connection: { connectionString: proxy.url }, poolSize: 2 });
  const pulse = await openPulse({ db, log, timeoutMs: TIMEOUT_MS });
  const process = { wake: createWake({ pulse: through(pulse), log }), pulse, db, proxy };
  opened.push(process);
  return process;
}

/** How many notifications Postgres delivers to a listener because of `act`. */
async function countNotifications(act: () => Promise<void>): Promise<number> {
  const client = await database.db.dedicated("raw listener");
  let received = 0;
  const end = signal();
  client.on("notification", ({ payload = "" }) => (payload === "end" ? end.resolve() : (received += 1)));
  await client.query("listen millrace_wake");
  await act();
  // All hints are sent after ten milliseconds; notifications arrive in the order of their commits.
  await new Promise((resolve) => setTimeout(resolve, 50));
  await database.query("select pg_notify('millrace_wake', 'end')");
  await end.promise;
  await client.end();
  return received;
}
