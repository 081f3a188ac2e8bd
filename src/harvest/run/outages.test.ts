/** A source that is down is waited for, with growing pauses and not for ever. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { endOf, type PlanReply } from "../harvest.fixture.ts";
import { type Asked, correct, itemsOf, type Said, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

/** A correct source of 50 items that answers with an error of 500 while it is down. */
function failing(isDown: (request: Asked) => boolean) {
  const answer = correct(itemsOf(50));
  return (request: Asked): Said | Promise<Said> => (isDown(request) ? { status: 500, body: {} } : answer(request));
}
const failedTries = async (planId: string) =>
  (
    await database.query<{ failed_tries: number }>("select failed_tries from harvest.ing_task where plan_id = $1", [
      planId,
    ])
  ).map(({ failed_tries }) => failed_tries);
/** Makes the task due, and answers what it waits for after its next run. */
async function nextWait(planId: string) {
  const before = (await harvests.runs(planId)).length;
  await harvests.makeDue(planId);
  await expect
    .poll(async () => (await harvests.runs(planId)).filter(({ status }) => status !== "RUNNING").length)
    .toBeGreaterThan(before);
  return harvests.waits(planId);
}

test("a source that is down is tried again with growing pauses, and goes on where it was when it is back", async () => {
  let isDown = true;
  const source = await harvests.source(failing(({ query }) => isDown && query.get("offset") !== "0"));
  const planId = await harvests.plan(source);
  const first = await harvests.waits(planId);
  const url = `${harvests.server.origin}/${source}/items`;
  expect(first.reason).toBe(`GET ${url} answered 500: error of the source (3 attempts); try 2 of 20 follows`);
  expect(first.seconds).toBeGreaterThan(15);
  expect(first.seconds).toBeLessThanOrEqual(30);
  const second = await nextWait(planId);
  expect(second.reason).toContain("try 3 of 20 follows");
  expect(second.seconds).toBeGreaterThan(35);
  expect(second.seconds).toBeLessThanOrEqual(60);
  const { body } = await harvests.api.get<PlanReply>(`/api/v1/harvest/plans/${planId}`);
  expect(body).toMatchObject({
    status: "READY",
    waits: [{ reason: second.reason, tasks: 1, until: expect.stringMatching(/Z$/) }],
  });
  isDown = false;
  await harvests.makeDue(planId);
  expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 50 } });
  const pages = harvests.server.asked(source).filter(({ query }) => query.get("offset") === "0");
  expect(pages).toHaveLength(1);
});

test("a page that comes between two outages begins the tries anew", async () => {
  let down = 0;
  const source = await harvests.source(failing(({ query }) => Number(query.get("offset")) >= down));
  const planId = await harvests.plan(source);
  await harvests.waits(planId);
  await nextWait(planId);
  expect(await failedTries(planId)).toEqual([2]);
  down = 20;
  expect((await nextWait(planId)).reason).toContain("try 2 of 20 follows");
  expect(await failedTries(planId)).toEqual([1]);
});

test("the last try fails the slice, and so the plan, with the reason", async () => {
  const source = await harvests.source(failing(() => true));
  const planId = await harvests.plan(source);
  await harvests.waits(planId);
  await database.query("update harvest.ing_task set failed_tries = 19 where plan_id = $1", [planId]);
  await harvests.makeDue(planId);
  expect(await endOf(harvests.api, planId)).toMatchObject({ status: "FAILED", reconciliation: { gaps: 1 } });
  expect(await harvests.slices(planId)).toMatchObject([
    { status: "FAILED", reason: expect.stringMatching(/answered 500: .* no page came in 20 tries$/) },
  ]);
});

test("a rule that starts a slice again waits at its first page, where there is nothing to start again", async () => {
  const exception = { status: 500, body: { "message-type": "exception" } };
  const source = await harvests.source(() => exception);
  expect((await harvests.waits(await harvests.plan(source))).reason).toContain("try 2 of 20 follows");
});
