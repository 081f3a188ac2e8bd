/** Tokens, quotas and budgets: what ends a run does not lose what it has, and the rest follows. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { endOf, plan } from "../harvest.fixture.ts";
import { type Asked, correct, itemsOf, type Said, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

test("a token that can be used once is not used again after a lost answer", async () => {
  const items = itemsOf(30);
  let isLost = false;
  let position = 0;
  // As Crossref's: the token is the same for all pages, and the position is the server's.
  const script = ({ query }: Asked): Said => {
    position = query.get("token") === "*" ? 0 : position + 10;
    if (position === 20 && !isLost) {
      isLost = true;
      return { status: 500, body: {} };
    }
    return { body: { items: items.slice(position, position + 10), next: "constant" } }; // Without a total that would tell.
  };
  const source = await harvests.source(script, { ...SINGLE_USE, response: { totalPath: undefined } });
  const ended = await harvests.harvest(source);
  expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 30, inserted: 30, unchanged: 20 } });
  expect(await harvests.slices(ended.planId)).toMatchObject([{ generation: 2, batches: 4 }]);
});

test("an error while the next page is fetched starts a slice again whose token can be used once", async () => {
  const items = itemsOf(50);
  let position = 0;
  const script = ({ query }: Asked): Said => {
    position = query.get("token") === "*" ? 0 : position + 10;
    return { body: { items: items.slice(position, position + 10), next: "constant" } }; // Without a total that would tell.
  };
  const source = await harvests.source(script, { ...SINGLE_USE, response: { totalPath: undefined } });
  await database.query("alter table harvest.ing_task_run_batch add constraint broken check (batch_no <> 3) not valid");
  const planId = await harvests.plan(source);
  expect((await harvests.waits(planId)).reason).toContain("broken");
  await database.query("alter table harvest.ing_task_run_batch drop constraint broken");
  await harvests.makeDue(planId);
  const ended = await endOf(harvests.api, planId);
  expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 50, inserted: 50 } });
  expect(await harvests.slices(planId)).toMatchObject([{ generation: 2 }]);
});

const SINGLE_USE = {
  http: { query: { from: "${window.from}", to: "${window.to}", token: "${page.token}" } },
  pagination: { type: "TOKEN", initial: "*", tokenClass: "SINGLE_USE", nextTokenPath: "$.next", pageSize: 10 },
};

test("a price is spent of the budget before the source says so, and what it says replaces what was counted", async () => {
  const answer = correct(itemsOf(60));
  const rateLimit = { quotas: [{ unit: "usd_micros", window: "P1D", limit: 1_000 }], priceUsdMicros: 300 };
  const silent = await harvests.source(answer, { rateLimit });
  expect((await harvests.waits(await harvests.plan(silent))).reason).toBe(`the quota of ${silent} is spent`);
  // A permit that a busy machine uses too late is paid as well.
  expect(harvests.server.asked(silent).length).toBeLessThanOrEqual(3);

  // Six requests would cost more than this, and two permits that a busy machine uses too late are no harm.
  const quotas = [{ unit: "usd_micros", window: "P1D", limit: 1_500 }];
  let left = 0.0015;
  const script = (request: Asked): Said => {
    left -= 0.000_02;
    const money = { "x-ratelimit-limit-usd": "0.0015", "x-ratelimit-remaining-usd": left.toFixed(6) };
    return { ...(answer(request) as Said), headers: { ...money, "x-ratelimit-reset": "3600" } };
  };
  const cheaper = await harvests.source(script, { rateLimit: { ...rateLimit, quotas } });
  expect(await harvests.harvest(cheaper)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 60 } });
});

test("a Retry-After on good answers is no pause where the definition says so", async () => {
  const answer = correct(itemsOf(30));
  let asked = 0;
  const script = (request: Asked): Said => {
    asked += 1;
    const status = asked === 2 ? 429 : 200;
    return { status, ...(answer(request) as Said), headers: { "retry-after": asked === 2 ? "1" : "3600" } };
  };
  const patient = await harvests.source((request) => ({
    ...(answer(request) as Said),
    headers: { "retry-after": "3600" },
  }));
  expect((await harvests.waits(await harvests.plan(patient))).reason).toBe(
    `the source asked for a pause of ${patient}`,
  );
  const source = await harvests.source(script, { rateLimit: { retryAfterOnSuccess: false } });
  expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 30 } });
  expect(harvests.server.asked(source)).toHaveLength(4);
});

test("a spent quota parks the task until it resets, and the task holds no place meanwhile", async () => {
  const items = itemsOf(50);
  const quotas = [{ unit: "requests", window: "PT1H", limit: 3 }];
  const source = await harvests.source(correct(items), { rateLimit: { quotas } });
  const planId = await harvests.plan(source);
  const waits = await harvests.waits(planId);
  expect(waits.reason).toBe(`the quota of ${source} is spent`);
  // A permit that comes too late to be used is spent as well.
  expect(harvests.server.asked(source).length).toBeLessThanOrEqual(3);
  const [quota] = await database.query<{ used: number; seconds: number; held: number }>(
    `select used, extract(epoch from reset_at - now())::float8 as seconds,
            (select count(*)::int from harvest.ing_task where status_code = 'EXECUTING') as held
     from kernel.rate_quota where key = $1`,
    [source],
  );
  expect(Math.abs((quota?.seconds ?? 0) - waits.seconds)).toBeLessThan(10);
  expect(quota).toMatchObject({ used: 3, held: 0 });
  expect((await harvests.runs(planId)).at(-1)).toMatchObject({ status: "PARTIAL", error: waits.reason });

  await database.query("update kernel.rate_quota set reset_at = now() where key = $1", [source]);
  await harvests.makeDue(planId);
  expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 50 } });
  expect(harvests.server.asked(source)).toHaveLength(5); // No page was asked for twice.
});

test("a harvest leaves a tenth of a quota, which an urgent one may use", async () => {
  const quotas = [{ unit: "requests", window: "PT1H", limit: 10 }];
  const source = await harvests.source(correct(itemsOf(200)), { rateLimit: { quotas } });
  const planId = await harvests.plan(source);
  expect((await harvests.waits(planId)).reason).toBe(`the rest of the quota of ${source} is held back`);
  // A permit that comes too late to be used is spent as well.
  const used = () => database.query("select used from kernel.rate_quota where key = $1", [source]);
  expect(await used()).toEqual([{ used: 9 }]);
  const window = { from: "2026-08-01", to: "2026-08-02" };
  const urgent = await plan(harvests.api, { source, window, priority: 50 });
  expect((await harvests.waits(urgent.planId)).reason).toBe(`the quota of ${source} is spent`);
  expect(await used()).toEqual([{ used: 10 }]);
});

describe("a budget ends a run PARTIAL, and the next one continues where it was", () => {
  test("of requests", async () => {
    const source = await harvests.source(correct(itemsOf(70)), { budget: { maxRequests: 3 } });
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 70, inserted: 70, unchanged: 0 } });
    expect(harvests.server.asked(source).map(({ query }) => query.get("offset"))).toEqual([
      "0",
      "10",
      "20",
      "30",
      "40",
      "50",
      "60",
    ]);
    const reason = "a run makes 3 requests";
    expect(await harvests.runs(ended.planId)).toEqual([
      { attempt: 1, status: "PARTIAL", error: reason },
      { attempt: 2, status: "PARTIAL", error: reason },
      { attempt: 3, status: "SUCCEEDED", error: null },
    ]);
  });

  test("of requests, with a token that can be used once, which is not lost", async () => {
    const items = itemsOf(70);
    let position = 0;
    const script = ({ query }: Asked): Said => {
      position = query.get("token") === "*" ? 0 : position + 10;
      return { body: { total: 70, items: items.slice(position, position + 10), next: "constant" } };
    };
    const source = await harvests.source(script, { ...SINGLE_USE, budget: { maxRequests: 3 } });
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 70, inserted: 70, unchanged: 0 } });
    expect(await harvests.slices(ended.planId)).toMatchObject([{ generation: 1 }]);
    expect((await harvests.runs(ended.planId)).map(({ status }) => status).slice(0, 2)).toEqual(["PARTIAL", "PARTIAL"]);
  });

  test("of time", async () => {
    const answer = correct(itemsOf(40));
    const script = async (request: Asked): Promise<Said> => {
      await new Promise((resolve) => void setTimeout(resolve, 400));
      return answer(request);
    };
    const source = await harvests.source(script, { budget: { maxDurationSec: 1 } });
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 40, unchanged: 0 } });
    expect((await harvests.runs(ended.planId))[0]).toMatchObject({ status: "PARTIAL", error: "a run takes 1 seconds" });
  });

  test("of errors, after a pause", async () => {
    let no = 0;
    const answer = correct(itemsOf(150));
    const script = (request: Asked): Said | Promise<Said> => {
      no += 1;
      return no % 2 === 1 ? { status: 500, body: {} } : answer(request);
    };
    const source = await harvests.source(script, { budget: { errorShareMax: 0.4 } });
    const planId = await harvests.plan(source);
    expect(await harvests.waits(planId)).toMatchObject({ reason: "10 of 20 requests failed" });
    await harvests.makeDue(planId);
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 150 } });
    expect((await harvests.runs(planId)).map(({ status }) => status)).toEqual(["PARTIAL", "SUCCEEDED"]);
  });
});
