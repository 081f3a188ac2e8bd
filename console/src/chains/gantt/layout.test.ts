/** Bars, waits and the folded axis of a Gantt chart. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NodeStatus, RunNode, Timeline } from "../api.ts";
import { rowsOf, scaleOf } from "./layout.ts";

const BEGIN = Date.parse("2025-01-01T00:00:00Z");
const at = (seconds: number) => new Date(BEGIN + seconds * 1_000).toISOString();
const NONE: Timeline = { attempts: [], truncated: false, criticalPath: [] };

function node(
  nodeId: string,
  status: NodeStatus,
  from: number | null,
  to: number | null,
  more: Partial<RunNode> = {},
): RunNode {
  return {
    nodeId,
    type: "noop",
    dependsOn: [],
    runWhen: "all_success",
    status,
    attempt: from === null ? 0 : 1,
    maxAttempts: 1,
    lastError: null,
    startedAt: from === null ? null : at(from),
    endedAt: to === null ? null : at(to),
    dueAt: null,
    waitingFor: null,
    waits: null,
    progress: null,
    progressNote: null,
    worker: null,
    childRunId: null,
    updatedAt: at(0),
    ...more,
  };
}
const attempt = (nodeId: string, no: number, from: number, to: number, status = "FAILED") => ({
  nodeId,
  attempt: no,
  status,
  error: null,
  startedAt: at(from),
  endedAt: at(to),
});
const barsOf = (nodes: readonly RunNode[], timeline: Timeline = NONE, now = 100) =>
  rowsOf(nodes, timeline, at(0), BEGIN + now * 1_000).map(({ node: { nodeId }, bars }) => [
    nodeId,
    bars.map(({ kind, from, to, state }) => `${kind} ${(from - BEGIN) / 1_000}-${(to - BEGIN) / 1_000} ${state}`),
  ]);

describe("the rows of a run", () => {
  it("have a hollow bar from the end of the last parent, and are sorted by their first start", () => {
    expect(
      barsOf([
        node("later", "SUCCESS", 30, 40, { dependsOn: ["a", "b"] }),
        node("a", "SUCCESS", 0, 10),
        node("b", "SUCCESS", 2, 20),
        node("skipped", "SKIPPED", null, 20),
      ]),
    ).toEqual([
      ["a", ["run 0-10 success"]],
      ["b", ["wait 0-2 waiting", "run 2-20 success"]],
      ["later", ["wait 20-30 waiting", "run 30-40 success"]],
      ["skipped", []],
    ]);
  });

  it("wait from the first failure, where the node runs on one", () => {
    expect(
      barsOf([
        node("a", "FAILED", 0, 10),
        node("b", "SUCCESS", 0, 50),
        node("c", "SUCCESS", 12, 20, { dependsOn: ["a", "b"], runWhen: "one_failed" }),
      ]).at(-1),
    ).toEqual(["c", ["wait 10-12 waiting", "run 12-20 success"]]);
  });

  it("have a bar for each attempt, with the pauses between them, and grow until now", () => {
    const timeline = { ...NONE, attempts: [attempt("a", 1, 0, 5), attempt("a", 2, 10, 12, "LOST")] };
    expect(barsOf([node("a", "RUNNING", 20, null, { attempt: 3 })], timeline)).toEqual([
      ["a", ["pause 5-10 waiting", "pause 12-20 waiting", "run 0-5 failed", "run 10-12 failed", "run 20-100 running"]],
    ]);
    expect(barsOf([node("a", "RETRYING", null, null, { attempt: 2 })], timeline)).toEqual([
      ["a", ["pause 5-10 waiting", "pause 12-100 waiting", "run 0-5 failed", "run 10-12 failed"]],
    ]);
  });

  it("do not show the time until a person set a node to succeeded as work", () => {
    const timeline = { ...NONE, attempts: [attempt("a", 1, 0, 5)] };
    expect(barsOf([node("a", "SUCCESS", 0, 90)], timeline)).toEqual([["a", ["pause 5-90 waiting", "run 0-5 failed"]]]);
  });
});

describe("the axis", () => {
  it("folds a night in which nothing ran", () => {
    const scale = scaleOf(
      rowsOf([node("a", "SUCCESS", 0, 60), node("b", "SUCCESS", 36_000, 36_060)], NONE, at(0), BEGIN),
    );
    expect(scale.gaps).toEqual([{ from: BEGIN + 60_000, to: BEGIN + 36_000_000 }]);
    expect(scale.at(BEGIN + 60_000)).toBeGreaterThan(0.45);
    expect(scale.at(BEGIN + 36_000_000) - scale.at(BEGIN + 60_000)).toBeCloseTo(0.025);
  });

  it("goes from 0 to 1 and never back, and its ticks are apart", () => {
    const times = fc.tuple(fc.nat(100_000), fc.nat(1_000));
    fc.assert(
      fc.property(fc.array(times, { minLength: 1, maxLength: 30 }), (given) => {
        const nodes = given.map(([from, length], no) => node(`n${no}`, "SUCCESS", from, from + length));
        const scale = scaleOf(rowsOf(nodes, NONE, at(0), BEGIN));
        const ends = nodes.flatMap(({ startedAt, endedAt }) => [
          Date.parse(startedAt ?? ""),
          Date.parse(endedAt ?? ""),
        ]);
        const places = ends.sort((one, other) => one - other).map(scale.at);
        expect(places[0]).toBe(0);
        for (const [index, place] of places.entries())
          expect(place).toBeGreaterThanOrEqual((places[index - 1] ?? 0) - 1e-9);
        expect(places.at(-1)).toBeLessThanOrEqual(1);
        if (Math.max(...ends) > Math.min(...ends)) expect(places.at(-1)).toBeCloseTo(1);
        expect(scale.ticks.length).toBeLessThanOrEqual(13);
      }),
    );
  });
});
