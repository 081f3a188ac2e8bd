/** What changes while a plan runs: its definition has no effect on it, a new value of its credential takes effect at once. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import { endOf, plan } from "../harvest.fixture.ts";
import { cancelPlan } from "../store/plans/plan-ends.ts";
import { type Asked, correct, itemsOf, type Said, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

test("a plan keeps its definition to the end, and the next one has the new one", async () => {
  const { promise, resolve } = signal();
  const answer = correct(itemsOf(30));
  const script = async (request: Asked): Promise<Said> => {
    if (request.query.get("offset") === "10") await promise;
    return answer(request);
  };
  const query = { from: "${window.from}", to: "${window.to}", offset: "${page.offset}", size: "${page.size}" };
  const budget = { maxRequests: 1 }; // Every page is a run of its own.
  const source = await harvests.source(script, { http: { query: { ...query, edition: "first" } }, budget });
  const first = await harvests.plan(source);
  await until(() => harvests.server.asked(source).length === 2, "the second page to be asked for");
  await harvests.apply(source, {
    http: { query: { ...query, edition: "second" } },
    pagination: { pageSize: 5 },
    budget,
  });
  const second = await harvests.plan(source); // The new one is there, and running.
  resolve();
  for (const planId of [first, second]) {
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 30 } });
  }
  expect(await editionsOf(first)).toEqual(Array<string>(3).fill("first 10"));
  expect(await editionsOf(second)).toEqual(Array<string>(6).fill("second 5"));
});

test("every request has the time of its plan, and the plan keeps the warnings of its definition", async () => {
  const query = {
    from: "${window.from}",
    to: "${window.to}",
    offset: "${page.offset}",
    size: "${page.size}",
    at: "${now}",
  };
  const source = await harvests.source(correct(itemsOf(30)), { http: { query } });
  const window = { from: "2026-08-01", to: "2026-08-02" };
  const made = await plan(harvests.api, { source, window });
  expect(made).toMatchObject({ warnings: [{ field: "baseUrl" }] });
  const ended = await endOf(harvests.api, made.planId);
  expect(ended).toMatchObject({ status: "COMPLETE", remarks: { warnings: made["warnings"] } });
  const times = harvests.server.asked(source).map((request) => request.query.get("at"));
  expect(times).toEqual(Array<unknown>(3).fill(ended["plannedAt"]));
});

/** The editions and sizes that the pages of a plan asked for. */
async function editionsOf(planId: string): Promise<string[]> {
  const batches = await database.query<{ url: string }>(
    "select request ->> 'url' as url from harvest.ing_task_run_batch where plan_id = $1 order by batch_no",
    [planId],
  );
  return batches.map(({ url }) => {
    const { searchParams } = new URL(url);
    return `${searchParams.get("edition")} ${searchParams.get("size")}`;
  });
}

test("a credential that changes during a run is used within seconds, and each batch has the version of its own request", async () => {
  const values = ["the-first-value-of-a-key", "another-value-of-that-key"] as const;
  await harvests.api.put("/api/v1/secrets/ROTATING", { value: values[0] });
  const used: string[] = [];
  const source = await harvests.source(
    async ({ headers, query }) => {
      const key = String(headers["x-key"]);
      used.push(key);
      if (used.length === 2) await harvests.api.put("/api/v1/secrets/ROTATING", { value: values[1] });
      await new Promise((done) => void setTimeout(done, 50));
      const offset = Number(query.get("offset"));
      const isLast = key === values[1] && used.filter((one) => one === key).length === 3;
      return { body: { items: isLast ? [] : itemsOf(offset + 10).slice(offset) } };
    },
    {
      auth: { type: "API_KEY", location: "HEADER", name: "X-Key", credential: "key", required: true },
      response: { totalPath: undefined },
    },
    { credentials: { key: { secret: "ROTATING" } } },
  );
  const ended = await harvests.harvest(source);
  expect(ended.status).toBe("COMPLETE");
  const batches = await database.query<{ version: number }>(
    "select credential_version as version from harvest.ing_task_run_batch where plan_id = $1 order by batch_no",
    [ended.planId],
  );
  expect(batches.map(({ version }) => values[version - 1])).toEqual(used);
});

test("a cancelled plan stops its worker: nothing is written after it, and the page under way is given up", async () => {
  const { promise, resolve } = signal();
  const answer = correct(itemsOf(100));
  const script = async (request: Asked): Promise<Said> => {
    const offset = request.query.get("offset");
    if (offset === "20") await promise;
    if (offset === "30") await until(request.isGivenUp, "the request to be given up", 20_000);
    return answer(request);
  };
  const source = await harvests.source(script);
  const planId = await harvests.plan(source);
  const asked = () => harvests.server.asked(source);
  await until(() => asked().length === 3, "the third page to be asked for");
  await until(async () => (await harvests.slices(planId))[0]?.batches === 2, "the first pages to be committed");
  await database.db.tx(async (tx) => {
    await cancelPlan(tx, planId, "cancelled by a test");
    resolve();
    // The commit of the third page waits for this transaction, while the fourth is fetched.
    await until(() => asked().length === 4, "the fourth page to be asked for");
  });
  const rows = () =>
    database.query(
      `select t.*, r.status_code as run, s.batches, s.status_code as slice
       from harvest.ing_task t join harvest.ing_task_run r using (task_id) join harvest.ing_plan_slice s using (slice_id)
       where t.plan_id = $1`,
      [planId],
    );
  const before = await rows();
  expect(before).toMatchObject([{ status_code: "CANCELLED", run: "CANCELLED", slice: "CANCELLED", batches: 2 }]);
  await until(() => asked()[3]?.isGivenUp() ?? false, "the fourth page to be given up", 15_000);
  await until(async () => (await harvests.inFlight()) === 0, "the worker to let go of it");
  expect(await rows()).toEqual(before);
  expect(await harvests.keys(source)).toHaveLength(20);
  expect(asked()).toHaveLength(4);
});
