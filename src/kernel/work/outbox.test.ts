import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog, silentLog } from "../../../test/log.ts";
import { signal, until } from "../../../test/until.ts";
import { statement } from "../data/statement.ts";
import {
  createOutbox,
  OUTBOX_TOPIC,
  type Outbox,
  type OutboxConsumer,
  type OutboxEvent,
  type Relay,
} from "./outbox.ts";
import { openPulse, type Pulse } from "./pulse.ts";
import type { RetryPolicy } from "./retry.ts";
import { openSession, type Session } from "./session.ts";
import { createWake, type Wake } from "./wake.ts";

const database = useDatabase();
const LOCK = statement("test.outbox.lock", "select from kernel.outbox for update");
const RETRY: RetryPolicy = { stepsMs: [60_000, 120_000], jitter: 0 };

let pulse: Pulse;
let session: Session;
let wake: Wake;
let started: Relay[];

beforeAll(async () => {
  pulse = await openPulse({ db: database.db, log: silentLog });
});
afterAll(() => pulse.stop());
beforeEach(async () => {
  await database.query("truncate kernel.outbox, kernel.session");
  session = await open();
  wake = createWake();
  started = [];
});
afterEach(() => Promise.all(started.map((service) => service.stop())));

describe("an event", () => {
  test("is committed with its change, and not without it", async () => {
    const { outbox } = outboxOf();
    const failing = database.db.tx(async (tx) => {
      await outbox.emit(tx, [event()]);
      throw new Error("the change failed");
    });
    await expect(failing).rejects.toThrow("the change failed");
    expect(await rows()).toEqual([]);
    await database.db.tx((tx) => outbox.emit(tx, [event()]));
    expect(await rows()).toHaveLength(1);
  });

  test("is written once for each consumer of its topic, however often it is emitted", async () => {
    const [one, other, elsewhere] = [consumerOf(), consumerOf(), consumerOf({ topics: ["elsewhere"] })];
    const outbox = createOutbox([one, other, elsewhere], wake);
    const emitted = event();
    await emit(outbox, [emitted]);
    await emit(outbox, [emitted, event({ topic: "no consumer" })]);
    expect((await rows()).map(({ consumer }) => consumer)).toEqual([one.name, other.name]);
  });

  test.each([[{ a: ["\\", "é"] }], [[1, [2]]], ["text"], [0], [false]])(
    "is delivered unchanged, with the payload %j, and then deleted",
    async (payload) => {
      const { outbox, relay, delivered } = outboxOf();
      const emitted = event({ payload });
      await emit(outbox, [emitted]);
      expect(await deliver(relay)).toBe(1);
      expect(delivered).toEqual([emitted]);
      expect(await rows()).toEqual([]);
      expect(await deliver(relay)).toBe(0);
    },
  );

  test("is delivered right after its commit", async () => {
    const { outbox, relay, delivered } = outboxOf();
    const idle = relay.nextRun();
    start(relay);
    await idle;
    await emit(outbox, [event()]);
    await until(() => delivered.length === 1, "the delivery");
  });

  test("sends one hint after the commit of its transaction, however many are emitted in it, and none before", async () => {
    const { outbox } = outboxOf();
    const hints = countHints();
    await database.db.tx(async (tx) => {
      await outbox.emit(tx, [event()]);
      await outbox.emit(tx, [event(), event()]);
      expect(hints()).toBe(0);
    });
    expect(hints()).toBe(1);
  });

  test("sends no hint if its transaction is rolled back, or if it has no consumer", async () => {
    const { outbox } = outboxOf();
    const hints = countHints();
    const failing = database.db.tx(async (tx) => {
      await outbox.emit(tx, [event()]);
      throw new Error("the change failed");
    });
    await expect(failing).rejects.toThrow("the change failed");
    await emit(outbox, [event({ topic: "no consumer" })]);
    expect(hints()).toBe(0);
  });
});

describe("a delivery that fails", () => {
  test("is retried when its wait has passed, and not before", async () => {
    const log = recordingLog();
    const { outbox, relay } = outboxOf({ deliver: () => Promise.reject(new Error("no route to host")) }, { log });
    await emit(outbox, [event()]);
    expect(await deliver(relay)).toBe(1);
    expect(await rows()).toMatchObject([{ state: "ready", attempt: 1, last_error: "no route to host", wait: 60 }]);
    expect(log.lines).toMatchObject([{ level: "warn", fields: { outcome: "retry_later" } }]);
    expect(await deliver(relay)).toBe(0);
    await makeDue();
    await deliver(relay);
    expect(await rows()).toMatchObject([{ state: "ready", attempt: 2, wait: 120 }]);
  });

  test("is retried as soon as its wait has passed, without a hint", async () => {
    const delivered: OutboxEvent[] = [];
    const { outbox, relay } = outboxOf({
      retry: { stepsMs: [300], jitter: 0 },
      deliver: async (emitted) => {
        if (delivered.push(emitted) > 1) return;
        await relay.nextRun(); // The relay has claimed again and found nothing that waits.
        throw new Error("not now");
      },
    });
    await emit(outbox, [event()]);
    start(relay);
    wake.hint(OUTBOX_TOPIC);
    await until(() => delivered.length === 2, "the second attempt, long before the next interval");
    await until(async () => (await rows()).length === 0, "the record");
  });

  test("because it does not end has failed at its time-out", async () => {
    let aborted: unknown;
    const { outbox, relay } = outboxOf({
      timeoutMs: 50,
      deliver: (_, limited) =>
        new Promise(() => limited.addEventListener("abort", () => (aborted = limited.reason), { once: true })),
    });
    await emit(outbox, [event()]);
    expect(await deliver(relay)).toBe(1);
    expect(await rows()).toMatchObject([{ state: "ready", attempt: 1, last_error: "it took longer than 50 ms" }]);
    expect(String(aborted)).toContain("it took longer than 50 ms");
  });

  test("is dead after the last attempt, with its reason, and not retried", async () => {
    const { outbox, relay } = outboxOf({ deliver: () => Promise.reject(new Error("x".repeat(10_000))) });
    await emit(outbox, [event()]);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await makeDue();
      await deliver(relay);
    }
    expect(await rows()).toMatchObject([{ state: "dead", attempt: 3, last_error: "x".repeat(2_000) }]);
    await makeDue();
    expect(await deliver(relay)).toBe(0);
  });

  test("does not fail others of the batch", async () => {
    const { outbox, relay } = outboxOf({
      deliver: async ({ payload }) => {
        if (payload === "bad") throw new Error("no");
      },
    });
    await emit(
      outbox,
      ["good", "bad", "good"].map((payload) => event({ payload })),
    );
    expect(await deliver(relay)).toBe(3);
    expect(await rows()).toMatchObject([{ payload: "bad", state: "ready" }]);
  });

  test("because a stop interrupted it is released, and not counted", async () => {
    const begun = signal();
    const { outbox, relay } = outboxOf({
      deliver: (_, abort) =>
        new Promise((_resolve, reject) => {
          abort.addEventListener("abort", () => reject(new Error("aborted")));
          begun.resolve();
        }),
    });
    await emit(outbox, [event()]);
    relay.start();
    await begun.promise;
    await relay.stop();
    expect(await rows()).toMatchObject([{ state: "ready", attempt: 0, lost_count: 0 }]);
  });
});

describe("a consumer", () => {
  test("that never answers does not delay the others", async () => {
    const hanging = consumerOf({
      deliver: (_, abort) => new Promise((resolve) => abort.addEventListener("abort", () => resolve())),
    });
    const delivered: OutboxEvent[] = [];
    const healthy = consumerOf({ deliver: async (emitted) => void delivered.push(emitted) });
    const outbox = createOutbox([hanging, healthy], wake);
    start(...outbox.relays({ db: database.db, session, wake, log: silentLog }));
    for (let n = 1; n <= 3; n += 1) {
      await emit(
        outbox,
        Array.from({ length: 150 }, () => event()),
      );
      await until(() => delivered.length === 150 * n, "the healthy consumer's events");
    }
  });

  test("that this process does not have keeps its events, and they delay no other", async () => {
    const { outbox, relay } = outboxOf();
    await database.query(
      `insert into kernel.outbox (event_id, consumer, topic, payload, due_at)
       select gen_random_uuid(), 'of another version', 'topic', '{}', now() - interval '1 day' from generate_series(1, 200)`,
    );
    await emit(outbox, [event()]);
    expect(await deliver(relay)).toBe(1);
    const left = await rows();
    expect(left).toHaveLength(200);
    expect(left.every(({ state, attempt }) => state === "ready" && attempt === 0)).toBe(true);
  });

  test("keeps an event whose topic only another version knows, for that", async () => {
    const { name, ...consumer } = consumerOf();
    const newer = outboxOf({ name, topics: ["topic", "new"] });
    const older = outboxOf({ ...consumer, name });
    await emit(newer.outbox, [event({ topic: "new" })]);
    await deliver(older.relay);
    expect(await rows()).toMatchObject([{ state: "ready", last_error: `${name} has no topic new here` }]);
    await makeDue();
    await deliver(newer.relay);
    expect(newer.delivered).toMatchObject([{ topic: "new" }]);
    expect(await rows()).toEqual([]);
  });

  test("cannot be added after the first event, which it would have missed", async () => {
    const outbox = createOutbox([], wake);
    outbox.consume(consumerOf({ name: "early" }));
    await emit(outbox, []);
    expect(() => outbox.consume(consumerOf({ name: "late" }))).toThrow("the consumer late was added too late");
  });

  test("cannot have a name that would need quoting", () => {
    expect(() => createOutbox([consumerOf({ name: "it's" })], wake)).toThrow("cannot be named it's");
  });
});

describe("a crash", () => {
  test("between a delivery and its record delivers again, under the same id, and the late record changes nothing", async () => {
    const deliveries: OutboxEvent[] = [];
    const delivered = signal();
    const resumed = signal();
    const consumer = consumerOf({
      async deliver(emitted) {
        const time = deliveries.push(emitted);
        delivered.resolve();
        if (time === 1) await resumed.promise;
        else throw new Error("seen before");
      },
    });
    const outbox = createOutbox([consumer], wake);
    const emitted = event();
    await emit(outbox, [emitted]);
    const [suspended] = relaysOf(outbox);
    await suspended?.runOnce();
    await delivered.promise;
    await database.query("update kernel.session set expires_at = now() where id = $1", [session.id()]);

    const [relay] = relaysOf(outbox, await open());
    let hints = 0;
    wake.on(OUTBOX_TOPIC, () => (hints += 1));
    expect(await relay?.reclaimer?.runOnce()).toEqual({ reclaimed: 1 });
    expect(hints).toBe(1);
    expect(await rows()).toMatchObject([{ state: "ready", attempt: 0, lost_count: 1 }]);
    await relay?.runOnce();
    await relay?.idle();
    expect(deliveries).toEqual([emitted, emitted]);

    resumed.resolve();
    await suspended?.idle();
    expect(await rows()).toMatchObject([{ state: "ready", attempt: 1 }]);
  });

  test.each([
    ["of the database connection while the record is written", "select pg_terminate_backend($1, 10000)"],
    ["of the statement that writes the record, which is cancelled,", "select pg_cancel_backend($1)"],
  ])("%s does not leave the event leased for ever", async (_, end) => {
    const begun = signal();
    const gate = signal();
    const { outbox, relay } = outboxOf({
      deliver() {
        begun.resolve();
        return gate.promise;
      },
    });
    await emit(outbox, [event()]);
    await relay.runOnce();
    await begun.promise;
    await database.db.tx(async (tx) => {
      await tx.rows(LOCK);
      gate.resolve();
      const recording = await until(async () => (await waitingForLock())[0], "the record to wait for the lock");
      await database.query(end, [recording.pid]);
    });
    await relay.idle();
    expect(await rows()).toEqual([]);
  });
});

test("the outcomes of many deliveries are written together", async () => {
  const written: number[] = [];
  const counting = {
    ...database.db,
    tx: ((work) => {
      written.push(1);
      return database.db.tx(work);
    }) as typeof database.db.tx,
  };
  const { outbox, relay } = outboxOf({}, { db: counting });
  await emit(
    outbox,
    Array.from({ length: 100 }, () => event()),
  );
  expect(await deliver(relay)).toBe(100);
  expect(written.length).toBeLessThanOrEqual(2);
});

let consumers = 0;

function consumerOf(options: Partial<OutboxConsumer> = {}): OutboxConsumer {
  consumers += 1;
  return {
    name: `consumer_${consumers}`,
    topics: ["topic"],
    timeoutMs: 60_000,
    retry: RETRY,
    deliver: async () => {},
    ...options,
  };
}

/** An outbox with one consumer, which records its events unless the test replaces `deliver`. */
function outboxOf(options: Partial<OutboxConsumer> = {}, deps: Partial<Parameters<Outbox["relays"]>[0]> = {}) {
  const delivered: OutboxEvent[] = [];
  const outbox = createOutbox(
    [consumerOf({ deliver: async (emitted) => void delivered.push(emitted), ...options })],
    wake,
  );
  const [relay] = outbox.relays({ db: database.db, session, wake, log: silentLog, ...deps });
  if (!relay) throw new Error("no relay");
  return { outbox, relay, delivered };
}

/** In its own transaction. */
function emit(outbox: Outbox, events: readonly OutboxEvent[]): Promise<void> {
  return database.db.tx((tx) => outbox.emit(tx, events));
}

function countHints(): () => number {
  let hints = 0;
  wake.on(OUTBOX_TOPIC, () => (hints += 1));
  return () => hints;
}

/** One claim and its deliveries; answers their number. */
async function deliver(relay: Relay): Promise<number | undefined> {
  const { claimed } = await relay.runOnce();
  await relay.idle();
  return claimed;
}

function relaysOf(outbox: Outbox, of: Session = session): Relay[] {
  return outbox.relays({ db: database.db, session: of, wake, log: silentLog });
}

function start(...services: Relay[]): void {
  started.push(...services);
  for (const service of services) service.start();
}

function open(): Promise<Session> {
  return openSession({ pulse, log: silentLog, version: "0", roles: [] });
}

function event(fields: Partial<OutboxEvent> = {}): OutboxEvent {
  return { eventId: randomUUID(), topic: "topic", payload: { n: 1 }, ...fields };
}

function makeDue(): Promise<unknown> {
  return database.query("update kernel.outbox set due_at = now()");
}

function rows(): Promise<{ consumer: string; state: string; attempt: number; lost_count: number }[]> {
  return database.query(
    `select consumer, state, attempt, lost_count, last_error, payload,
            round(extract(epoch from due_at - now()))::int as wait from kernel.outbox order by id`,
  );
}

function waitingForLock(): Promise<{ pid: number }[]> {
  return database.query(
    "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
}
