import { setMaxListeners } from "node:events";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { createWake } from "../work/wake.ts";
import type { GateDeclaration } from "./declaration.ts";
import { openGates, type TestGates } from "./gates.fixture.ts";
import type { Permit } from "./take.ts";

const database = useDatabase();
const LONG_MS = 30_000;
let gates: TestGates;
beforeAll(async () => {
  gates = await openGates(database.db);
});

let made = 0;
async function gate(limits: Omit<GateDeclaration, "key">): Promise<string> {
  made += 1;
  const key = `take-${made}`;
  await gates.declare(database.db, [{ key, ...limits }]);
  return key;
}

async function take(
  key: string,
  options: { task?: string; maxWaitMs?: number; signal?: AbortSignal } = {},
): Promise<Permit> {
  const { task = "task", maxWaitMs = LONG_MS, ...rest } = options;
  const taken = await gates.take({ task, gates: [{ key }] }, { maxWaitMs, ...rest });
  if (taken.kind === "rejected") throw new Error(`rejected: ${JSON.stringify(taken)}`);
  return taken;
}

async function metric(name: string, of = gates): Promise<number> {
  return Number(new RegExp(`^${name}(?:{[^}]*})? (\\S+)`, "m").exec(await of.metrics())?.[1] ?? 0);
}

/** Waits until this many more permits were reserved since the last call. */
async function reserved(count: number, before: number): Promise<void> {
  await until(async () => (await metric("millrace_gate_permits_total")) >= before + count, "a reservation");
}

/** Keeps the process busy. */
function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test("requests go one after the other at the pace of the gate, never before their time", async () => {
  const key = await gate({ ratePerSec: 20 });
  const permits = await Promise.all(Array.from({ length: 8 }, () => take(key)));
  // In their order in time: on a busy machine a permit may be late, and its request is granted another.
  const due = permits.map(({ dueAtMs }) => dueAtMs).toSorted((a, b) => a - b);
  for (const [index, at] of due.slice(1).entries()) expect(at - (due[index] ?? 0)).toBeGreaterThan(51.9);
  const [{ now }] = (await database.query("select extract(epoch from clock_timestamp())::float8 * 1000 as now")) as [
    { now: number },
  ];
  expect(now).toBeGreaterThanOrEqual(due.at(-1) ?? 0);
});

test("tasks take turns of ten permits", async () => {
  const key = await gate({ ratePerSec: 200 });
  const order: string[] = [];
  const queue = (task: string, count: number) =>
    Array.from({ length: count }, async () => {
      await take(key, { task });
      order.push(task);
    });
  await Promise.all([...queue("long", 35), ...queue("short", 3)]);
  expect(order.indexOf("short")).toBeLessThanOrEqual(10);
  expect(order.lastIndexOf("short")).toBeLessThan(25);
});

test("a wait that is longer than allowed is rejected at once, with the time to come back", async () => {
  const key = await gate({ ratePerSec: 10 });
  await gates.feedback(key, { kind: "wait", retryAfterMs: 3_600_000 });
  const request = { task: "t", gates: [{ key }] };
  for (const maxWaitMs of [60_000, 1e9]) {
    const answer = await gates.take(request, { maxWaitMs });
    expect(answer).toMatchObject({ kind: "rejected", reason: "COOLDOWN", key });
    expect(answer.kind === "rejected" && answer.retryAfterMs).toBeGreaterThan(3_600_000);
  }
});

test("a request that cannot wait is rejected beside one that can", async () => {
  const key = await gate({ ratePerSec: 2 });
  await take(key);
  const patient = take(key);
  const hasty = await gates.take({ task: "t", gates: [{ key }] }, { maxWaitMs: 1 });
  expect(hasty).toMatchObject({ kind: "rejected", reason: "OVER_DEADLINE" });
  await patient;
});

test("a short cooldown is waited for", async () => {
  const key = await gate({ ratePerSec: 50 });
  await gates.feedback(key, { kind: "wait", retryAfterMs: 200 });
  const [row] = await gates.describe([key]);
  const permit = await take(key);
  expect(permit.dueAtMs).toBeGreaterThanOrEqual(row?.cooldown_until?.getTime() ?? Number.POSITIVE_INFINITY);
});

test("an aborted request leaves the queue, and the next one goes", async () => {
  const key = await gate({ ratePerSec: 4 });
  await take(key);
  const abort = new AbortController();
  const aborted = take(key, { signal: abort.signal });
  const next = take(key);
  abort.abort(new Error("enough"));
  await expect(aborted).rejects.toThrow("enough");
  await next;
  await expect(take(key, { signal: abort.signal })).rejects.toThrow("enough");
});

test("a permit that is late is given up and taken anew", async () => {
  const key = await gate({ ratePerSec: 5 });
  await take(key);
  const before = await metric("millrace_gate_permits_total");
  const givenUp = await metric("millrace_gate_permits_given_up_total");
  const late = take(key);
  await reserved(1, before);
  const [row] = await database.query<{ tat: number; backlog: number }>(
    `select extract(epoch from tat)::float8 * 1000 as tat,
            extract(epoch from tat - clock_timestamp())::float8 * 1000 as backlog from kernel.rate_gate where key = $1`,
    [key],
  );
  if (!row) throw new Error("no gate");
  block(row.backlog + 100);
  const { dueAtMs } = await late;
  expect(dueAtMs).toBeGreaterThan(row.tat - 1);
  expect(await metric("millrace_gate_permits_given_up_total")).toBeGreaterThan(givenUp);
});

test("a permit that is reserved when its gate begins to cool down is given up", async () => {
  const key = await gate({ ratePerSec: 5 });
  await take(key);
  const before = await metric("millrace_gate_permits_total");
  const pending = take(key);
  await reserved(1, before);
  await gates.feedback(key, { kind: "throttled", retryAfterMs: 400 });
  const [row] = await gates.describe([key]);
  const { dueAtMs } = await pending;
  expect(dueAtMs).toBeGreaterThanOrEqual(row?.cooldown_until?.getTime() ?? Number.POSITIVE_INFINITY);
});

test("many waiting requests reserve little of the future, so that others are not held up", async () => {
  const key = await gate({ ratePerSec: 10 });
  const abort = new AbortController();
  setMaxListeners(0, abort.signal);
  const crowd = Array.from({ length: 50 }, () => take(key, { signal: abort.signal }).catch(() => undefined));
  await crowd[0];
  const [row] = await gates.describe([key]);
  expect(row?.backlog_ms).toBeLessThan(1_000);
  expect(await metric("millrace_gate_waiting")).toBeGreaterThan(40);
  abort.abort();
  await Promise.all(crowd);
  await until(async () => (await metric("millrace_gate_waiting")) === 0, "an empty lane");
});

test.each([
  ["opened", (key: string) => database.db.tx((tx) => gates.open(tx, key)), { kind: "wait", retryAfterMs: LONG_MS / 2 }],
  [
    "declared anew",
    (key: string) => gates.declare(database.db, [{ key, ratePerSec: 100 }]),
    { kind: "headers", quotas: [{ unit: "requests", remaining: 0, resetAfterMs: LONG_MS / 2 }] },
  ],
] as const)("a request that waits for a gate goes on when it is %s", async (_, change, signal) => {
  const key = await gate({ ratePerSec: 100, quotas: [{ unit: "requests", windowSec: 3_600, limit: 100 }] });
  await gates.feedback(key, signal);
  const waiting = take(key);
  await until(async () => (await metric("millrace_gate_waiting")) === 1, "a request that waits");
  const rejections = () => metric("millrace_gate_rejections_total");
  await until(async () => (await rejections()) > 0, "its refusal");
  await change(key);
  expect((await waiting).waitedMs).toBeLessThan(LONG_MS / 4);
});

describe("a gate with slots", () => {
  test("lets the next request through when one is released", async () => {
    const key = await gate({ ratePerSec: 1_000, concurrency: 1 });
    const first = await take(key);
    let isThrough = false;
    const second = take(key).then((permit) => {
      isThrough = true;
      return permit;
    });
    await until(async () => (await metric("millrace_gate_rejections_total")) > 0, "a rejection");
    expect(isThrough).toBe(false);
    await first.release();
    await (await second).release();
    const [row] = await gates.describe([key]);
    expect(row?.slots_taken).toBe(0);
  });

  test("tells others of a free slot only if there was none", async () => {
    const key = await gate({ ratePerSec: 1_000, concurrency: 2 });
    const wake = createWake();
    const hinting = await openGates(database.db, { wake });
    let hints = 0;
    wake.on(`gate ${key}`, () => {
      hints += 1;
    });
    const held = [];
    for (let n = 0; n < 2; n += 1) {
      const answer = await hinting.acquire({ gates: [{ key }], deadlineMs: LONG_MS });
      if (answer.kind === "allow") held.push(answer.held);
    }
    for (const slots of held) await hinting.release(slots);
    for (const slots of held) await hinting.release(slots);
    expect(held).toHaveLength(2);
    expect(hints).toBe(1);
  });

  test("rejects a request when its time is up, also beside one that waits for longer", async () => {
    const key = await gate({ ratePerSec: 1_000, concurrency: 1 });
    const first = await take(key);
    const patient = take(key);
    onTestFinished(async () => {
      await first.release();
      await (await patient).release();
    });
    const answer = await gates.take({ task: "t", gates: [{ key }] }, { maxWaitMs: 50 });
    expect(answer).toMatchObject({ kind: "rejected", reason: "SLOTS" });
  });

  test("frees the slot of a permit that nobody waits for any more", async () => {
    const key = await gate({ ratePerSec: 5, concurrency: 3 });
    const first = await take(key);
    const before = await metric("millrace_gate_permits_total");
    const abort = new AbortController();
    const aborted = take(key, { signal: abort.signal });
    await reserved(1, before);
    abort.abort();
    await expect(aborted).rejects.toThrow("abort");
    await first.release();
    await until(async () => (await gates.describe([key]))[0]?.slots_taken === 0, "free slots");
  });
});

describe("a pause that is longer than the caller waits for pauses", () => {
  const BRIEF = { maxWaitMs: LONG_MS, maxPauseMs: 2_000 };

  test.each(["before", "after"])("rejects at once, if it begins %s the request", async (when) => {
    const key = await gate({ ratePerSec: 0.5 });
    if (when === "after") await take(key); // The next waits two seconds for its turn.
    const cool = () => gates.feedback(key, { kind: "wait", retryAfterMs: 20_000 });
    if (when === "before") await cool();
    const taking = gates.take({ task: "task", gates: [{ key }] }, BRIEF);
    if (when === "after") await cool();
    expect(await taking).toMatchObject({ kind: "rejected", reason: "COOLDOWN" });
  });

  test("rejects at once if a quota is spent", async () => {
    const key = await gate({ ratePerSec: 50, quotas: [{ unit: "requests", windowSec: 86_400, limit: 1 }] });
    await gates.feedback(key, { kind: "headers", quotas: [{ unit: "requests", remaining: 0, resetAfterMs: 20_000 }] });
    expect(await gates.take({ task: "task", gates: [{ key }] }, BRIEF)).toMatchObject({ reason: "QUOTA" });
  });

  test("does not end a wait for a turn, nor a shorter pause", async () => {
    const key = await gate({ ratePerSec: 4 });
    await gates.feedback(key, { kind: "wait", retryAfterMs: 100 });
    const options = { maxWaitMs: LONG_MS, maxPauseMs: 150 };
    const takes = [1, 2, 3].map(() => gates.take({ task: "task", gates: [{ key }] }, options));
    expect((await Promise.all(takes)).map(({ kind }) => kind)).toEqual(["permit", "permit", "permit"]);
  });
});
