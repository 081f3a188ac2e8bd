/** `millrace harvest cancel` and `accept`, against a fake server that the test controls. */
import { expect, test } from "vitest";
import { PLAN_ID, planOf } from "./plan.fixture.ts";
import { startPlanServer } from "./server.fixture.ts";

test("cancel ends the plan that it names", async () => {
  const server = await startPlanServer();
  server.answers[`POST /plans/${PLAN_ID}:cancel`] = [200, planOf({ status: "CANCELLED" })];
  expect(await server.cli("cancel", PLAN_ID).ended).toMatchObject({
    exit: 0,
    stdout: `Cancelled plan ${PLAN_ID} of shop/orders.\n`,
  });
  expect(await server.cli("cancel", "crossref").ended).toMatchObject({
    exit: 4,
    stderr: "`crossref` is not the id of a plan. See `millrace harvest status`.\n",
  });
});

test("accept sends the reason, which it needs, and shows who has accepted the gap", async () => {
  const server = await startPlanServer();
  const path = `/plans/${PLAN_ID}/slices/7:accept`;
  server.answers[`POST ${path}`] = [
    200,
    {
      sliceId: 7,
      window: { from: "2026-08-20T00:00:00.000Z", to: "2026-08-21T00:00:00.000Z" },
      status: "INCOMPLETE",
      accepted: { at: "2026-08-22T00:00:00.000Z", by: "ann", reason: "not needed" },
    },
  ];
  expect(await server.cli("accept", PLAN_ID, "7", "--reason", "not needed").ended).toMatchObject({
    exit: 0,
    stdout: "Slice 7, 2026-08-20 to 2026-08-21, is INCOMPLETE and accepted by ann: not needed\n",
  });
  expect(server.asked).toMatchObject([{ method: "POST", path, body: { reason: "not needed" } }]);
  const refused = await server.cli("accept", PLAN_ID, "7").ended;
  expect(refused.exit).toBe(2);
  expect(refused.stderr).toContain("--reason");
  expect(server.asked).toHaveLength(1);
});

test("pause sends its scope, cancel ends a single slice, and a check that fails exits with 1", async () => {
  const server = await startPlanServer();
  server.answers["POST /sources/shop:pause"] = [200, { items: [] }];
  server.answers[`POST /plans/${PLAN_ID}/slices/7:cancel`] = [200, { sliceId: 7, window: null, status: "CANCELLED" }];
  const line = { name: "page", verdict: "fail", found: "No page was read.", advice: null };
  server.answers["POST /sources/shop:check"] = [
    200,
    { source: "shop", endpoint: "orders", verdict: "fail", lines: [line] },
  ];
  const [paused, cancelled, checked] = await Promise.all([
    server.cli("pause", "shop", "--endpoint", "orders", "--operation", "backfill", "--reason", "why").ended,
    server.cli("cancel", PLAN_ID, "--slice", "7").ended,
    server.cli("check", "shop", "--param", "term=a=b", "--id", "7").ended,
  ]);
  expect(paused).toMatchObject({ exit: 0 });
  expect(server.asked.find(({ path }) => path.endsWith(":pause"))).toMatchObject({
    body: { endpoint: "orders", operation: "BACKFILL", reason: "why" },
  });
  expect(cancelled).toMatchObject({ exit: 0, stdout: "Cancelled slice 7.\n" });
  expect(server.asked.find(({ path }) => path.endsWith(":check"))).toMatchObject({
    body: { params: { term: "a=b" }, id: "7" },
  });
  expect(checked).toMatchObject({ exit: 1, stdout: "shop/orders\nfail  page        No page was read.\n" });
});
