import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { silentLog } from "../../../test/log.ts";
import { noHints } from "../../../test/no-hints.ts";
import { until } from "../../../test/until.ts";
import { openDb } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { KERNEL_METRICS } from "../telemetry/metric-table.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { createWake } from "../work/wake.ts";
import type { GateDeclaration } from "./declaration.ts";
import { openGates, type TestGates } from "./gates.fixture.ts";
import { createGates } from "./gates.ts";
import type { Allowed, Rejected } from "./permits.ts";

const database = useDatabase();
let gates: TestGates;
beforeAll(async () => {
  gates = await openGates(database.db);
});

const LOCK = statement("test.gate.lock", "select from kernel.rate_gate where key = $1 for update");
const WAITING = statement<{ n: number }>(
  "test.gate.waiting",
  `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
);

let made = 0;
/** Declares a gate with a key of its own; returns the key. */
async function gate(limits: Omit<GateDeclaration, "key">): Promise<string> {
  made += 1;
  const key = `gate-${made}`;
  await gates.declare(database.db, [{ key, ...limits }]);
  return key;
}

type Asked = Partial<Parameters<TestGates["acquire"]>[0]> & { cost?: number };
const ask = (keys: string | readonly string[], { cost = 1, ...request }: Asked = {}) =>
  gates.acquire({ gates: [keys].flat().map((key) => ({ key, cost })), deadlineMs: 0, ...request });

async function allowed(answer: Promise<Allowed | Rejected>): Promise<Allowed> {
  const decision = await answer;
  if (decision.kind !== "allow") throw new Error(`rejected: ${JSON.stringify(decision)}`);
  return decision;
}

/** The row of a gate, without its times. */
async function stateOf(key: string) {
  const [row] = await gates.describe([key]);
  if (!row) throw new Error(`no gate ${key}`);
  return row;
}

describe("the rate", () => {
  test("a second request waits for the spacing, and is rejected if that is too long", async () => {
    const key = await gate({ ratePerSec: 2 });
    expect(await ask(key)).toMatchObject({ kind: "allow", waitMs: 0, permits: 1, ratePerSec: 2 });
    const second = await ask(key);
    expect(second).toMatchObject({ kind: "rejected", reason: "OVER_DEADLINE", key });
    const third = await allowed(ask(key, { deadlineMs: 5_000 }));
    expect(third.waitMs).toBeGreaterThan(100);
    expect(third.waitMs).toBeLessThanOrEqual(1_070 / 2);
    const fourth = await allowed(ask(key, { deadlineMs: 5_000 }));
    expect(fourth.waitMs).toBeGreaterThan(third.waitMs);
  });

  test("an undeclared gate lets one request through in a second", async () => {
    expect(await ask("unheard-of")).toMatchObject({ kind: "allow", ratePerSec: 1 });
    const { retryAfterMs, reason } = (await ask("unheard-of")) as Rejected;
    expect(reason).toBe("OVER_DEADLINE");
    expect(retryAfterMs).toBeGreaterThan(500);
    expect(retryAfterMs).toBeLessThanOrEqual(1_070);
    expect(await stateOf("unheard-of")).toMatchObject({
      declared_by: null,
      rate_per_sec: 1,
      burst: 1,
      floor_per_sec: 0.1,
    });
  });

  test("one request in three seconds is possible", async () => {
    const key = await gate({ ratePerSec: 1 / 3 });
    await allowed(ask(key));
    const { retryAfterMs } = (await ask(key)) as Rejected;
    expect(retryAfterMs).toBeGreaterThan(2_500);
    expect(retryAfterMs).toBeLessThanOrEqual(3_070);
  });

  test("a burst goes at once", async () => {
    const key = await gate({ ratePerSec: 10, burst: 4 });
    for (const _ of [1, 2, 3, 4]) expect(await ask(key)).toMatchObject({ kind: "allow", waitMs: 0 });
    expect(await ask(key)).toMatchObject({ kind: "rejected", reason: "OVER_DEADLINE" });
  });

  test("a reservation takes what is left of a burst, and then goes on at the pace", async () => {
    const key = await gate({ ratePerSec: 4, burst: 4 });
    await allowed(ask(key));
    expect(await ask(key, { permits: 10 })).toMatchObject({ permits: 3, waitMs: 0, gapMs: 0 });
    const next = await allowed(ask(key, { permits: 10, deadlineMs: 2_000 }));
    expect(next).toMatchObject({ permits: 1 });
    expect(next.waitMs).toBeGreaterThan(0);
  });

  test("a burst is not larger after a quiet time", async () => {
    const key = await gate({ ratePerSec: 10, burst: 4 });
    await database.query("update kernel.rate_gate set tat = now() - interval '1 minute' where key = $1", [key]);
    expect(await ask(key, { permits: 10 })).toMatchObject({ permits: 4, waitMs: 0 });
    expect(await ask(key)).toMatchObject({ kind: "rejected", reason: "OVER_DEADLINE" });
  });

  test("a reservation of several permits tells their distance, and covers a quarter of a second", async () => {
    const key = await gate({ ratePerSec: 20 });
    const chunk = await allowed(ask(key, { permits: 10 }));
    expect(chunk.permits).toBe(4);
    expect(chunk.gapMs).toBeCloseTo(1_040 / 20);
    const next = await allowed(ask(key, { deadlineMs: 1_000 }));
    expect(next.waitMs).toBeLessThanOrEqual(4 * chunk.gapMs);
    expect(next.waitMs).toBeGreaterThan(3 * chunk.gapMs - 100);
  });

  test("a changed declaration takes effect at once and leaves the pace", async () => {
    const key = await gate({ ratePerSec: 0.1 });
    await allowed(ask(key));
    await gates.declare(database.db, [{ key, ratePerSec: 5 }]);
    expect(await ask(key)).toMatchObject({ kind: "rejected", reason: "OVER_DEADLINE" });
    expect(await stateOf(key)).toMatchObject({ rate_per_sec: 5, current_rate_per_sec: 5 });
  });
});

describe("several gates", () => {
  test("nothing is taken of any gate if one refuses", async () => {
    const open = await gate({
      ratePerSec: 5,
      concurrency: 2,
      quotas: [{ unit: "requests", windowSec: 86_400, limit: 10 }],
    });
    const slow = await gate({ ratePerSec: 0.01 });
    await allowed(ask(slow));
    const before = await stateOf(open);
    expect(await ask([open, slow])).toMatchObject({ kind: "rejected", reason: "OVER_DEADLINE", key: slow });
    const after = await stateOf(open);
    expect(after).toEqual(before);
    expect(after).toMatchObject({ backlog_ms: 0, slots_taken: 0, quotas: [{ used: 0 }] });
    expect(await ask(open)).toMatchObject({ kind: "allow", waitMs: 0 });
  });

  test("the slowest gate sets the wait, and the longest refusal is the one that is named", async () => {
    const fast = await gate({ ratePerSec: 50 });
    const slow = await gate({ ratePerSec: 4 });
    await allowed(ask([fast, slow]));
    const second = await allowed(ask([fast, slow], { deadlineMs: 1_000 }));
    expect(second.waitMs).toBeGreaterThan(100);
    await gates.feedback(fast, { kind: "wait", retryAfterMs: 60_000 });
    await gates.feedback(slow, { kind: "wait", retryAfterMs: 2_000 });
    const refusal = (await ask([fast, slow])) as Rejected;
    expect(refusal).toMatchObject({ reason: "COOLDOWN", key: fast });
    expect(refusal.retryAfterMs).toBeGreaterThan(60_000);
  });

  test("requests that name the same gates in different orders do not deadlock", async () => {
    const keys = await Promise.all([1, 2, 3].map(() => gate({ ratePerSec: 50 })));
    const orders = [keys, keys.toReversed(), [keys[1], keys[0]] as string[]];
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => ask(orders[index % 3] as string[], { deadlineMs: 60_000 })),
    );
    const granted = answers.map((answer) =>
      answer.kind === "allow" ? answer.answeredAtMs + answer.waitMs : Number.NaN,
    );
    const sorted = granted.toSorted((a, b) => a - b);
    for (const [index, at] of sorted.slice(1).entries()) expect(at - (sorted[index] ?? 0)).toBeGreaterThan(20.7);
  });
});

describe("quotas", () => {
  const daily = (limit: number) => [{ unit: "requests" as const, windowSec: 86_400, limit }];

  test("what is held back is for urgent work, and backfills leave a part to harvests", async () => {
    const key = await gate({ ratePerSec: 1_000, burst: 900, quotas: daily(100) });
    const granted = async (priority?: number) => {
      for (let count = 0; ; count += 1) {
        const answer = await ask(key, priority === undefined ? {} : { priority });
        if (answer.kind === "rejected") return { count, reason: answer.reason, soft: answer.soft };
      }
    };
    expect(await granted(300)).toEqual({ count: 81, reason: "QUOTA", soft: true });
    expect(await granted(200)).toEqual({ count: 0, reason: "QUOTA", soft: true });
    expect(await granted(100)).toEqual({ count: 9, reason: "QUOTA", soft: true });
    expect(await granted()).toEqual({ count: 0, reason: "QUOTA", soft: true });
    expect(await granted(99)).toEqual({ count: 10, reason: "QUOTA", soft: false });
    expect(await stateOf(key)).toMatchObject({ quotas: [{ limit: 100, used: 100, remaining: 0 }] });
  });

  test.each([1, 2, 9])("whole requests are held back, so none of %s", async (limit) => {
    const key = await gate({ ratePerSec: 1_000, burst: 900, quotas: daily(limit) });
    for (let n = 0; n < limit; n += 1) await allowed(ask(key));
    expect(await ask(key)).toMatchObject({ kind: "rejected", reason: "QUOTA", soft: false });
  });

  test("a spent quota refuses until its window is over", async () => {
    const key = await gate({ ratePerSec: 1_000, burst: 900, quotas: daily(2) });
    await allowed(ask(key));
    await allowed(ask(key));
    const { reason, soft, retryAfterMs } = (await ask(key)) as Rejected;
    expect({ reason, soft }).toEqual({ reason: "QUOTA", soft: false });
    const resetAt = (await stateOf(key)).quotas[0]?.resetAt.getTime() ?? 0;
    expect(resetAt % 86_400_000).toBe(0);
    expect(Math.abs(Date.now() + retryAfterMs - resetAt)).toBeLessThan(5_000);

    await database.query(
      "update kernel.rate_quota set reset_at = clock_timestamp() - interval '1 hour' where key = $1",
      [key],
    );
    expect(await stateOf(key)).toMatchObject({ quotas: [{ used: 0, remaining: 2 }] });
    await allowed(ask(key));
    const [quota] = await database.query<{ used: number; hours: number }>(
      "select used, extract(epoch from reset_at - now())::float8 / 3600 as hours from kernel.rate_quota where key = $1",
      [key],
    );
    expect(quota?.used).toBe(1);
    expect(quota?.hours).toBeCloseTo(23, 1); // A window later than the one that is over.
  });

  test("requests that waited for each other never spend more than there is", async () => {
    const key = await gate({ ratePerSec: 1_000, burst: 900, quotas: daily(2) });
    const asked = await database.db.tx(async (tx) => {
      await tx.rows(LOCK, [key]);
      const answers = Array.from({ length: 5 }, () => ask(key, { deadlineMs: 60_000 }));
      await until(
        async () => (await database.db.rows(WAITING))[0]?.n === answers.length,
        "requests that wait for the gate",
      );
      return { answers };
    });
    const answers = await Promise.all(asked.answers);
    expect(answers.filter(({ kind }) => kind === "allow")).toHaveLength(2);
    expect(await stateOf(key)).toMatchObject({ quotas: [{ used: 2 }] });
  });

  test("each unit is debited by its own amount", async () => {
    const key = await gate({
      ratePerSec: 100,
      burst: 50,
      quotas: [
        { unit: "requests", windowSec: 3_600, limit: 100 },
        { unit: "credits", windowSec: 3_600, limit: 100 },
        { unit: "usd_micros", windowSec: 86_400, limit: 1_000_000 },
      ],
    });
    await gates.acquire({ gates: [{ key, cost: 3 }], deadlineMs: 0 });
    await gates.acquire({ gates: [{ key, spend: { credits: 10, usdMicros: 1_500 } }], deadlineMs: 0 });
    const used = Object.fromEntries((await stateOf(key)).quotas.map((quota) => [quota.unit, quota.used]));
    expect(used).toEqual({ requests: 2, credits: 13, usd_micros: 1_501 });
  });

  test("what the service reports overrides what was counted", async () => {
    const key = await gate({ ratePerSec: 1_000, burst: 900, quotas: daily(100) });
    await allowed(ask(key));
    await gates.feedback(key, { kind: "headers", quotas: [{ unit: "requests", remaining: 11, resetAfterMs: 90_000 }] });
    await allowed(ask(key));
    const refusal = (await ask(key)) as Rejected;
    expect(refusal.reason).toBe("QUOTA");
    expect(refusal.retryAfterMs).toBeLessThanOrEqual(90_000);
    expect(refusal.retryAfterMs).toBeGreaterThan(60_000);
  });

  test("a larger limit of the service does not raise what is declared, and a smaller one lowers it", async () => {
    const key = await gate({ ratePerSec: 1_000, burst: 900, quotas: daily(100) });
    const report = (limit: number, remaining: number) =>
      gates.feedback(key, { kind: "headers", quotas: [{ unit: "requests", limit, remaining, resetAfterMs: 90_000 }] });
    await report(2_000, 1_970);
    expect(await stateOf(key)).toMatchObject({ quotas: [{ limit: 100, used: 30 }] });
    await report(2_000, 1_900);
    expect(await ask(key)).toMatchObject({ kind: "rejected", reason: "QUOTA" });
    await report(50, 40);
    expect(await stateOf(key)).toMatchObject({ quotas: [{ limit: 50, used: 10 }] });
  });

  test("a reservation of several permits gets no more than the quota has", async () => {
    const key = await gate({ ratePerSec: 1_000, quotas: daily(3) });
    expect(await ask(key, { permits: 10 })).toMatchObject({ kind: "allow", permits: 3 });
    expect(await ask(key)).toMatchObject({ kind: "rejected", reason: "QUOTA" });
  });
});

describe("slots", () => {
  test("as many requests at a time as the limit says, and one more for each that is released", async () => {
    const key = await gate({ ratePerSec: 1_000, burst: 900, concurrency: 2 });
    const first = await allowed(ask(key));
    await allowed(ask(key));
    expect(await ask(key)).toMatchObject({ kind: "rejected", reason: "SLOTS", key });
    expect(await stateOf(key)).toMatchObject({ slots_taken: 2 });
    await gates.release(first.held);
    const third = await allowed(ask(key));
    await gates.release(first.held); // Again, when the slot is already somebody else's.
    expect(await ask(key)).toMatchObject({ kind: "rejected", reason: "SLOTS" });
    await gates.release(third.held);
    expect(await stateOf(key)).toMatchObject({ slots_taken: 1 });
  });

  test("concurrent requests never get more slots than there are", async () => {
    const key = await gate({ ratePerSec: 1_000, burst: 900, concurrency: 5 });
    for (let round = 0; round < 10; round += 1) {
      const answers = await Promise.all(Array.from({ length: 12 }, () => ask(key, { deadlineMs: 60_000 })));
      const held = answers.flatMap((answer) => (answer.kind === "allow" ? [answer.held] : []));
      const places = held.flatMap(({ slots }) => slots.map(({ slot_no }) => slot_no));
      expect(places.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4]);
      await Promise.all(held.map((one) => gates.release(one)));
    }
  });

  test("a slot is free again when its holder's session is over, or its time", async () => {
    const key = await gate({ ratePerSec: 1_000, burst: 900, concurrency: 1 });
    const other = await openGates(database.db);
    const request = { gates: [{ key }], deadlineMs: 0 };
    expect(await other.acquire(request)).toMatchObject({ kind: "allow" });
    expect(await ask(key)).toMatchObject({ reason: "SLOTS" });
    await database.query("update kernel.session set expires_at = now() where id = $1", [other.sessionId]);
    expect(await stateOf(key)).toMatchObject({ slots_taken: 0 });
    await allowed(ask(key, { slotTtlMs: 60_000 }));
    expect(await ask(key)).toMatchObject({ reason: "SLOTS" });
    await database.query("update kernel.rate_slot set expires_at = now() where key = $1", [key]);
    await allowed(ask(key));
  });

  test("a reservation of several permits gets as many as there are slots", async () => {
    const key = await gate({ ratePerSec: 1_000, concurrency: 3 });
    const chunk = await allowed(ask(key, { permits: 10 }));
    expect(chunk.permits).toBe(3);
    expect(chunk.held.slots).toHaveLength(3);
  });

  test("fewer slots take effect at once, more too", async () => {
    const key = await gate({ ratePerSec: 1_000, burst: 900, concurrency: 3 });
    await gates.declare(database.db, [{ key, ratePerSec: 1_000, burst: 900, concurrency: 1 }]);
    await allowed(ask(key));
    expect(await ask(key)).toMatchObject({ reason: "SLOTS" });
    await gates.declare(database.db, [{ key, ratePerSec: 1_000, burst: 900, concurrency: 5 }]);
    for (let n = 0; n < 4; n += 1) await allowed(ask(key));
    expect(await ask(key)).toMatchObject({ reason: "SLOTS" });
  });

  test("a limit that the service sends in a header counts, declared or not", async () => {
    const key = await gate({ ratePerSec: 1_000, burst: 900 });
    await gates.feedback(key, { kind: "headers", concurrency: 1 });
    await allowed(ask(key));
    expect(await ask(key)).toMatchObject({ reason: "SLOTS" });
  });
});

describe("feedback", () => {
  const shareOf = async (key: string) => {
    const { current_rate_per_sec, rate_per_sec } = await stateOf(key);
    return current_rate_per_sec / rate_per_sec;
  };

  test("many reports in a moment cut the rate once, in any number of processes", async () => {
    const key = await gate({ ratePerSec: 40 });
    const other = await openGates(database.db);
    const report = (one: TestGates) => one.feedback(key, { kind: "throttled", retryAfterMs: 0 });
    await Promise.all(Array.from({ length: 20 }, (_, index) => report(index % 2 === 0 ? gates : other)));
    expect(await shareOf(key)).toBe(0.5);
    await database.query("update kernel.rate_gate set last_cut_at = last_cut_at - interval '1 second' where key = $1", [
      key,
    ]);
    await report(gates);
    expect(await shareOf(key)).toBe(0.25);
  });

  test("the rate is not cut below the floor, and a tenth comes back after each quiet period", async () => {
    const key = await gate({ ratePerSec: 10, floorPerSec: 4, riseAfterSec: 5 });
    await gates.feedback(key, { kind: "throttled", retryAfterMs: 0 });
    const later = (seconds: number) =>
      database.query(
        `update kernel.rate_gate set share_at = share_at - make_interval(secs => $2), last_cut_at = last_cut_at - make_interval(secs => $2),
           cooldown_until = cooldown_until - make_interval(secs => $2) where key = $1`,
        [key, seconds],
      );
    await later(2);
    await gates.feedback(key, { kind: "throttled", retryAfterMs: 0 });
    expect(await shareOf(key)).toBeCloseTo(0.4);
    await later(16);
    expect(await shareOf(key)).toBeCloseTo(0.7);
    await later(1_000);
    expect(await shareOf(key)).toBe(1);
  });

  test("Retry-After begins a cooldown that is five to fifteen per cent longer, without a cut on a success", async () => {
    const key = await gate({ ratePerSec: 10 });
    const careful = await openGates(database.db, { random: () => 0.999 });
    await gates.feedback(key, { kind: "wait", retryAfterMs: 100_000 });
    const { retryAfterMs } = (await ask(key)) as Rejected;
    expect(retryAfterMs).toBeGreaterThan(100_000);
    expect(retryAfterMs).toBeLessThanOrEqual(105_000);
    expect(await shareOf(key)).toBe(1);
    await careful.feedback(key, { kind: "wait", retryAfterMs: 100_000 });
    const longer = ((await ask(key)) as Rejected).retryAfterMs;
    expect(longer).toBeGreaterThan(110_000);
    expect(longer).toBeLessThanOrEqual(115_000);
    await gates.feedback(key, { kind: "wait", retryAfterMs: 1_000 });
    expect(((await ask(key)) as Rejected).retryAfterMs).toBeGreaterThan(100_000); // The longest counts.
  });

  test("an absurd Retry-After is a day", async () => {
    const key = await gate({ ratePerSec: 10 });
    await gates.feedback(key, { kind: "throttled", retryAfterMs: 1e15 });
    expect(((await ask(key)) as Rejected).retryAfterMs).toBeLessThan(86_400_000 * 1.15);
  });

  test("a refusal without Retry-After cools down for a second", async () => {
    const key = await gate({ ratePerSec: 10 });
    await gates.feedback(key, { kind: "throttled" });
    const refusal = (await ask(key)) as Rejected;
    expect(refusal.reason).toBe("COOLDOWN");
    expect(refusal.retryAfterMs).toBeLessThanOrEqual(1_050);
  });

  test("a response that says nothing about limits changes nothing", async () => {
    const key = await gate({ ratePerSec: 10 });
    const before = await database.query("select * from kernel.rate_gate where key = $1", [key]);
    await gates.feedback(key, { kind: "ok" });
    expect(await database.query("select * from kernel.rate_gate where key = $1", [key])).toEqual(before);
  });

  test("a limit in a header caps the rate, and a higher one later lifts the cap", async () => {
    const key = await gate({ ratePerSec: 40, burst: 10 });
    await gates.feedback(key, { kind: "headers", ratePerSec: 5 });
    const first = await allowed(ask(key));
    expect(first.ratePerSec).toBeCloseTo(5);
    const second = await allowed(ask(key, { deadlineMs: 1_000 }));
    expect(second.waitMs).toBeGreaterThan(100); // No burst either.
    await gates.feedback(key, { kind: "headers", ratePerSec: 100 });
    expect(await shareOf(key)).toBe(1);
  });

  test("feedback on a gate that nobody has declared or used counts", async () => {
    await gates.feedback("surprise", { kind: "throttled", retryAfterMs: 5_000 });
    expect(await ask("surprise")).toMatchObject({ reason: "COOLDOWN" });
    await gates.feedback("surprise-2", { kind: "headers", ratePerSec: 0.5 });
    expect(await allowed(ask("surprise-2"))).toMatchObject({ ratePerSec: 0.5 });
  });

  test("after a cooldown the rate warms up from half to all of it", async () => {
    const key = await gate({ ratePerSec: 10, warmupSec: 10 });
    expect((await allowed(ask(key))).ratePerSec).toBeCloseTo(5, 1);
    const later = (seconds: number) =>
      database.query(
        `update kernel.rate_gate set warm_from = warm_from - make_interval(secs => $2), tat = clock_timestamp(),
           cooldown_until = cooldown_until - make_interval(secs => $2) where key = $1`,
        [key, seconds],
      );
    await later(5);
    expect((await allowed(ask(key))).ratePerSec).toBeCloseTo(7.5, 0);
    await later(60);
    expect((await allowed(ask(key))).ratePerSec).toBe(10);
    await gates.feedback(key, { kind: "wait", retryAfterMs: 1_000 });
    await later(1.1);
    expect((await allowed(ask(key))).ratePerSec).toBeCloseTo(5, 0);
  });
});

describe("declarations", () => {
  test("the same declaration again writes nothing", async () => {
    const declaration: GateDeclaration = {
      key: "steady",
      ratePerSec: 3,
      concurrency: 2,
      quotas: [{ unit: "requests", windowSec: 60, limit: 9 }],
    };
    const versions = () =>
      database.query(`select xmin::text, ctid::text from kernel.rate_gate where key = 'steady' union all
        select xmin::text, ctid::text from kernel.rate_quota where key = 'steady' union all
        select xmin::text, ctid::text from kernel.rate_slot where key = 'steady'`);
    await gates.declare(database.db, [declaration]);
    const before = await versions();
    expect(before).toHaveLength(4);
    await gates.declare(database.db, [declaration]);
    expect(await versions()).toEqual(before);
  });

  test("a quota that is no longer declared is gone, and one that is keeps what was used", async () => {
    const hourly = { unit: "requests" as const, windowSec: 3_600, limit: 5 };
    const key = await gate({ ratePerSec: 9, quotas: [hourly, { unit: "requests", windowSec: 86_400, limit: 50 }] });
    await allowed(ask(key));
    await gates.declare(database.db, [{ key, ratePerSec: 9, quotas: [{ ...hourly, limit: 7 }] }]);
    expect(await stateOf(key)).toMatchObject({ quotas: [{ windowSec: 3_600, limit: 7, used: 1 }] });
  });

  test("a gate that is no longer declared has the limits of an undeclared one", async () => {
    const key = await gate({ ratePerSec: 9, concurrency: 2, quotas: [{ unit: "requests", windowSec: 60, limit: 9 }] });
    await gates.undeclare(database.db, key);
    expect(await stateOf(key)).toMatchObject({ declared_by: null, rate_per_sec: 1, concurrency: null, quotas: [] });
    await expect(gates.undeclare(database.db, key)).rejects.toThrow("There is no gate");
  });

  test("money that the service says is spent refuses requests, though nobody names their price", async () => {
    const key = await gate({ ratePerSec: 50, quotas: [{ unit: "usd_micros", windowSec: 86_400, limit: 1_000_000 }] });
    await allowed(ask(key));
    const money = (remaining: number) => ({ unit: "usd_micros" as const, remaining, resetAfterMs: 3_600_000 });
    await gates.feedback(key, { kind: "headers", quotas: [money(0)] });
    expect(await ask(key, { deadlineMs: 1_000 })).toMatchObject({ kind: "rejected", reason: "QUOTA", key });
  });

  test("a quota is never closed for longer than its window, whatever the service says", async () => {
    const key = await gate({ ratePerSec: 50, quotas: [{ unit: "requests", windowSec: 3_600, limit: 10 }] });
    const far = { unit: "requests" as const, remaining: 0, resetAfterMs: 1.8e12 };
    await gates.feedback(key, { kind: "headers", quotas: [far] });
    const answer = await ask(key, { deadlineMs: 1_000 });
    expect(answer).toMatchObject({ kind: "rejected", reason: "QUOTA" });
    expect("retryAfterMs" in answer && answer.retryAfterMs).toBeLessThanOrEqual(3_600_000);
  });

  test("a source does not replace what an operator has declared, nor an older definition a newer one", async () => {
    const [june, july] = [new Date("2026-06-01"), new Date("2026-07-01")];
    const quota = (limit: number) => [{ unit: "requests" as const, windowSec: 3_600, limit }];
    const key = "contested";
    await gates.declare(database.db, [{ key, ratePerSec: 2, quotas: quota(20) }], july);
    await allowed(ask(key));
    await gates.declare(database.db, [{ key, ratePerSec: 9, concurrency: 3 }], june);
    const ofJuly = { declared_by: "source", rate_per_sec: 2, concurrency: null, quotas: [{ limit: 20, used: 1 }] };
    expect(await stateOf(key)).toMatchObject(ofJuly);
    await gates.declare(database.db, [{ key, ratePerSec: 4, quotas: quota(40) }], july);
    expect(await stateOf(key)).toMatchObject({ rate_per_sec: 4, quotas: [{ limit: 40, used: 1 }] });

    await gates.declare(database.db, [{ key, ratePerSec: 5, quotas: quota(50) }]);
    await gates.declare(database.db, [{ key, ratePerSec: 9, concurrency: 3 }], new Date("2100-01-01"));
    const ofOperator = {
      declared_by: "operator",
      rate_per_sec: 5,
      concurrency: null,
      quotas: [{ limit: 50, used: 1 }],
    };
    expect(await stateOf(key)).toMatchObject(ofOperator);

    await gates.undeclare(database.db, key);
    await gates.declare(database.db, [{ key, ratePerSec: 9, concurrency: 3 }], june);
    expect(await stateOf(key)).toMatchObject({ declared_by: "source", rate_per_sec: 9, concurrency: 3, quotas: [] });
  });

  test("the same limits of a newer definition are as new as it, so that an older one does not replace them", async () => {
    const [older, between, newer] = [new Date("2026-06-01"), new Date("2026-06-15"), new Date("2026-07-01")];
    const key = "reverted";
    for (const asOf of [older, newer]) await gates.declare(database.db, [{ key, ratePerSec: 2 }], asOf);
    await gates.declare(database.db, [{ key, ratePerSec: 9 }], between);
    expect(await stateOf(key)).toMatchObject({ rate_per_sec: 2 });
  });

  test("a burst above the limit of a second is refused", async () => {
    await expect(gates.declare(database.db, [{ key: "wild", ratePerSec: 5, burst: 10 }])).rejects.toThrow("burst 10");
  });

  test("undeclared gates that were not used for a day are forgotten when another is added", async () => {
    await ask("fleeting");
    await database.query("update kernel.rate_gate set tat = now() - interval '25 hours' where key = 'fleeting'");
    await ask("newcomer");
    expect(await gates.describe(["fleeting"])).toEqual([]);
  });
});

test("without the database nothing is granted", async () => {
  const away = openDb({ connection: { connectionString: "postgres://nobody@127.0.0.1:1/none" } });
  onTestFinished(() => away.close());
  const stranded = createGates({
    db: away,
    session: { id: () => "1" },
    wake: createWake(),
    hints: noHints,
    log: silentLog,
    metrics: createMetrics().define(KERNEL_METRICS),
  });
  const request = { gates: [{ key: "any" }] };
  await expect(stranded.acquire({ ...request, deadlineMs: 0 })).rejects.toThrow("ECONNREFUSED");
  await expect(stranded.take({ ...request, task: "t" }, { maxWaitMs: 60_000 })).rejects.toThrow("ECONNREFUSED");
});
