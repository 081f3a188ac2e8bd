/** Validates a DAG and reports all problems at once, each with its path. */

import { drawCycle, findCycle } from "../../kernel/cycle.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { DAG_BYTES_MAX, type Dag, type DagProblem, NODES_MAX } from "./dag.ts";
import { cut, type KnownNames, nodeProblems, parentsOf } from "./validate-node.ts";

/** A longer list would not help; this also bounds the work for a body full of errors. */
export const PROBLEMS_MAX = 100;

/** Returns the DAG, or its problems. */
export function validateDag(value: unknown, known: KnownNames): { dag: Dag } | { problems: DagProblem[] } {
  const problems: DagProblem[] = [];
  for (const problem of problemsOf(value, known)) {
    if (problems.length === PROBLEMS_MAX) {
      problems.push({ path: "", message: `there are more problems; this list ends after ${PROBLEMS_MAX}` });
      break;
    }
    problems.push(problem);
  }
  return problems.length > 0 ? { problems } : { dag: value as Dag };
}

function* problemsOf(dag: unknown, known: KnownNames): Generator<DagProblem> {
  if (!isRecord(dag)) return yield { path: "", message: "the DAG must be an object with a list `nodes`" };
  const { nodes, ...unknown } = dag as { nodes?: unknown };
  if (!Array.isArray(nodes) || nodes.length === 0) return yield { path: "nodes", message: "dag must have nodes" };
  if (nodes.length > NODES_MAX) return yield { path: "nodes", message: tooMuch("nodes", nodes.length, NODES_MAX) };
  const bytes = Buffer.byteLength(JSON.stringify(dag));
  if (bytes > DAG_BYTES_MAX) return yield { path: "", message: tooMuch("bytes", bytes, DAG_BYTES_MAX) };

  for (const field of Object.keys(unknown)) {
    const hint = didYouMean(field, ["nodes"]) || " A DAG has only `nodes`.";
    yield { path: cut(field), message: `\`${cut(field)}\` is not a field.${hint}` };
  }
  const placeOf = firstPlaces(nodes);
  for (const [index, node] of nodes.entries()) {
    yield* nodeProblems(node, `nodes[${index}]`, { ...known, placeOf });
  }
  yield* cycleProblem(nodes, placeOf);
}

function tooMuch(unit: string, count: number, max: number): string {
  return `the DAG has ${count} ${unit}, more than the ${max} allowed`;
}

/** The first place of each id. */
function firstPlaces(nodes: readonly unknown[]): Map<string, string> {
  const places = new Map<string, string>();
  for (const [index, node] of nodes.entries()) {
    if (isRecord(node) && typeof node["id"] === "string" && !places.has(node["id"])) {
      places.set(node["id"], `nodes[${index}]`);
    }
  }
  return places;
}

function* cycleProblem(nodes: readonly unknown[], placeOf: ReadonlyMap<string, string>): Generator<DagProblem> {
  const parents = new Map<string, string[]>();
  for (const node of nodes) {
    if (isRecord(node) && typeof node["id"] === "string" && !parents.has(node["id"])) {
      parents.set(node["id"], parentsOf(node));
    }
  }
  const cycle = findCycle(parents);
  const [first] = cycle ?? [];
  if (!cycle || first === undefined) return;
  const message =
    cycle.length === 1
      ? `\`${cut(first)}\` depends on itself`
      : `the nodes form a cycle, so none of them can ever start: ${drawCycle(cycle.map(cut))}`;
  yield { path: `${placeOf.get(first)}.dependsOn`, nodeId: cut(first), message };
}
