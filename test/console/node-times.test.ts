/** The Gantt chart, which the page makes, and the comparison of runs, which the server makes, count the same. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { rowsOf } from "../../console/src/chains/gantt/layout.ts";
import { buildGraph } from "../../src/chains/definitions/graph.ts";
import type { NodeStatus, RunNode } from "../../src/chains/replies.ts";
import type { NodeTimesRow } from "../../src/chains/store/timing.ts";
import { timesOf } from "../../src/chains/timing/times.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const READ_MS = START + 10_000;
const at = (ms: number) => new Date(START + ms);

interface Life {
  nodeId: string;
  dependsOn: string[];
  runWhen: RunNode["runWhen"];
  status: NodeStatus;
  /** The attempts from the first to the last. */
  attempts: { from: number; to: number | null }[];
  /** When a person set it to succeeded, after the last attempt had failed. */
  setAt: number | null;
}

/** As the page reads it. */
function nodeOf({ nodeId, dependsOn, runWhen, status, attempts, setAt }: Life): RunNode {
  const isToRun = status === "RETRYING";
  const last = isToRun ? undefined : attempts.at(-1);
  const endMs = setAt ?? last?.to ?? null;
  return {
    nodeId,
    type: "noop",
    dependsOn,
    runWhen,
    status,
    attempt: attempts.length,
    maxAttempts: 5,
    lastError: null,
    startedAt: last ? at(last.from).toISOString() : null,
    endedAt: endMs === null ? null : at(endMs).toISOString(),
    dueAt: null,
    waitingFor: null,
    waits: null,
    progress: null,
    progressNote: null,
    worker: null,
    childRunId: null,
    updatedAt: at(0).toISOString(),
  };
}

/** Attempts that are stored apart from the node. */
function earlierOf({ status, attempts, setAt }: Life) {
  return attempts.slice(0, status === "RETRYING" || setAt !== null ? undefined : -1);
}

/** As the statement of the server answers it. */
function rowOf(life: Life): NodeTimesRow {
  const { endedAt } = nodeOf(life);
  const first = life.attempts[0];
  return {
    node_id: life.nodeId,
    status: life.status,
    started_at: first ? at(first.from) : null,
    ended_at: endedAt === null ? null : new Date(endedAt),
    ran_ms: life.attempts.reduce((sum, { from, to }) => sum + (to ?? READ_MS - START) - from, 0),
    attempts: life.attempts.length,
    read_at: new Date(READ_MS),
  };
}

const gaps = fc.array(fc.nat(300), { minLength: 0, maxLength: 6 });
const lives = fc
  .array(fc.record({ gaps, end: fc.constantFrom("SUCCESS", "RETRYING", "RUNNING", "set"), runWhen: fc.nat(2) }), {
    minLength: 1,
    maxLength: 5,
  })
  .map((given) => given.map(({ gaps: steps, end, runWhen }, no) => lifeOf(no, steps, end, runWhen)));

function lifeOf(no: number, steps: readonly number[], end: string, runWhen: number): Life {
  let clock = 0;
  const times = steps.map((step) => (clock += step));
  const attempts: Life["attempts"] = [];
  for (let index = 0; index + 1 < times.length; index += 2)
    attempts.push({ from: times[index] ?? 0, to: times[index + 1] ?? 0 });
  const last = attempts.at(-1);
  const status = last === undefined ? "PENDING" : end === "set" ? "SUCCESS" : (end as NodeStatus);
  if (last && status === "RUNNING") last.to = null;
  return {
    nodeId: `n${no}`,
    dependsOn: no === 0 ? [] : [`n${no - 1}`],
    runWhen: no === 0 ? "all_success" : ((["all_success", "all_done", "one_failed"] as const)[runWhen] ?? "all_done"),
    status,
    attempts,
    setAt: last && end === "set" ? (last.to ?? 0) + 70 : null,
  };
}

test("both count the same waits, pauses and runs of a node, whatever was retried", () => {
  fc.assert(
    fc.property(lives, (given) => {
      const attempts = given.flatMap((life) =>
        earlierOf(life).map(({ from, to }, index) => ({
          nodeId: life.nodeId,
          attempt: index + 1,
          status: "FAILED",
          error: null,
          startedAt: at(from).toISOString(),
          endedAt: at(to ?? 0).toISOString(),
        })),
      );
      const timeline = { attempts, truncated: false, criticalPath: [] };
      const rows = rowsOf(given.map(nodeOf), timeline, at(0).toISOString(), READ_MS);
      const drawn = rows.map(({ node, waitedMs, pausedMs, ranMs }) => [node.nodeId, { waitedMs, pausedMs, ranMs }]);
      const graph = buildGraph({
        nodes: given.map(({ nodeId, dependsOn, runWhen }) => ({ id: nodeId, type: "noop", dependsOn, runWhen })),
      });
      const counted = [...timesOf(graph, given.map(rowOf), at(0)).nodes].map(
        ([nodeId, { waitedMs, pausedMs, ranMs }]) => [nodeId, { waitedMs, pausedMs, ranMs }],
      );
      expect(Object.fromEntries(drawn)).toEqual(Object.fromEntries(counted));
    }),
  );
});
