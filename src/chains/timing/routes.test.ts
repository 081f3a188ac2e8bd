/** The timeline and the comparison of runs, and the grid of a chain, over HTTP. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { refusal, scripted, useChains } from "../../../test/chains.ts";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import type { Comparison, Grid, Timeline } from "../replies.ts";

const database = useDatabase();
const chains = useChains(database);
const get = <Body = Json>(path: string) => chains.api.get<Body>(`/api/v1${path}`);

/** A chain with the nodes `load` and `publish`, of which `load` fails as often as is asked for. */
async function defineLoading() {
  const failures = { left: 0 };
  const load = scripted(
    "load",
    () => {
      if (failures.left === 0) return {};
      failures.left -= 1;
      throw new Error("the source is away");
    },
    { retry: { maxAttempts: 5, backoffMs: 0, jitter: 0 } },
  );
  const nodes = [{ id: "publish", type: "noop", dependsOn: ["load"] }, load, { id: "beside", type: "noop" }];
  const chainId = await chains.define(nodes);
  async function finish(opTime: string): Promise<string> {
    const runId = await chains.start(chainId, { opTime });
    await chains.reaches(runId, "SUCCESS");
    return runId;
  }
  /** As if a node had taken so long. */
  async function took(runId: string, seconds: number): Promise<void> {
    await database.query(
      `update chains.job_run set started_at = '2025-01-01', ended_at = '2025-01-01'::timestamptz + make_interval(secs => $2)
       where run_id = $1`,
      [runId, seconds + 1],
    );
    await database.query(
      `update chains.job_run_node set
         started_at = '2025-01-01'::timestamptz + make_interval(secs => case node_id when 'publish' then $2 else 0 end),
         ended_at = '2025-01-01'::timestamptz + make_interval(secs => case node_id when 'publish' then $2 + 1 when 'load' then $2 else 0 end)
       where run_id = $1`,
      [runId, seconds],
    );
  }
  return { chainId, failures, finish, took };
}

describe("the timeline of a run", () => {
  test("has every attempt that another one followed, and the critical path", async () => {
    const { failures, finish } = await defineLoading();
    failures.left = 2;
    const runId = await finish("20250101");
    const { body } = await get<Timeline>(`/runs/${runId}/timeline`);
    expect(body).toMatchObject({ truncated: false, criticalPath: ["load", "publish"] });
    expect(body.attempts).toMatchObject([
      { nodeId: "load", attempt: 1, status: "FAILED", error: "the source is away" },
      { nodeId: "load", attempt: 2, status: "FAILED" },
    ]);
    const [first, second] = body.attempts;
    expect(Date.parse(first?.endedAt ?? "")).toBeLessThanOrEqual(Date.parse(second?.startedAt ?? ""));
  });
});

describe("the comparison of a run", () => {
  test("is with the last successful run before it, and says which node cost most and why", async () => {
    const { failures, finish, took } = await defineLoading();
    const older = await finish("20250101");
    const before = await finish("20250102");
    const now = await finish("20250103");
    await took(older, 100);
    await took(before, 10);
    await took(now, 70);
    const { body } = await get<Comparison>(`/runs/${now}/comparison`);
    expect(body).toMatchObject({ run: { runId: now, opTime: "20250103" }, with: { runId: before }, total: 3 });
    expect(body.earlier.map(({ runId }) => runId)).toEqual([before, older]);
    expect(body.nodes[0]).toMatchObject({
      nodeId: "load",
      critical: true,
      cause: "ran",
      differenceMs: 60_000,
      now: { ranMs: 70_000, waitedMs: 0, attempts: 1 },
      before: { ranMs: 10_000 },
    });
    const chosen = await get<Comparison>(`/runs/${now}/comparison?with=${older}&limit=1`);
    expect(chosen.body).toMatchObject({ with: { runId: older }, total: 3 });
    expect(chosen.body.nodes).toHaveLength(1);

    failures.left = 2;
    const retried = await finish("20250104");
    expect((await get<Comparison>(`/runs/${retried}/comparison`)).body.nodes).toContainEqual(
      expect.objectContaining({ nodeId: "load", now: expect.objectContaining({ attempts: 3 }) }),
    );
  });

  test("skips runs that failed, and has nothing for the first run of a chain", async () => {
    const chainId = await chains.define([{ id: "a", type: "noop" }]);
    const first = await chains.start(chainId);
    await chains.reaches(first, "SUCCESS");
    expect((await get<Comparison>(`/runs/${first}/comparison`)).body).toMatchObject({
      with: null,
      earlier: [],
      nodes: [],
      total: 0,
    });
    const failed = await chains.start(chainId);
    await chains.reaches(failed, "SUCCESS");
    await database.query("update chains.job_run set status = 'FAILED' where run_id = $1", [failed]);
    const last = await chains.start(chainId);
    await chains.reaches(last, "SUCCESS");
    const { body } = await get<Comparison>(`/runs/${last}/comparison`);
    expect(body.with?.runId).toBe(first);
    expect(body.earlier.map(({ runId }) => runId)).toEqual([failed, first]);
  });

  test("with an unknown run is refused", async () => {
    const runId = await chains.run([{ id: "a", type: "noop" }]);
    for (const other of [randomUUID(), "x"])
      expect(refusal(await get(`/runs/${runId}/comparison?with=${other}`))).toEqual([400, "RUN_NOT_FOUND"]);
  });
});

describe("the grid of a chain", () => {
  test("has the states of its nodes in its last runs, parents first, and nodes of older versions last", async () => {
    const name = `grid ${randomUUID()}`;
    const chainId = await chains.define(
      [
        { id: "old", type: "noop" },
        { id: "load", type: "noop", dependsOn: ["old"] },
      ],
      { name },
    );
    const first = await chains.start(chainId, { opTime: "20250101" });
    await chains.reaches(first, "SUCCESS");
    const nodes = [
      { id: "publish", type: "noop", dependsOn: ["load"] },
      { id: "load", type: "sleep", cfg: { ms: 0 } },
      { id: "never", type: "noop", if: "false", dependsOn: ["load"] },
    ];
    await chains.api.put(`/api/v1/chains/${chainId}`, { name, dagJson: { nodes }, version: 1 });
    const second = await chains.start(chainId, { opTime: "20250102" });
    await chains.reaches(second, "SUCCESS");

    const { body } = await get<Grid>(`/chains/${chainId}/grid`);
    expect(body.runs.map(({ runId, opTime, chainVersion }) => [runId, opTime, chainVersion])).toEqual([
      [second, "20250102", 2],
      [first, "20250101", 1],
    ]);
    expect(body.total).toBe(4);
    expect(body.nodes).toEqual([
      { nodeId: "load", type: "sleep", statuses: ["SUCCESS", "SUCCESS"] },
      { nodeId: "publish", type: "noop", statuses: ["SUCCESS", null] },
      { nodeId: "never", type: "noop", statuses: ["SKIPPED", null] },
      { nodeId: "old", type: "noop", statuses: [null, "SUCCESS"] },
    ]);

    const page = await get<Grid>(`/chains/${chainId}/grid?from=1&size=2&runs=1`);
    expect(page.body).toMatchObject({ from: 1, total: 3, runs: [{ runId: second }] });
    expect(page.body.nodes.map(({ nodeId }) => nodeId)).toEqual(["publish", "never"]);
    expect((await get<Grid>(`/chains/${chainId}/grid?until=${first}`)).body).toMatchObject({
      runs: [{ runId: first }],
      total: 2,
    });
  });

  test("of a chain without runs is empty, and too many runs at once are refused", async () => {
    const chainId = await chains.define([{ id: "a", type: "noop" }]);
    expect((await get<Grid>(`/chains/${chainId}/grid`)).body).toEqual({ runs: [], nodes: [], from: 0, total: 0 });
    expect((await get(`/chains/${chainId}/grid?runs=51`)).status).toBe(400);
  });
});
