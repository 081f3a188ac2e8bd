/** Why the parts of a divided slice wait in the queue, with no worker to take them: each cause, and their order. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { plan } from "../harvest.fixture.ts";
import { correct, useScripted } from "../run/scripted.fixture.ts";
import { insertParts, waitForParts } from "../store/plans/parts.ts";

const database = useDatabase();
const harvests = useScripted(database, { MILLRACE_ROLES: "api" });

interface Cause {
  code: string;
  sentence: string;
  since: string | null;
  until: string | null;
}

/** A slice of two parts as a worker leaves it. */
async function divided(operation: "HARVEST" | "BACKFILL" = "HARVEST") {
  const source = await harvests.source(correct([]));
  const window = { from: "2026-07-01", to: "2026-07-02" };
  const { planId } = await plan(harvests.api, { source, operation, window });
  const [made] = await database.query<{ sliceId: string; taskId: string }>(
    `select slice_id::text as "sliceId", task_id::text as "taskId" from harvest.ing_task where plan_id = $1`,
    [planId],
  );
  const { sliceId = "", taskId = "" } = made ?? {};
  const parts = ["book", "article"].map((value) => ({
    slice_spec: {},
    slice_signature_hash: value,
    expr_hash: value,
    expr_snapshot: {},
    idempotent_key: `${planId} ${value}`,
    part: { kind: { value } },
    expected: 20,
  }));
  await database.db.tx(async (tx) => {
    await waitForParts(tx, { sliceId, generation: 1 }, { total: 40, reason: "it is divided into 2 parts" });
    await insertParts(tx, { planId, sliceId, taskId }, parts);
  });
  await database.query(
    "update harvest.ing_task set status_code = 'PARTIAL', scheduled_at = null, finished_at = now() where task_id = $1",
    [taskId],
  );
  const [book, article] = await database.query<{ sliceId: string }>(
    `select slice_id::text as "sliceId" from harvest.ing_plan_slice where root_slice_id = $1 order by slice_id`,
    [sliceId],
  );
  return { source, planId, root: sliceId, book: book?.sliceId ?? "", article: article?.sliceId ?? "" };
}

const why = async (planId: string, sliceId: string) =>
  (await harvests.api.get<{ causes: Cause[] }>(`/api/v1/harvest/plans/${planId}/slices/${sliceId}/why`)).body.causes;
const codes = async (planId: string, sliceId: string) => (await why(planId, sliceId)).map(({ code }) => code);
const setTask = (sliceId: string, text: string) =>
  database.query(`update harvest.ing_task set ${text} where slice_id = $1`, [sliceId]);
const TIME = expect.stringMatching(/Z$/) as string;
const LATER = "scheduled_at = now() + interval '1 hour'";

describe("a part in the queue", () => {
  test("has no worker, and its place in the queue", async () => {
    const { planId, root, book, article } = await divided();
    expect(await why(planId, article)).toMatchObject([
      { code: "NO_WORKER", sentence: "No process with the role `worker` is alive: start one with `millrace serve`." },
      {
        code: "QUEUE",
        sentence: expect.stringMatching(/^It is due, and 1 task of .*\/items\/HARVEST goes before it\.$/) as string,
      },
    ]);
    expect(await why(planId, root)).toMatchObject([
      { code: "DIVIDED", sentence: `It is divided: 2 of 2 parts are open, 0 ended with a gap. Ask for slice ${book}.` },
      {
        code: "NO_WORKER",
        sentence: expect.stringMatching(new RegExp(`^Slice ${book} \\(kind book\\): No process`)) as string,
      },
      { code: "QUEUE" },
    ]);
  });

  test("waits for a gate, a source that is down, or another time: each for itself", async () => {
    const { planId, root, book, article } = await divided();
    await setTask(book, `${LATER}, wait_gate = 'shop', wait_reason = 'the quota of shop is spent'`);
    await setTask(
      article,
      `${LATER}, failed_tries = 3, wait_reason = 'GET https://x answered 503; try 4 of 20 follows'`,
    );
    expect(await why(planId, book)).toMatchObject([
      { code: "NO_WORKER" },
      { code: "GATE", sentence: "Waiting for rate gate shop: the quota of shop is spent.", until: TIME },
    ]);
    expect(await why(planId, article)).toMatchObject([
      { code: "NO_WORKER" },
      { code: "SOURCE_DOWN", sentence: "GET https://x answered 503; try 4 of 20 follows.", until: TIME },
    ]);
    expect(await codes(planId, root)).toEqual(["DIVIDED", "NO_WORKER", "GATE"]);
    await setTask(book, "failed_tries = 0, wait_gate = null, wait_reason = 'a run takes 5 seconds'");
    expect((await why(planId, book))[1]).toMatchObject({
      code: "BACK_OFF",
      sentence: "a run takes 5 seconds.",
      until: TIME,
    });
    await setTask(book, "wait_reason = null");
    expect((await why(planId, book))[1]).toMatchObject({ code: "BACK_OFF", sentence: "it was put off." });
  });

  test("was lost with its processes, and is paused: the pause comes first", async () => {
    const { source, planId, book } = await divided();
    await setTask(book, "lost_count = 2");
    await harvests.api.post(`/api/v1/harvest/sources/${source}:pause`, { endpoint: "items", reason: "maintenance" });
    expect(await why(planId, book)).toMatchObject([
      {
        code: "PAUSED",
        sentence: expect.stringMatching(/items is paused by MILLRACE_ADMIN_KEY since .*: maintenance\.$/) as string,
      },
      { code: "NO_WORKER" },
      { code: "QUEUE" },
      { code: "BACK_OFF", sentence: "2 processes in a row were lost while executing it." },
    ]);
    await setTask(book, "lost_count = 1");
    expect((await why(planId, book)).at(-1)?.sentence).toBe("1 process in a row was lost while executing it.");
  });

  test("of a backfill makes way for a harvest of its source that is due", async () => {
    const { source, planId, book } = await divided("BACKFILL");
    expect(await codes(planId, book)).toEqual(["NO_WORKER", "QUEUE"]);
    await plan(harvests.api, { source, window: { from: "2026-08-01", to: "2026-08-02" } });
    expect(await why(planId, book)).toMatchObject([
      { code: "NO_WORKER" },
      { code: "HARVEST_FIRST", sentence: `A harvest of ${source} runs or is due, and goes first.` },
      { code: "QUEUE" },
    ]);
  });

  test("was cancelled with its plan", async () => {
    const { planId, root, book } = await divided();
    await harvests.api.post(`/api/v1/harvest/plans/${planId}:cancel`);
    for (const slice of [root, book]) {
      expect(await why(planId, slice)).toMatchObject([
        { code: "CANCELLED", sentence: "Its plan was cancelled.", since: TIME },
      ]);
    }
  });

  test("is the first gap, where no part is open any more and the whole has not been ended", async () => {
    const { planId, root, book, article } = await divided();
    const fail = (slice: string) =>
      database.query(
        "update harvest.ing_plan_slice set status_code = 'FAILED', reason = 'GET https://x answered 400', ended_at = now() where slice_id = $1",
        [slice],
      );
    await fail(article);
    expect((await why(planId, root))[0]?.sentence).toBe(
      `It is divided: 1 of 2 parts is open, 1 ended with a gap. Ask for slice ${book}.`,
    );
    await fail(book);
    expect(await why(planId, root)).toMatchObject([
      { code: "DIVIDED", sentence: `It is divided: 0 of 2 parts are open, 2 ended with a gap. Ask for slice ${book}.` },
      { code: "FAILED", sentence: `Slice ${book} (kind book): It ended FAILED: GET https://x answered 400.` },
    ]);
  });
});
