/** What a node plans, and that it plans it once, also where its attempt is repeated after a crash or runs twice at once. */
import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { systemIds } from "../../kernel/ids.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { usePlanner } from "../plan/planner.fixture.ts";
import { createNodeWaits, type NodeRequest, type NodeWaits } from "./node-waits.ts";

const database = useDatabase();
const planner = usePlanner(database);
/** The ids of waits whose node has ended. */
const ended = new Set<string>();
let waits: NodeWaits;

beforeEach(async () => {
  ended.clear();
  await planner.addSource("s");
  waits = createNodeWaits({
    db: database.db,
    wake: createWake(),
    ids: systemIds,
    clock: planner.clock,
    chains: {
      endWait: async () => "counted",
      openNodes: async (_db, all) => new Set(all.map(({ wait_id }) => wait_id).filter((id) => !ended.has(id))),
    },
    planner: planner.planner,
    reads: { plan: () => Promise.reject(new Error("no plan ends here")) },
    log: planner.log,
    onRun: () => {},
  });
});

const nodeOf = (key: string) => ({ key, runId: randomUUID(), nodeId: "fetch" });
const DAY: NodeRequest = { source: "s", operation: "HARVEST", window: "20260801", opTime: null };
const plans = () =>
  database.query<{ plan_id: string; status_code: string }>(
    "select plan_id, status_code from harvest.ing_plan order by plan_id",
  );

test("an attempt that is repeated has the plan of the first time, also if the process died before the node was parked", async () => {
  const node = nodeOf("k");
  const first = await waits.begin(node, DAY);
  await database.query("update harvest.ing_plan set status_code = 'COMPLETE', ended_at = now()");
  expect(await waits.begin(node, DAY)).toEqual(first);
  expect(await plans()).toHaveLength(1);
});

test("an attempt that runs twice at once plans once", async () => {
  const node = nodeOf("k");
  const begun = await Promise.all([waits.begin(node, DAY), waits.begin(node, DAY)]);
  expect(begun[1]).toEqual(begun[0]);
  expect(await plans()).toHaveLength(1);
});

test("a later attempt takes the plan of the earlier one while it goes on, and makes one when it has ended", async () => {
  const [first, second] = [await waits.begin(nodeOf("k1"), DAY), await waits.begin(nodeOf("k2"), DAY)];
  expect(second).toMatchObject({ planId: (first as { planId: string }).planId });
  await database.query("update harvest.ing_plan set status_code = 'FAILED', ended_at = now()");
  await waits.begin(nodeOf("k3"), DAY);
  expect(await plans()).toHaveLength(2);
});

test("a plan is cancelled when the last node that waits for it has ended, and not before", async () => {
  const begun = [await waits.begin(nodeOf("k1"), DAY), await waits.begin(nodeOf("k2"), DAY)];
  const [one, other] = begun.map((wait) => (wait as { waitId: string }).waitId);
  ended.add(one ?? "");
  expect(await waits.service.runOnce()).toMatchObject({ abandoned: 1 });
  expect(await plans()).toMatchObject([{ status_code: "READY" }]);
  ended.add(other ?? "");
  await waits.service.runOnce();
  expect(await plans()).toMatchObject([{ status_code: "CANCELLED" }]);
});

test("a run without a window takes what is new, then the plan that harvests it, and then has nothing to do", async () => {
  const request: NodeRequest = { ...DAY, window: undefined };
  const first = await waits.begin(nodeOf("k1"), request);
  expect(await waits.begin(nodeOf("k2"), request)).toMatchObject({ planId: (first as { planId: string }).planId });
  await database.query("update harvest.ing_plan_slice set status_code = 'COMPLETE', ended_at = now()");
  await database.query("update harvest.ing_plan set status_code = 'COMPLETE', ended_at = now()");
  expect(await waits.begin(nodeOf("k3"), request)).toEqual({
    nothing: expect.stringMatching(/^The window from .*\.$/),
  });
});
