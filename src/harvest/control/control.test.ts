/** Pauses, the end of single slices, and why a slice does not finish. */
import { describe, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { endOf, type PlanReply } from "../harvest.fixture.ts";
import { createOverview } from "../overview.ts";
import { type Asked, correct, itemsOf, type Script, useScripted } from "../run/scripted.fixture.ts";
import { pausesCheck } from "./doctor.ts";

const database = useDatabase();
const alerts = [{ url: "http://127.0.0.1:9", events: ["HARVEST_ENDPOINT_PAUSED" as const], retryNum: 0 }];
const harvests = useScripted(database, {}, { webhooks: { alerts } });

const post = (path: string, body: object = {}) => harvests.api.post(`/api/v1/harvest${path}`, body);
const get = async <Body = Json>(path: string) => (await harvests.api.get<Body>(`/api/v1/harvest${path}`)).body;
const audits = (action: string, target: string) =>
  database.query<{ actor: string; details: Json }>(
    "select actor, details from kernel.audit_log where action = $1 and target = $2 order by id",
    [action, target],
  );
/** A task of another source has run, so a task that could start would have started. */
async function othersRun(): Promise<void> {
  const other = await harvests.source(correct(itemsOf(1)));
  expect(await harvests.harvest(other)).toMatchObject({ status: "COMPLETE" });
}
const sliceOf = async (planId: string) => {
  const { items } = await get<{ items: { sliceId: number; status: string }[] }>(`/plans/${planId}/slices`);
  return items;
};
const why = (planId: string, sliceId: number | undefined) =>
  get<{ causes: { code: string; sentence: string; since: string | null; until: string | null }[] }>(
    `/plans/${planId}/slices/${sliceId}/why`,
  );
/** Answers pages up to this offset at once, and the others when it is released. */
function heldAfter(offset: number, items = itemsOf(50)) {
  const gate = signal();
  const reached = signal();
  const answer = correct(items);
  const script: Script = async (asked: Asked) => {
    if (Number(asked.query.get("offset")) >= offset) {
      reached.resolve();
      await gate.promise;
    }
    return answer(asked);
  };
  return { script, release: gate.resolve, reached: reached.promise };
}

describe("a source that is paused", () => {
  test("starts no task, says why they wait, and goes on when it is resumed", async () => {
    const source = await harvests.source(correct(itemsOf(15)));
    const paused = await post(`/sources/${source}:pause`, { reason: "maintenance" });
    expect(paused).toMatchObject({
      status: 200,
      body: { items: [{ source, endpoint: null, operation: null, by: "MILLRACE_ADMIN_KEY", reason: "maintenance" }] },
    });
    const planId = await harvests.plan(source);
    await othersRun();
    expect(harvests.server.asked(source)).toEqual([]);
    const sentence = expect.stringMatching(
      new RegExp(`^${source} is paused by MILLRACE_ADMIN_KEY since \\d{4}-.*Z: maintenance`),
    ) as string;
    expect(await get(`/plans/${planId}`)).toMatchObject({
      status: "READY",
      waits: [{ reason: sentence, until: null }],
    });
    expect(await get(`/plans/${planId}/tasks`)).toMatchObject({ items: [{ status: "QUEUED", waitReason: sentence }] });
    const [slice] = await sliceOf(planId);
    expect(await why(planId, slice?.sliceId)).toMatchObject({
      causes: [{ code: "PAUSED", sentence }, { code: "QUEUE" }],
    });
    expect((await post(`/sources/${source}:resume`)).body).toMatchObject({
      resumed: { reason: "maintenance" },
      items: [],
    });
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 15 } });
    expect(await audits("harvest.pause", source)).toMatchObject([
      { actor: "MILLRACE_ADMIN_KEY", details: { reason: "maintenance" } },
    ]);
    expect(await audits("harvest.resume", source)).toMatchObject([
      { actor: "MILLRACE_ADMIN_KEY", details: { pausedBy: "MILLRACE_ADMIN_KEY" } },
    ]);
  });

  test("ends a run after its page without holding a slot, and later goes on with the next page", async () => {
    const held = heldAfter(20);
    const source = await harvests.source(held.script);
    const planId = await harvests.plan(source);
    await held.reached;
    await post(`/sources/${source}:pause`);
    await until(
      async () => (await get<{ items: Json[] }>("/pauses")).items.length > 0 && harvests.millrace.app,
      "the pause",
    );
    held.release();
    const [run] = await until(async () => {
      const runs = await harvests.runs(planId);
      return runs[0]?.status === "PARTIAL" && runs;
    }, "the end of the run");
    expect(run).toMatchObject({ error: "it was paused" });
    // A process that does not know of the end of a pause yet does not claim the task again and again.
    const [left] = await database.query<{ wait: string }>(
      `select extract(epoch from t.scheduled_at - r.ended_at)::text as wait from harvest.ing_task t
       join harvest.ing_task_run r using (task_id) where t.plan_id = $1`,
      [planId],
    );
    expect(Number(left?.wait)).toBe(1);
    expect(await harvests.inFlight()).toBe(0);
    const before = harvests.server.asked(source).length;
    await othersRun();
    expect(harvests.server.asked(source)).toHaveLength(before);
    await post(`/sources/${source}:resume`);
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 50 } });
    const offsets = harvests.server.asked(source).map(({ query }) => Number(query.get("offset")));
    expect(offsets).toEqual([0, 10, 20, 30, 40]);
  });

  test("may be paused in part: another operation or endpoint goes on", async () => {
    const source = await harvests.source(correct(itemsOf(5)));
    await post(`/sources/${source}:pause`, { operation: "BACKFILL" });
    expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
    await post(`/sources/${source}:pause`, { endpoint: "items", operation: "HARVEST" });
    const planId = await harvests.plan(source);
    await othersRun();
    expect(await get(`/plans/${planId}`)).toMatchObject({ status: "READY" });
    // Resuming the source ends neither of the two, and says so.
    expect((await post(`/sources/${source}:resume`)).body).toMatchObject({
      items: [
        { endpoint: null, operation: "BACKFILL" },
        { endpoint: "items", operation: "HARVEST" },
      ],
    });
    await post(`/sources/${source}:resume`, { endpoint: "items", operation: "HARVEST" });
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE" });
  });

  test("is paused once, and what does not exist cannot be", async () => {
    const source = await harvests.source(correct([]));
    await post(`/sources/${source}:pause`, { reason: "first" });
    expect((await post(`/sources/${source}:pause`, { reason: "second" })).body).toMatchObject({
      items: [{ reason: "first" }],
    });
    expect(await audits("harvest.pause", source)).toHaveLength(1);
    expect(await post(`/sources/${source}:pause`, { endpoint: "item" })).toMatchObject({
      status: 404,
      body: { code: "ENDPOINT_NOT_FOUND", error: expect.stringContaining("Did you mean `items`?") as string },
    });
    expect((await post("/sources/nothing:pause")).status).toBe(404);
  });

  test("is not paused by an endpoint that answers single records, since no task is one of it", async () => {
    const source = "paused-detail";
    const byid = { role: "DETAIL", path: "/byid", response: { itemsPath: "$.items", idPath: "$.id" } };
    await harvests.applyEndpoints(source, {}, { byid });
    expect(await post(`/sources/${source}:pause`, { endpoint: "byid" })).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining("byid answers single records") as string },
    });
  });
});

describe("an endpoint whose access is refused", () => {
  const BY_ID = {
    role: "DETAIL",
    path: "/byid",
    http: { query: { ids: '${ids.join(",")}' } },
    response: { itemsPath: "$.items", idPath: "$.id" },
  };

  /** Its `/items` answers 401 until it is opened; `/others` answers always. One task of it runs at a time. */
  async function refusing() {
    let isRefused = true;
    const answer = correct(itemsOf(5));
    const script: Script = (asked) =>
      isRefused && asked.path === "/items" ? { status: 401, body: {} } : answer(asked);
    const source = await harvests.source(script, { budget: { concurrency: 1 } });
    const { items, ...others } = (
      await get<{ definition: { endpoints: { items: object } } }>(`/registry/sources/${source}`)
    ).definition.endpoints;
    expect(others).toEqual({});
    const more = { others: { ...items, path: "/others", default: false } };
    await harvests.applyEndpoints(source, { budget: { concurrency: 1 } }, more);
    const planId = await harvests.plan(source, 3);
    const plan = () => get<{ stopped: string | null }>(`/plans/${planId}`);
    const stopped = await until(async () => (await plan()).stopped ?? undefined, "the pause");
    const asked = () => harvests.server.asked(source).filter(({ path }) => path === "/items").length;
    return { source, more, planId, plan, stopped, asked, open: () => (isRefused = false) };
  }

  test("is paused by Millrace after one request, alone, until a person resumes it", async () => {
    const { source, planId, plan, stopped, asked, open } = await refusing();
    const sentence = expect.stringMatching(
      new RegExp(
        `^${source}/items is paused by Millrace since .*Z: GET .* answered 401: access refused\\. When the reason is removed: \`millrace harvest resume ${source} --endpoint items\`\\.$`,
      ),
    ) as string;
    expect(stopped).toEqual(sentence);
    expect(await plan()).toMatchObject({
      status: "READY",
      slices: { FAILED: 1, READY: 2 },
      waits: [{ reason: sentence }],
    });
    const [, second] = await sliceOf(planId);
    expect((await why(planId, second?.sliceId)).causes[0]).toMatchObject({ code: "PAUSED", sentence });
    // Another endpoint goes on, and another plan of this one waits.
    const window = { from: "2026-08-01", to: "2026-08-02" };
    const other = (await post("/plans", { source, endpoint: "others", window })).body as unknown as PlanReply;
    expect(await endOf(harvests.api, other.planId)).toMatchObject({ status: "COMPLETE", stopped: null });
    const later = await harvests.plan(source);
    await othersRun();
    expect(await get(`/plans/${later}`)).toMatchObject({ stopped: sentence });
    expect(asked()).toBe(1);
    const { items: plans } = await get<{ items: Json[] }>(`/plans?source=${source}`);
    expect(plans).toMatchObject([{ paused: sentence }, { paused: null }, { paused: sentence }]);
    const sentAlerts = await until(async () => {
      const sent = await database.query<{ payload: Json }>(
        "select payload from webhooks.delivery where payload ->> 'source' = $1",
        [source],
      );
      return sent.length > 0 && sent;
    }, "the alert");
    expect(sentAlerts).toMatchObject([
      { payload: { event: "HARVEST_ENDPOINT_PAUSED", endpoint: "items", operation: "HARVEST", planId } },
    ]);
    expect((await createOverview({ clock: systemClock }).now(database.db, { tenantId: null })).needs).toContainEqual(
      expect.objectContaining({
        title: `${source}/items`,
        reason: expect.stringContaining(`\`millrace harvest resume ${source} --endpoint items\``) as string,
      }),
    );
    open();
    const resume = () => post(`/sources/${source}:resume`, { endpoint: "items" });
    expect((await resume()).body).toMatchObject({ resumed: { endpoint: "items", automatic: true }, items: [] });
    expect((await resume()).body).toMatchObject({ resumed: null, items: [] });
    expect(await endOf(harvests.api, planId)).toMatchObject({
      status: "FAILED",
      slices: { FAILED: 1, COMPLETE: 2 },
      stopped: null,
    });
    expect(await endOf(harvests.api, later)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 5 } });
    expect(await audits("harvest.resume", source)).toMatchObject([{ details: { pausedBy: "Millrace" } }]);
  });

  test("goes on when the definition of its source changes, unless a person has paused it too", async () => {
    const { source, more, planId, asked, open } = await refusing();
    await post(`/sources/${source}:pause`, { operation: "HARVEST" });
    open();
    await harvests.applyEndpoints(source, { budget: { concurrency: 1 } }, more); // As it was, which changes nothing.
    expect(await get(`/pauses?source=${source}`)).toMatchObject({
      items: [
        { endpoint: null, automatic: false },
        { endpoint: "items", automatic: true },
      ],
    });
    await harvests.applyEndpoints(source, { budget: { concurrency: 1, maxRequests: 100 } }, more);
    expect(await get(`/pauses?source=${source}`)).toMatchObject({
      items: [{ endpoint: null, operation: "HARVEST", by: "MILLRACE_ADMIN_KEY" }],
    });
    expect(await audits("harvest.resume", source)).toMatchObject([
      { actor: "MILLRACE_ADMIN_KEY", details: { endpoint: "items", pausedBy: "Millrace" } },
    ]);
    await othersRun();
    expect(asked()).toBe(1);
    await post(`/sources/${source}:resume`, { operation: "HARVEST" });
    expect(await endOf(harvests.api, planId)).toMatchObject({ slices: { FAILED: 1, COMPLETE: 2 } });
  });

  test("goes back into the queue where a person has paused it, whose pause stays", async () => {
    const [held, reached] = [signal(), signal()];
    const source = await harvests.source(async () => {
      reached.resolve();
      await held.promise;
      return { status: 403, body: {} };
    });
    const planId = await harvests.plan(source);
    await reached.promise;
    await post(`/sources/${source}:pause`, { endpoint: "items", reason: "mine" });
    held.resolve();
    expect((await harvests.waits(planId)).reason).toMatch(/answered 403: access refused$/);
    expect(await get(`/pauses?source=${source}`)).toMatchObject({
      items: [{ by: "MILLRACE_ADMIN_KEY", reason: "mine" }],
    });
    await post(`/plans/${planId}:cancel`);
  });

  test("is paused by a person who pauses it after Millrace, so that no definition resumes it", async () => {
    const { source, more, planId } = await refusing();
    await post(`/sources/${source}:pause`, { endpoint: "items", reason: "mine" });
    await harvests.applyEndpoints(source, { budget: { concurrency: 1, maxRequests: 100 } }, more);
    expect(await get(`/pauses?source=${source}`)).toMatchObject({
      items: [{ endpoint: "items", by: "MILLRACE_ADMIN_KEY", reason: "mine" }],
    });
    expect(await audits("harvest.pause", source)).toHaveLength(1);
    await post(`/plans/${planId}:cancel`);
  });

  test("fails one slice of those that are refused at once", async () => {
    const allAsked = signal();
    let asked = 0;
    const refused: Script = async () => {
      asked += 1;
      if (asked === 3) allAsked.resolve();
      await allAsked.promise;
      return { status: 401, body: {} };
    };
    const source = await harvests.source(refused, {}, { schedules: { yearly: { cron: "0 0 1 1 *" } } });
    const held = async () => (await get<{ items: Json[] }>(`/schedules?source=${source}`)).items;
    expect(await held()).toMatchObject([{ paused: false, held: null }]);
    const planId = await harvests.plan(source, 3);
    const stopped = async () => (await get<{ stopped: string | null }>(`/plans/${planId}`)).stopped ?? undefined;
    await until(stopped, "the pause");
    expect(await get(`/plans/${planId}`)).toMatchObject({ slices: { FAILED: 1, READY: 2 } });
    expect(asked).toBe(3);
    expect(await held()).toMatchObject([{ held: expect.stringContaining("is paused by Millrace since") as string }]);
    await post(`/plans/${planId}:cancel`);
  });

  test("is asked by one task after it is resumed, and the others follow when it was answered", async () => {
    let isRefused = true;
    let held = Promise.resolve();
    const answer = correct(itemsOf(5));
    const source = await harvests.source(async (asked) => {
      await held;
      return isRefused ? { status: 401, body: {} } : answer(asked);
    });
    const planId = await harvests.plan(source, 6);
    const plan = () =>
      get<{ stopped: string | null; tasks: Record<string, number>; waits: Json[] }>(`/plans/${planId}`);
    const stopped = () =>
      until(async () => {
        const found = await plan();
        return found.stopped !== null && found.tasks["EXECUTING"] === undefined;
      }, "the pause");
    await stopped();
    const before = harvests.server.asked(source).length;
    for (const asked of [1, 2]) {
      const release = signal();
      held = release.promise;
      if (asked === 2) isRefused = false;
      await post(`/sources/${source}:resume`, { endpoint: "items" });
      await until(() => Promise.resolve(harvests.server.asked(source).length === before + asked), "the next request");
      await othersRun();
      expect(harvests.server.asked(source)).toHaveLength(before + asked);
      expect(await plan()).toMatchObject({ tasks: { EXECUTING: 1 } });
      // Those that the pause has put back keep its reason until they are due again.
      await expect.poll(async () => JSON.stringify((await plan()).waits)).toContain("They follow when a task of");
      // Tasks that wait for something else, beyond that answer, keep their reason and its time.
      const later =
        "update harvest.ing_task set scheduled_at = $2, wait_reason = $3 where plan_id = $1 and status_code = 'QUEUED'";
      const tomorrow = new Date(Date.now() + 86_400_000);
      await database.query(later, [planId, tomorrow, "the quota is used up"]);
      const [wait] = (await plan()).waits;
      expect(wait).toMatchObject({ reason: "the quota is used up", until: tomorrow.toISOString() });
      await database.query(later, [planId, new Date(), null]);
      const ready = (await sliceOf(planId)).filter(({ status }) => status === "READY");
      const causes = await Promise.all(ready.map(async ({ sliceId }) => (await why(planId, sliceId)).causes));
      expect(JSON.stringify(causes)).toContain("the others follow when its source grants access");
      release.resolve();
      if (asked === 1) await stopped();
    }
    expect(await endOf(harvests.api, planId)).toMatchObject({ slices: { FAILED: 2, COMPLETE: 4 } });
    const partitions = "select is_refused from harvest.ing_partition where partition_key = $1";
    expect(await database.query(partitions, [`${source}/items/HARVEST`])).toEqual([{ is_refused: false }]);
  });

  test("is not paused again by a plan of the definition before", async () => {
    const answer = correct(itemsOf(5));
    const source = await harvests.source(
      (request) => (request.path === "/items" ? { status: 401, body: {} } : answer(request)),
      { budget: { concurrency: 1 } },
    );
    const before = await harvests.plan(source, 3);
    await until(
      async () => (await get<{ stopped: string | null }>(`/plans/${before}`)).stopped ?? undefined,
      "the pause",
    );
    await harvests.apply(source, { path: "/moved" });
    expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
    expect(await endOf(harvests.api, before)).toMatchObject({ status: "FAILED", slices: { FAILED: 3 } });
    expect(await get(`/pauses?source=${source}`)).toEqual({ items: [] });
  });

  test("goes on where only this process cannot ask, or one record is refused", async () => {
    const unset = { type: "API_KEY", location: "HEADER", name: "x-key", credential: "key", required: true };
    const key = { credentials: { key: { env: "MILLRACE_TEST_NO_SUCH_KEY" } } };
    const unasked = await harvests.source(correct(itemsOf(5)), { auth: unset }, key);
    expect(await harvests.harvest(unasked)).toMatchObject({ status: "FAILED" });
    const [items, refused] = [itemsOf(2), { status: 403, body: {} }];
    const answer = correct(items);
    const some = await harvests.source((request) => (request.path === "/byid" ? refused : answer(request)));
    await harvests.applyEndpoints(some, { detail: "byid" }, { byid: BY_ID });
    expect(await harvests.harvest(some)).toMatchObject({ status: "COMPLETE" });
    const ids = items.map(({ id }) => id);
    const update = (await post("/plans", { source: some, operation: "UPDATE", ids })).body as unknown as PlanReply;
    expect(await endOf(harvests.api, update.planId)).toMatchObject({ status: "FAILED" });
    for (const source of [unasked, some]) expect(await get(`/pauses?source=${source}`)).toEqual({ items: [] });
  });
});

describe("a slice that is cancelled", () => {
  test("by its id or by its task ends alone, and the plan is FAILED with what is missing", async () => {
    const held = heldAfter(0, itemsOf(5));
    const source = await harvests.source(held.script);
    const planId = await harvests.plan(source, 3);
    await held.reached;
    const [first, second] = await sliceOf(planId);
    const cancelled = await post(`/plans/${planId}/slices/${first?.sliceId}:cancel`);
    expect(cancelled).toMatchObject({
      status: 200,
      body: { status: "CANCELLED", reason: "cancelled by MILLRACE_ADMIN_KEY" },
    });
    const { items } = await get<{ items: { taskId: number; sliceId: number }[] }>(`/plans/${planId}/tasks`);
    const taskId = items.find(({ sliceId }) => sliceId === second?.sliceId)?.taskId;
    expect(await post(`/tasks/${taskId}:cancel`)).toMatchObject({ status: 200, body: { status: "CANCELLED" } });
    held.release();
    const ended = await endOf(harvests.api, planId);
    expect(ended).toMatchObject({
      status: "FAILED",
      slices: { CANCELLED: 2, COMPLETE: 1 },
      reconciliation: { gaps: 2 },
      gapWindows: [{ status: "CANCELLED" }, { status: "CANCELLED" }],
      remarks: { reason: "2 of 3 slices are not complete. The first: cancelled by MILLRACE_ADMIN_KEY" },
    });
    expect(await audits("slice.cancel", `${planId}/${first?.sliceId}`)).toHaveLength(1);
    expect(await post(`/plans/${planId}/slices/${first?.sliceId}:cancel`)).toMatchObject({
      status: 409,
      body: { error: `Slice ${first?.sliceId} cannot be cancelled: it is CANCELLED.` },
    });
    expect((await post(`/tasks/${taskId}:cancel`)).status).toBe(409);
    expect((await post(`/tasks/999999:cancel`)).status).toBe(404);
    // What is new since the watermark takes the missing windows again.
    const next = await post("/plans", { source });
    expect((next.body as unknown as PlanReply)["window"]).toMatchObject({ from: "2026-08-01T00:00:00.000Z" });
  });
});

describe("why a slice does not finish", () => {
  test("names the process that runs it, then that it is complete", async () => {
    const held = heldAfter(10);
    const source = await harvests.source(held.script);
    const planId = await harvests.plan(source);
    await held.reached;
    const [slice] = await sliceOf(planId);
    const running = await until(async () => {
      const { causes } = await why(planId, slice?.sliceId);
      return causes[0]?.sentence.includes("10 of 50") && causes;
    }, "the first page");
    expect(running).toMatchObject([
      {
        code: "RUNNING",
        sentence: expect.stringMatching(/^It runs in .*, attempt 1: 10 of 50 records in 1 page so far\.$/),
      },
    ]);
    held.release();
    await endOf(harvests.api, planId);
    expect((await why(planId, slice?.sliceId)).causes).toMatchObject([
      { code: "COMPLETE", sentence: "It is complete: 50 records came." },
    ]);
  });

  test("names the harvest that a backfill makes way for", async () => {
    const held = heldAfter(0);
    const source = await harvests.source(held.script);
    const harvest = await harvests.plan(source);
    await held.reached;
    const window = { from: "2026-07-01", to: "2026-07-02" };
    const backfill = (await post("/plans", { source, operation: "BACKFILL", window })).body as unknown as PlanReply;
    const [slice] = await sliceOf(backfill.planId);
    expect((await why(backfill.planId, slice?.sliceId)).causes[0]).toMatchObject({
      code: "HARVEST_FIRST",
      sentence: `A harvest of ${source} runs or is due, and goes first.`,
    });
    held.release();
    await endOf(harvests.api, harvest);
    await endOf(harvests.api, backfill.planId);
  });

  test("names a source that is down, since when, and the next try", async () => {
    const source = await harvests.source(() => ({ status: 503, body: {} }));
    const planId = await harvests.plan(source);
    await harvests.waits(planId);
    const [slice] = await sliceOf(planId);
    expect((await why(planId, slice?.sliceId)).causes).toMatchObject([
      {
        code: "SOURCE_DOWN",
        sentence: expect.stringContaining("answered 503") as string,
        since: expect.stringMatching(/Z$/) as string,
        until: expect.stringMatching(/Z$/) as string,
      },
    ]);
  });

  test("names the open parts of one that was split", async () => {
    const answer = correct(itemsOf(20));
    const gate = signal();
    const source = await harvests.source(
      async (asked) => {
        if (asked.query.get("to") !== "2026-08-03") await gate.promise;
        return asked.query.get("to") === "2026-08-03" && asked.query.get("from") === "2026-08-01"
          ? { body: { total: 5_000, items: [] } }
          : answer(asked);
      },
      { window: { maxWindow: "P2D", sliceRecords: 1_000 } },
    );
    const planId = await harvests.plan(source, 2);
    const parts = await until(async () => {
      const slices = await sliceOf(planId);
      return slices[0]?.status === "SPLIT" && slices;
    }, "the split");
    const { causes } = await why(planId, parts[0]?.sliceId);
    expect(causes[0]).toMatchObject({
      code: "SPLIT",
      sentence: expect.stringMatching(/of 2 parts .* open, 0 ended with a gap\. Ask for slice \d+\.$/) as string,
    });
    gate.resolve();
    await endOf(harvests.api, planId);
  });

  test("is 404 for a slice of another plan", async () => {
    const source = await harvests.source(correct([]));
    const planId = await harvests.plan(source);
    expect((await harvests.api.get(`/api/v1/harvest/plans/${planId}/slices/999999/why`)).status).toBe(404);
  });
});

test("the doctor warns of a pause that may have been forgotten, with the command that ends it", async () => {
  await database.query("delete from harvest.pause");
  const source = await harvests.source(correct([]));
  await post(`/sources/${source}:pause`, { endpoint: "items", reason: "maintenance" });
  expect(await pausesCheck.look(database.db)).toEqual({ verdict: "ok", found: "Paused: 1 part of sources." });
  await database.query("update harvest.pause set paused_at = now() - interval '2 days'");
  await post(`/sources/${source}:pause`); // A later and wider one does not take its place.
  expect(await pausesCheck.look(database.db)).toMatchObject({
    verdict: "warning",
    found: expect.stringContaining(`${source}/items is paused by`) as string,
    advice: `If the reason is gone: \`millrace harvest resume ${source} --endpoint items\`.`,
  });
  await database.query("update harvest.pause set paused_at = now(), is_automatic = endpoint_name is not null");
  expect(await pausesCheck.look(database.db)).toMatchObject({
    verdict: "warning",
    found: expect.stringContaining(`${source}/items is paused by`) as string,
    isListed: true,
  });
});
