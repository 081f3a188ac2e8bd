/** The SQL of the gate against a model of it in memory. Time passes by moving the times of the row into the past. */
import * as fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { openGates, type TestGates } from "./gates.fixture.ts";

const database = useDatabase();
const RUNS = process.env["MILLRACE_TEST_LONG"] ? 120 : 30;
/** Far enough that every request is granted at once, at a time in the future. */
const NO_DEADLINE = 1e12;

let gates: TestGates;
beforeAll(async () => {
  gates = await openGates(database.db);
});

let made = 0;
const newKey = () => {
  made += 1;
  return `model-${made}`;
};

const limits = fc
  .record({
    ratePerSec: fc.oneof(
      fc.integer({ min: 1, max: 60 }),
      fc.double({ min: 0.05, max: 20, noNaN: true, noDefaultInfinity: true }),
    ),
    burstShare: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ ratePerSec, burstShare }) => ({
    ratePerSec,
    burst: Math.max(1, Math.floor(Math.floor(ratePerSec) * burstShare * 0.5)),
  }));

/** Requests and seconds of the window in which a service counts. */
function windowOf(ratePerSec: number): { permits: number; windowMs: number } {
  return { permits: Math.max(1, Math.floor(ratePerSec)), windowMs: 1_000 * Math.max(1, 1 / ratePerSec) };
}

function marginMs(ratePerSec: number): number {
  return ratePerSec < 20 ? 70 : 40;
}

test("no window of any gate has more than its limit, whatever the order of requests and their costs", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(limits, limits),
      fc.array(
        fc.record({
          on: fc.constantFrom([0], [1], [0, 1]),
          cost: fc.oneof(
            { weight: 4, arbitrary: fc.constant(1) },
            { weight: 1, arbitrary: fc.integer({ min: 1, max: 8 }) },
          ),
          permits: fc.constantFrom(1, 1, 4, 10),
        }),
        { minLength: 5, maxLength: 40 },
      ),
      async (declared, requests) => {
        const keys = [newKey(), newKey()];
        await gates.declare(
          database.db,
          declared.map((gate, index) => ({ key: keys[index] as string, ...gate })),
        );
        const granted: { at: number; cost: number }[][] = [[], []];
        for (const { on, cost, permits } of requests) {
          const fits = on.map((index) => windowOf(declared[index].ratePerSec).permits);
          const asked = Math.min(cost, ...fits); // A request that costs more than the limit exceeds it by itself.
          const answer = await gates.acquire({
            gates: on.map((index) => ({ key: keys[index] as string, cost: asked })),
            permits,
            deadlineMs: NO_DEADLINE,
          });
          if (answer.kind !== "allow") throw new Error(answer.reason);
          for (let nth = 0; nth < answer.permits; nth += 1) {
            const at = answer.answeredAtMs + answer.waitMs + nth * answer.gapMs;
            for (const index of on) granted[index]?.push({ at, cost: asked });
          }
        }
        for (const [index, { ratePerSec }] of declared.entries()) {
          const { permits, windowMs } = windowOf(ratePerSec);
          // A millisecond less than the margin allows, for the rounding of times.
          const spanMs = windowMs + marginMs(ratePerSec) - 1;
          expect(worst(granted[index] ?? [], spanMs), `gate of ${ratePerSec} a second`).toBeLessThanOrEqual(permits);
        }
      },
    ),
    { numRuns: RUNS },
  );
});

function worst(granted: readonly { at: number; cost: number }[], spanMs: number): number {
  const sorted = [...granted].sort((a, b) => a.at - b.at);
  return Math.max(
    0,
    ...sorted.map(({ at }) =>
      sorted.filter((other) => other.at >= at && other.at <= at + spanMs).reduce((sum, { cost }) => sum + cost, 0),
    ),
  );
}

/** The state of a gate, in milliseconds of the database's clock. */
interface Model {
  share: number;
  shareAt: number;
  lastCutAt: number;
  cooldownUntil: number;
  warmFrom: number;
  tat: number;
  headerRate: number | undefined;
}

interface Declared {
  ratePerSec: number;
  burst: number;
  warmupSec: number;
  floorPerSec: number;
  cutFactor: number;
  riseAfterSec: number;
}

function risen(model: Model, declared: Declared, now: number): number {
  const cap = Math.min(1, (model.headerRate ?? Number.POSITIVE_INFINITY) / declared.ratePerSec);
  const quietSec = Math.max(0, now - Math.max(model.shareAt, model.cooldownUntil)) / 1_000;
  return Math.min(cap, model.share + 0.1 * Math.floor(quietSec / declared.riseAfterSec));
}

function shareOf(model: Model, declared: Declared, now: number): number {
  const cap = Math.min(1, (model.headerRate ?? Number.POSITIVE_INFINITY) / declared.ratePerSec);
  const warm =
    declared.warmupSec === 0
      ? 1
      : 0.5 + 0.5 * Math.min(1, (now - warmFrom(model, declared, now)) / 1_000 / declared.warmupSec);
  return Math.max(Math.min(declared.floorPerSec / declared.ratePerSec, cap), risen(model, declared, now) * warm);
}

function warmFrom(model: Model, { warmupSec }: Declared, now: number): number {
  const isCold = now - model.tat > warmupSec * 1_000;
  return isCold ? now : Math.max(model.warmFrom, Math.min(model.cooldownUntil, now));
}

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("acquire" as const),
      cost: fc.integer({ min: 1, max: 3 }),
      deadlineMs: fc.constantFrom(0, 300, 20_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(50, 700, 1_500, 12_000, 70_000) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("throttle" as const),
      retryAfterMs: fc.constantFrom(undefined, 0, 400, 5_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("headers" as const), ratePerSec: fc.constantFrom(0.05, 1, 7, 100) }),
  },
);

test("the pace follows the model through cuts, cooldowns, rises, warm-ups and headers", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        ratePerSec: fc.constantFrom(0.2, 1, 5, 40),
        warmupSec: fc.constantFrom(0, 0, 5),
        floorPerSec: fc.constantFrom(0.1, 2),
        cutFactor: fc.constantFrom(2, 4),
        riseAfterSec: fc.constantFrom(1, 10),
      }),
      fc.boolean(),
      fc.array(step, { minLength: 3, maxLength: 25 }),
      async (given, bursts, steps) => {
        const declared: Declared = { ...given, burst: bursts ? Math.max(1, Math.floor(given.ratePerSec / 2)) : 1 };
        const key = newKey();
        await gates.declare(database.db, [{ key, ...declared }]);
        const model: Model = {
          share: 1,
          shareAt: 0,
          lastCutAt: 0,
          cooldownUntil: 0,
          warmFrom: 0,
          tat: 0,
          headerRate: undefined,
        };
        for (const one of steps) await play(key, declared, model, one);
      },
    ),
    { numRuns: RUNS },
  );
});

type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

async function play(key: string, declared: Declared, model: Model, one: Step): Promise<void> {
  if (one.do === "pass") {
    const times = ["share_at", "last_cut_at", "cooldown_until", "warm_from", "tat"];
    const moved = times.map((name) => `${name} = ${name} - make_interval(secs => $2)`);
    await database.query(`update kernel.rate_gate set ${moved.join(", ")} where key = $1`, [key, one.ms / 1_000]);
    for (const name of ["shareAt", "lastCutAt", "cooldownUntil", "warmFrom", "tat"] as const) model[name] -= one.ms;
    return;
  }
  if (one.do === "headers") {
    await gates.feedback(key, { kind: "headers", ratePerSec: one.ratePerSec });
    model.headerRate = one.ratePerSec;
    return;
  }
  if (one.do === "throttle") {
    const { retryAfterMs } = one;
    const before = Date.now();
    await gates.feedback(key, { kind: "throttled", ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
    const row = await rowOf(key);
    // The moment of the statement is one that the row shows, if anything has changed.
    const isCut = row.last_cut_at > model.lastCutAt + 1;
    const now = isCut ? row.last_cut_at : before;
    if (before - 1 - model.lastCutAt >= 1_000) expect(isCut).toBe(true);
    if (row.now - model.lastCutAt < 1_000) expect(isCut).toBe(false);
    if (isCut) {
      const floor = Math.min(
        1,
        declared.floorPerSec / declared.ratePerSec,
        (model.headerRate ?? 1e9) / declared.ratePerSec,
      );
      model.share = Math.max(floor, risen(model, declared, now) / declared.cutFactor);
      model.shareAt = now;
      model.lastCutAt = now;
      expect(row.share).toBeCloseTo(model.share, 6);
      const cooledMs = (retryAfterMs ?? 1_000) * 1.05; // The fixture's jitter is the least.
      expect(row.cooldown_until).toBeCloseTo(Math.max(model.cooldownUntil, now + cooledMs), -1);
    }
    expect(row.cooldown_until).toBeGreaterThanOrEqual(model.cooldownUntil - 1);
    model.cooldownUntil = row.cooldown_until;
    return;
  }
  const { cost, deadlineMs } = one;
  const answer = await gates.acquire({ gates: [{ key, cost }], deadlineMs });
  const now = answer.answeredAtMs;
  const share = shareOf(model, declared, now);
  const { permits, windowMs } = windowOf(declared.ratePerSec);
  const spacing = (windowMs + marginMs(declared.ratePerSec)) / (permits - declared.burst + 1) / share;
  const burst = share < 1 ? 1 : declared.burst;
  const waitMs = Math.max(0, model.tat - now + (cost - burst) * spacing);
  const coolingMs = model.cooldownUntil - now;
  if (answer.kind === "rejected") {
    expect(answer.reason).toBe(
      coolingMs > 0 && coolingMs >= waitMs ? "COOLDOWN" : waitMs > deadlineMs ? "OVER_DEADLINE" : "COOLDOWN",
    );
    expect(coolingMs > 0 || waitMs > deadlineMs).toBe(true);
    expect(answer.retryAfterMs).toBeCloseTo(Math.max(coolingMs, waitMs > deadlineMs ? waitMs : 0), -1);
    return;
  }
  expect(coolingMs).toBeLessThanOrEqual(0);
  expect(answer.ratePerSec).toBeCloseTo(share * declared.ratePerSec, 3);
  expect(answer.waitMs).toBeCloseTo(waitMs, 0);
  model.warmFrom = warmFrom(model, declared, now);
  model.tat = Math.max(model.tat, now + answer.waitMs) + cost * spacing;
}

async function rowOf(key: string) {
  const epoch = (name: string) => `extract(epoch from ${name})::float8 * 1000 as ${name}`;
  const [row] = await database.query<{ share: number; last_cut_at: number; cooldown_until: number; now: number }>(
    `select share, ${epoch("last_cut_at")}, ${epoch("cooldown_until")},
            extract(epoch from clock_timestamp())::float8 * 1000 as now from kernel.rate_gate where key = $1`,
    [key],
  );
  if (!row) throw new Error(`no gate ${key}`);
  return row;
}
