/** Waits, pauses, the critical path and the causes of a difference, from the times of nodes. */
import { describe, expect, test } from "vitest";
import type { NodeDef } from "../definitions/dag.ts";
import { buildGraph } from "../definitions/graph.ts";
import type { NodeTimesRow } from "../store/timing.ts";
import { compare } from "./comparison.ts";
import { timesOf } from "./times.ts";

const BEGIN = Date.parse("2025-01-01T00:00:00Z");
const at = (seconds: number) => new Date(BEGIN + seconds * 1_000);
const READ_AT = at(100);

type Given = Pick<NodeDef, "dependsOn" | "runWhen" | "pool"> & Partial<Omit<NodeTimesRow, "started_at" | "ended_at">>;
/** A node from its first start to its end, in seconds; undefined: not started, not ended. */
const node = (from?: number, to?: number, given: Given = {}) => ({ from, to, ...given });

function runOf(nodes: Record<string, ReturnType<typeof node>>) {
  const defs = Object.entries(nodes).map(([id, { dependsOn = [], runWhen, pool }]) => ({
    id,
    type: "noop",
    dependsOn,
    ...(runWhen && { runWhen }),
    ...(pool !== undefined && { pool }),
  }));
  const rows = Object.entries(nodes).map(
    ([node_id, { from, to, ...given }]): NodeTimesRow => ({
      node_id,
      status: to === undefined ? (from === undefined ? "PENDING" : "RUNNING") : "SUCCESS",
      started_at: from === undefined ? null : at(from),
      ended_at: to === undefined ? null : at(to),
      ran_ms: from === undefined ? 0 : ((to ?? 100) - from) * 1_000,
      attempts: from === undefined ? 0 : 1,
      read_at: READ_AT,
      ...given,
    }),
  );
  const graph = buildGraph({ nodes: defs });
  return { graph, times: timesOf(graph, rows, at(0)) };
}

describe("a node", () => {
  test("waits from the end of its last parent, or from the start of the run", () => {
    const { times } = runOf({
      a: node(2, 10),
      b: node(1, 4),
      c: node(15, 20, { dependsOn: ["a", "b"] }),
    });
    expect(times.nodes.get("a")).toMatchObject({ waitedMs: 2_000, ranMs: 8_000, pausedMs: 0 });
    expect(times.nodes.get("c")).toMatchObject({ waitedMs: 5_000, ranMs: 5_000 });
  });

  test("that waits for a failure waits from the first one", () => {
    const { times } = runOf({
      a: node(0, 10, { status: "FAILED" }),
      b: node(0, 50),
      c: node(12, 20, { dependsOn: ["a", "b"], runWhen: "one_failed" }),
    });
    expect(times.nodes.get("c")).toMatchObject({ waitedMs: 2_000 });
  });

  test("has paused between its attempts", () => {
    const { times } = runOf({ a: node(0, 60, { attempts: 3, ran_ms: 12_000 }) });
    expect(times.nodes.get("a")).toMatchObject({ ranMs: 12_000, pausedMs: 48_000, attempts: 3 });
  });

  test("that has not started waits until now if it could, and not at all if its parents go on or it is skipped", () => {
    const { times } = runOf({
      a: node(0, 40),
      ready: node(undefined, undefined, { dependsOn: ["a"] }),
      skipped: node(undefined, 40, { dependsOn: ["a"], status: "SKIPPED" }),
      b: node(0),
      later: node(undefined, undefined, { dependsOn: ["b"] }),
    });
    expect(times.nodes.get("ready")).toMatchObject({ waitedMs: 60_000 });
    expect(times.nodes.get("skipped")).toMatchObject({ waitedMs: 0 });
    expect(times.nodes.get("later")).toMatchObject({ waitedMs: 0, ranMs: 0 });
    expect(times.nodes.get("b")).toMatchObject({ ranMs: 100_000 });
  });
});

describe("the critical path", () => {
  test("goes back from the node that ended last, by the parent that ended last", () => {
    const { times } = runOf({
      a: node(0, 10),
      b: node(0, 30),
      c: node(10, 12, { dependsOn: ["a"] }),
      d: node(30, 40, { dependsOn: ["b", "c"] }),
      e: node(12, 35, { dependsOn: ["c"] }),
    });
    expect(times.criticalPath).toEqual(["b", "d"]);
  });

  test("of a run that goes on ends with what has been at work for longest", () => {
    const { times } = runOf({
      a: node(0, 10),
      long: node(12, undefined, { dependsOn: ["a"] }),
      short: node(80, undefined, { dependsOn: ["a"] }),
      next: node(undefined, undefined, { dependsOn: ["long"] }),
    });
    expect(times.criticalPath).toEqual(["a", "long"]);
  });

  test("of a run whose nodes wait is what waits, and without nodes it is empty", () => {
    expect(runOf({ a: node() }).times.criticalPath).toEqual(["a"]);
    expect(timesOf(buildGraph({ nodes: [{ id: "a", type: "noop" }] }), [], null).criticalPath).toEqual([]);
  });
});

describe("a comparison", () => {
  const yesterday = runOf({
    a: node(0, 10),
    b: node(10, 20, { dependsOn: ["a"] }),
    side: node(0, 5),
    gone: node(0, 3),
    skipped: node(undefined, 5, { status: "SKIPPED" }),
  });

  test("puts what cost the run most first, before what was slower beside the critical path", () => {
    const today = runOf({
      a: node(0, 12),
      b: node(72, 82, { dependsOn: ["a"], pool: "db" }),
      side: node(0, 80),
      extra: node(0, 1),
      skipped: node(3, 5),
    });
    const nodes = compare(today, yesterday);
    expect(nodes.map(({ nodeId, cause, critical, differenceMs }) => [nodeId, cause, critical, differenceMs])).toEqual([
      ["b", "waited", true, 60_000],
      ["a", "ran", true, 2_000],
      ["side", "ran", false, 75_000],
      ["skipped", "not_run_before", false, 5_000],
      ["extra", "added", false, 1_000],
      ["gone", "removed", false, -3_000],
    ]);
    expect(nodes[0]).toMatchObject({ pool: "db", now: { waitedMs: 60_000 }, before: { waitedMs: 0 } });
  });

  test.each([
    ["retried", node(0, 60, { attempts: 3, ran_ms: 30_000 })],
    ["paused", node(0, 60, { attempts: 1, ran_ms: 10_000 })],
    ["ran", node(0, 60)],
    ["waited", node(50, 60)],
    ["same", node(0, 10.02)],
    ["not_run_now", node(undefined, 1, { status: "SKIPPED" })],
  ] as const)("names the cause: %s", (cause, a) => {
    expect(compare(runOf({ a }), runOf({ a: node(0, 10) }))).toMatchObject([{ nodeId: "a", cause }]);
  });

  test("names what made a node faster", () => {
    expect(compare(runOf({ a: node(0, 10) }), runOf({ a: node(0, 60) }))).toMatchObject([
      { cause: "ran", differenceMs: -50_000 },
    ]);
    expect(
      compare(runOf({ a: node(0, 10) }), runOf({ a: node(0, 60, { attempts: 2, ran_ms: 12_000 }) })),
    ).toMatchObject([{ cause: "paused", differenceMs: -50_000 }]);
  });
});
