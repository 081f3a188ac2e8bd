/** What a relay does while its consumer fails: how often it tries, and how much it says. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog, silentLog } from "../../../test/log.ts";
import { until } from "../../../test/until.ts";
import { createOutbox, type OutboxConsumer, type Relay } from "./outbox.ts";
import { openPulse, type Pulse } from "./pulse.ts";
import { openSession, type Session } from "./session.ts";
import { createWake } from "./wake.ts";

const database = useDatabase();
let pulse: Pulse;
let session: Session;
let relay: Relay | undefined;
let log: ReturnType<typeof recordingLog>;
let consumers = 0;

beforeAll(async () => {
  pulse = await openPulse({ db: database.db, log: silentLog });
});
afterAll(() => pulse.stop());
beforeEach(async () => {
  await database.query("truncate kernel.outbox");
  session = await openSession({ pulse, log: silentLog, version: "0", roles: [] });
  log = recordingLog();
});
afterEach(async () => {
  await relay?.stop();
  await session.close();
});

/** So many events for a consumer that is started with them. */
async function start(events: number, consumer: Pick<OutboxConsumer, "deliver"> & Partial<OutboxConsumer>) {
  consumers += 1;
  const wake = createWake();
  const outbox = createOutbox(
    [
      {
        name: `failing_${consumers}`,
        topics: ["topic"],
        timeoutMs: 60_000,
        retry: { maxAttempts: Number.POSITIVE_INFINITY, baseMs: 100, factor: 1, capMs: 100, jitter: 0 },
        ...consumer,
      },
    ],
    wake,
  );
  const emitted = Array.from({ length: events }, (_, payload) => ({ eventId: randomUUID(), topic: "topic", payload }));
  await database.db.tx((tx) => outbox.emit(tx, emitted));
  [relay] = outbox.relays({ db: database.db, session, wake, log });
  relay?.start();
}

const rows = () => database.query<{ state: string; attempt: number }>("select state, attempt from kernel.outbox");
const empty = () => until(async () => (await rows()).length === 0, "every event to be delivered");

test("during an outage one event at a time is tried, with one warning, and afterwards all are delivered", async () => {
  let isDown = true;
  let tried = 0;
  const SLOTS = 100;
  await start(300, {
    isOutage: (error) => (error as Error).message === "the server is down",
    deliver: async () => {
      tried += 1;
      if (isDown) throw new Error("the server is down");
    },
  });
  await until(() => tried === SLOTS + 2, "two more tries than the first claim made");
  const waiting = await rows();
  expect(waiting).toHaveLength(300);
  expect(waiting.reduce((sum, { attempt }) => sum + attempt, 0)).toBeLessThanOrEqual(SLOTS + 2);
  expect(log.lines).toMatchObject([{ level: "warn", message: "an outbox event was not delivered" }]);
  isDown = false;
  await empty();
  expect(log.lines.slice(1)).toMatchObject([
    { level: "info", message: "outbox events are delivered again", fields: { failures: tried - 300 } },
  ]);
});

test("a failure that is none of the consumer's server holds up no other event, and repeats no warning", async () => {
  let isFailing = true;
  const delivered = new Set<unknown>();
  await start(20, {
    isOutage: () => false,
    async deliver({ payload }) {
      if (isFailing && Number(payload) % 10 === 0) throw new Error(`no place for ${String(payload)}`);
      delivered.add(payload);
    },
  });
  await until(async () => (await rows()).every(({ attempt }) => attempt >= 4), "several attempts");
  expect(delivered.size).toBe(18);
  const warned = log.lines.filter(({ level }) => level === "warn").length;
  const attempts = (await rows()).reduce((sum, { attempt }) => sum + attempt, 0);
  expect(warned).toBeGreaterThanOrEqual(2);
  expect(warned).toBeLessThanOrEqual(attempts);
  isFailing = false;
  await empty();
});

test("an event that is given up is always said", async () => {
  await start(3, {
    retry: { stepsMs: [], jitter: 0 },
    deliver: () => Promise.reject(new Error("no")),
  });
  await until(async () => (await rows()).every(({ state }) => state === "dead"), "the last attempts");
  expect(log.lines.map(({ fields }) => fields["outcome"])).toEqual(["give_up", "give_up", "give_up"]);
});
