/** Which limits the gates of a source have: those of the operator, else those of its newest plan. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { endOf } from "../harvest.fixture.ts";
import { compiledOf, draft } from "../spec/definition.fixture.ts";
import { createDeclareGates } from "./gates.ts";
import { correct, itemsOf, type Script, useScripted } from "./scripted.fixture.ts";
import type { PreparedTask } from "./task.ts";

const database = useDatabase();
const harvests = useScripted(database);

async function gates(prefix: string): Promise<Record<string, unknown>[]> {
  const { items } = (await harvests.api.get("/api/v1/gates")).body as {
    items: (Record<string, unknown> & { key: string })[];
  };
  return items.filter(({ key }) => key.startsWith(prefix));
}

/** A permit that came too late to be used counts as well. */
const atLeast = (count: number) => expect.toSatisfy((value: number) => value >= count);
const used = { quotas: [{ unit: "requests", window: "P1D", limit: 1_000 }] };

test("requests with a credential count at gates of their own", async () => {
  vi.stubEnv("GATED_KEY", "key-of-the-tests");
  onTestFinished(() => void vi.unstubAllEnvs());
  const rateLimit = { refillRatePerSec: 100, refillRateWithCredential: 5_000, ...used };
  const auth = { type: "API_KEY", location: "QUERY", name: "key", credential: "key", required: false };
  const source = await harvests.source(
    correct(itemsOf(30)),
    { rateLimit, auth },
    { credentials: { key: { env: "GATED_KEY" } } },
  );
  expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
  expect(harvests.server.asked(source)[0]?.query.get("key")).toBe("key-of-the-tests");
  expect(await gates(source)).toMatchObject([
    { key: source, declaredBy: "source", ratePerSec: 100, quotas: [{ used: 0 }] },
    { key: `${source}:key`, declaredBy: "source", ratePerSec: 5_000, quotas: [{ used: atLeast(3) }] },
  ]);
});

test("a limit that a source sends alone holds its gate back over the time that the definition declares", async () => {
  const answer = correct(itemsOf(30));
  const script: Script = async (asked) => ({ ...(await answer(asked)), headers: { "x-ratelimit-limit": "500" } });
  for (const [headerWindow, headerRatePerSec] of [
    ["PT10S", 50],
    [undefined, null],
  ] as const) {
    const source = await harvests.source(script, { rateLimit: { headerWindow } });
    expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
    expect(await gates(source)).toMatchObject([{ ratePerSec: 5_000, headerRatePerSec }]);
  }
});

test("what an operator declares stays while the source is harvested", async () => {
  const source = await harvests.source(correct(itemsOf(30)), { rateLimit: used });
  expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
  expect(await gates(source)).toMatchObject([
    { declaredBy: "source", ratePerSec: 5_000, quotas: [{ used: atLeast(3) }] },
  ]);
  await harvests.api.put(`/api/v1/gates/${source}`, { ratePerSec: 700 });
  expect(await harvests.harvest(source, 2)).toMatchObject({ status: "COMPLETE" });
  expect(await gates(source)).toMatchObject([{ declaredBy: "operator", ratePerSec: 700, quotas: [] }]);
});

describe("a task that waits for a gate goes on at once", () => {
  /** A source whose first answer asks for an hour of patience, and the plan that waits for it. */
  async function waiting() {
    const answer = correct(itemsOf(30));
    let asked = 0;
    const source = await harvests.source((request) => {
      asked += 1;
      return asked === 1 ? { status: 429, headers: { "retry-after": "3600" }, body: {} } : answer(request);
    });
    const planId = await harvests.plan(source);
    expect(await harvests.waits(planId)).toMatchObject({ reason: `the source asked for a pause of ${source}` });
    return { source, planId };
  }

  const open = async (what: string) =>
    expect(await harvests.api.post(`/api/v1/gates/${what}`, {})).toMatchObject({ status: 200 });

  test("when an operator opens it", async () => {
    const { source, planId } = await waiting();
    await open(`${source}:open?dryRun=true`);
    expect((await harvests.waits(planId)).seconds).toBeGreaterThan(3_000);
    await open(`${source}:open`);
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE" });
  });

  test("when an operator raises its quota", async () => {
    const quotas = [{ unit: "requests", window: "P1D", limit: 2 }];
    const source = await harvests.source(correct(itemsOf(50)), { rateLimit: { quotas } });
    const planId = await harvests.plan(source);
    expect((await harvests.waits(planId)).reason).toContain("quota");
    const raised = [{ unit: "requests", windowSec: 86_400, limit: 1_000 }];
    await harvests.api.put(`/api/v1/gates/${source}`, { ratePerSec: 100, quotas: raised });
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE" });
  });

  test("when a newer definition of its source raises its quota", async () => {
    const quotas = [{ unit: "requests", window: "P1D", limit: 2 }];
    const source = await harvests.source(correct(itemsOf(50)), { rateLimit: { quotas } });
    const planId = await harvests.plan(source);
    expect((await harvests.waits(planId)).reason).toContain("quota");
    await harvests.apply(source, { rateLimit: { quotas: [{ unit: "requests", window: "P1D", limit: 1_000 }] } });
    expect(await harvests.harvest(source, 2)).toMatchObject({ status: "COMPLETE" });
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE" });
  });

  test("but not when another gate is opened", async () => {
    const { planId } = await waiting();
    await harvests.api.put("/api/v1/gates/another", { ratePerSec: 5 });
    await open("another:open");
    expect((await harvests.waits(planId)).seconds).toBeGreaterThan(3_000);
  });
});

test("a snapshot is declared once for each plan and minute, as of its newest plan", async () => {
  const declared: (Date | undefined)[] = [];
  let nowMs = 0;
  const declare = createDeclareGates({
    db: database.db,
    gates: { declare: async (_tx, _gates, asOf) => void declared.push(asOf) },
    clock: { now: () => nowMs },
  });
  const [older, newer] = [new Date("2026-08-01"), new Date("2026-08-02")];
  const { snapshot } = compiledOf(draft());
  const task = (planned_at: Date) =>
    ({ context: { spec_fingerprint: "f", planned_at }, source: { snapshot } }) as PreparedTask;
  for (const plannedAt of [older, older, newer, older, newer]) await declare(task(plannedAt));
  expect(declared).toEqual([older, newer]);
  nowMs = 60_000;
  for (const plannedAt of [older, newer]) await declare(task(plannedAt));
  expect(declared).toEqual([older, newer, newer]);
});

test("a gate that several endpoints name has the strictest limits of all, whoever is planned last", async () => {
  const of = (rateLimit: object) =>
    harvests.source(correct(itemsOf(30)), {
      rateLimit: { keys: ["common"], providerRatePerSec: undefined, ...rateLimit },
    });
  const daily = { unit: "requests", window: "P1D" };
  const first = await of({
    refillRatePerSec: 900,
    burstCapacity: 5,
    concurrency: 9,
    quotas: [{ ...daily, limit: 500 }],
  });
  const second = await of({
    refillRatePerSec: 1_000,
    burstCapacity: 3,
    quotas: [
      { ...daily, limit: 800 },
      { unit: "requests", window: "PT1H", limit: 300 },
    ],
  });
  const alone = { ratePerSec: 900, burst: 5, concurrency: 9, quotas: [{ windowSec: 86_400, limit: 500 }] };
  const both = {
    ratePerSec: 900,
    burst: 3,
    concurrency: 9,
    quotas: [
      { windowSec: 3_600, limit: 300 },
      { windowSec: 86_400, limit: 500 },
    ],
  };
  for (const [source, day, expected] of [
    [first, 1, alone],
    [second, 1, both],
    [first, 2, both],
    [second, 2, both],
  ] as const) {
    expect(await harvests.harvest(source, day)).toMatchObject({ status: "COMPLETE" });
    expect(await gates("common")).toMatchObject([{ key: "common", declaredBy: "source", ...expected }]);
  }
});
