/** Nodes of chains that harvest: they park while the plan runs, and end with it. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import { findViolations } from "../../chains/store/invariants.ts";
import { endOf, type PlanReply } from "../harvest.fixture.ts";
import { correct, itemsOf, type Script, useScripted } from "../run/scripted.fixture.ts";

const database = useDatabase();
const lake = mkdtempSync(join(tmpdir(), "millrace-lake-"));
afterAll(() => rmSync(lake, { recursive: true, force: true }));
const harvests = useScripted(database, { MILLRACE_LAKE_DIR: lake }, { chains: { slots: 1, drainSeconds: 0 } });
const DAY = "20260801";

afterEach(async () => {
  expect(await findViolations(database.db)).toEqual([]);
});

interface Node extends Json {
  status: string;
  attempt: number;
  lastError: string | null;
  artifact: Json;
}

const harvestNode = (source: string, cfg: object = {}, fields: object = {}) => ({
  id: "fetch",
  type: "harvest",
  cfg: { source, window: "${opTime}", ...cfg },
  ...fields,
});
async function start(nodes: readonly object[], opTime = DAY): Promise<string> {
  const made = await harvests.api.post<{ chainId: string }>("/api/v1/chains", {
    name: `chain ${randomUUID()}`,
    dagJson: { nodes },
  });
  expect(made.status, JSON.stringify(made.body)).toBe(200);
  const started = await harvests.api.post<{ runId: string }>(`/api/v1/chains/${made.body.chainId}:start`, { opTime });
  return started.body.runId;
}
async function node(runId: string, nodeId = "fetch"): Promise<Node> {
  const { body } = await harvests.api.get<Node[]>(`/api/v1/runs/${runId}/nodes`);
  return body.find((one) => one["nodeId"] === nodeId) as Node;
}
const ended = (runId: string) =>
  until(async () => {
    const { body } = await harvests.api.get(`/api/v1/runs/${runId}`);
    return ["SUCCESS", "FAILED", "STOPPED"].includes(String(body["status"])) && String(body["status"]);
  }, `the end of run ${runId}`);
const plansOf = async (source: string) =>
  (await harvests.api.get<{ items: PlanReply[] }>(`/api/v1/harvest/plans?source=${source}`)).body.items;
const parked = (runId: string) =>
  until(
    async () =>
      (await database.query("select from chains.live_node where state = 'parked' and run_id = $1", [runId])).length > 0,
    "the node to be parked",
  );
/** A source that answers once it is released. */
function heldSource(items = itemsOf(15)) {
  const gate = signal();
  const script: Script = async (asked) => {
    await gate.promise;
    return correct(items)(asked);
  };
  return { script, release: gate.resolve };
}

test("a node holds no slot while its plan runs, and brings the reconciliation", async () => {
  const held = heldSource();
  const source = await harvests.source(held.script);
  const next = {
    id: "next",
    type: "chain",
    dependsOn: ["fetch"],
    cfg: { name: "none", params: {} },
    if: "nodes.fetch.artifact.reconciliation.received == 16",
  };
  await harvests.api.post("/api/v1/chains", { name: "none", dagJson: { nodes: [{ id: "a", type: "noop" }] } });
  const runId = await start([harvestNode(source), next]);
  await parked(runId);
  // There is one slot, and another node has it.
  expect(await ended(await start([{ id: "other", type: "noop" }]))).toBe("SUCCESS");
  held.release();
  expect(await ended(runId)).toBe("SUCCESS");
  const [plan] = await plansOf(source);
  expect(await node(runId)).toMatchObject({
    status: "SUCCESS",
    attempt: 1,
    artifact: {
      planId: plan?.planId,
      source,
      endpoint: "items",
      operation: "HARVEST",
      window: { from: "2026-08-01T00:00:00.000Z", to: "2026-08-02T00:00:00.000Z" },
      reconciliation: { expected: 15, received: 15, inserted: 15, gaps: 0 },
      landed: [],
    },
  });
  expect(await node(runId, "next")).toMatchObject({ status: "SKIPPED" });
  expect(await database.query("select from harvest.node_wait")).toEqual([]);
});

test("a node ends when its window has landed, so that the next one finds the table", async () => {
  const source = await harvests.source(correct(itemsOf(5)), {
    landing: { table: "items_of_nodes", grain: "day" },
    outputFields: [{ name: "id", type: "string", path: "$.id" }],
  });
  const read = {
    id: "read",
    type: "sql",
    dependsOn: ["fetch"],
    cfg: { engine: "duckdb", sql: "select count(*)::int as n from items_of_nodes" },
  };
  const runId = await start([harvestNode(source), read]);
  expect(await ended(runId), (await node(runId, "read")).lastError ?? "").toBe("SUCCESS");
  expect(await node(runId)).toMatchObject({
    artifact: { landed: [{ table: "items_of_nodes", opTime: DAY, rows: 5 }] },
  });
  expect(await node(runId, "read")).toMatchObject({ artifact: { rows: [{ n: 5 }] } });
});

describe("a plan that is not complete", () => {
  const broken: Script = () => ({ body: { nothing: true } });

  test("fails the node with the reason, and the next attempt makes a plan of its own", async () => {
    let isBroken = true;
    const source = await harvests.source((asked) => (isBroken ? broken(asked) : correct(itemsOf(3))(asked)));
    const runId = await start([harvestNode(source)]);
    expect(await ended(runId)).toBe("FAILED");
    const [first] = await plansOf(source);
    expect((await node(runId)).lastError).toContain(
      `Plan ${first?.planId} of ${source}/items is FAILED: 1 of 1 slices`,
    );
    isBroken = false;
    await harvests.api.post(`/api/v1/runs/${runId}/nodes/fetch:retry`);
    expect(await ended(runId)).toBe("SUCCESS");
    expect((await plansOf(source)).map(({ status }) => status)).toEqual(["COMPLETE", "FAILED"]);
  });

  test("is not made again by itself after a person cancelled it", async () => {
    const held = heldSource();
    const source = await harvests.source(held.script);
    const runId = await start([harvestNode(source, {}, { retry: { maxAttempts: 3, backoffMs: 1 } })]);
    await parked(runId);
    const [plan] = await plansOf(source);
    await harvests.api.post(`/api/v1/harvest/plans/${plan?.planId}:cancel`);
    expect(await ended(runId)).toBe("FAILED");
    expect((await node(runId)).lastError).toMatch(/ was cancelled: cancelled by /);
    expect(await plansOf(source)).toHaveLength(1);
    held.release();
  });
});

describe("a run that is stopped", () => {
  test("cancels the plan of its node", async () => {
    const held = heldSource();
    const source = await harvests.source(held.script);
    const runId = await start([harvestNode(source)]);
    await parked(runId);
    const [plan] = await plansOf(source);
    await harvests.api.post(`/api/v1/runs/${runId}:stop`, { reason: "enough" });
    expect(await ended(runId)).toBe("STOPPED");
    const cancelled = await endOf(harvests.api, plan?.planId ?? "");
    expect(cancelled).toMatchObject({
      status: "CANCELLED",
      remarks: { reason: "no node of a chain waits for it any more" },
    });
    held.release();
    expect(await database.query("select from harvest.node_wait")).toEqual([]);
  });

  test("leaves an equal plan alone that a person had made, and that its node took", async () => {
    const held = heldSource();
    const source = await harvests.source(held.script);
    const planId = await harvests.plan(source);
    const runId = await start([harvestNode(source)]);
    await parked(runId);
    expect(await plansOf(source)).toHaveLength(1);
    await harvests.api.post(`/api/v1/runs/${runId}:stop`);
    expect(await ended(runId)).toBe("STOPPED");
    await until(
      async () => (await database.query("select from harvest.node_wait")).length === 0,
      "the wait to be deleted",
    );
    held.release();
    expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE" });
  });

  test("leaves a plan alone that a node of another run waits for too", async () => {
    const held = heldSource();
    const source = await harvests.source(held.script);
    const [one, other] = [await start([harvestNode(source)]), await start([harvestNode(source)])];
    await parked(one);
    await parked(other);
    await harvests.api.post(`/api/v1/runs/${one}:stop`);
    expect(await ended(one)).toBe("STOPPED");
    await until(
      async () => (await database.query("select from harvest.node_wait")).length === 1,
      "the wait of the stopped run to be deleted",
    );
    held.release();
    expect(await ended(other)).toBe("SUCCESS");
    expect(await plansOf(source)).toHaveLength(1);
  });
});

describe("the window of a node", () => {
  test("that cannot be closed yet fails with the time at which it can", async () => {
    const source = await harvests.source(correct([]));
    const runId = await start([harvestNode(source, { window: "20990101" })]);
    expect(await ended(runId)).toBe("FAILED");
    expect((await node(runId)).lastError).toMatch(
      /^The window up to 2099-01-02T00:00:00Z can be closed at 2099-01-02T/,
    );
    expect(await plansOf(source)).toEqual([]);
  });

  test("is the opTime of the run if it names none", async () => {
    const source = await harvests.source(correct(itemsOf(2, "2026-08-03")));
    const runId = await start([{ id: "fetch", type: "harvest", cfg: { source } }], "20260803");
    expect(await ended(runId)).toBe("SUCCESS");
    expect(await node(runId)).toMatchObject({ artifact: { reconciliation: { received: 2 } } });
  });

  test("is none for an update, whatever the opTime of the run", async () => {
    const source = "updated-by-a-node";
    harvests.server.on(source, correct([]));
    const byid = {
      role: "DETAIL",
      path: "/byid",
      http: { query: { ids: '${ids.join(",")}' } },
      response: { itemsPath: "$.items", idPath: "$.id" },
      batching: { idBatchSize: 10 },
    };
    await harvests.applyEndpoints(source, { detail: "byid", update: { staleAfter: "P30D" } }, { byid });
    const runId = await start([{ id: "fetch", type: "harvest", cfg: { source, operation: "UPDATE" } }]);
    expect(await ended(runId), (await node(runId)).lastError ?? "").toBe("SUCCESS");
    const nothing = expect.stringMatching(/^There is no record that was not checked since /) as string;
    expect(await node(runId)).toMatchObject({ artifact: { planId: null, nothing } });
  });

  test.each([
    ["a month", "202608", 31],
    ["a date", "2026-08-02", 1],
  ])("may be %s", async (_, window, slices) => {
    const source = await harvests.source(correct([]));
    const runId = await start([harvestNode(source, { window })]);
    expect(await ended(runId)).toBe("SUCCESS");
    const { planId } = (await plansOf(source))[0] as PlanReply;
    expect((await harvests.slices(planId)).length).toBe(slices);
  });

  test("that is no time fails with what it may be", async () => {
    const source = await harvests.source(correct([]));
    const runId = await start([harvestNode(source, { window: "yesterday" })]);
    expect(await ended(runId)).toBe("FAILED");
    expect((await node(runId)).lastError).toMatch(/^The window `yesterday` is no hour, day or month like 2026082007/);
  });
});

test("a chain that names a source which does not exist is refused with a similar one", async () => {
  const source = await harvests.source(correct([]));
  const { status, body } = await harvests.api.post("/api/v1/chains", {
    name: "typo",
    dagJson: { nodes: [harvestNode(`${source}x`)] },
  });
  expect(status).toBe(400);
  expect(JSON.stringify(body)).toContain(`Did you mean \`${source}\``);
});
