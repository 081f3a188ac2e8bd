/**
 * Compares what the nodes did (their marks) and every change of their status with what must hold when all runs have ended.
 * Returns a sentence for each contradiction.
 */
import type { NodeDef } from "../../src/chains/definitions/dag.ts";
import { NODE_NEXT, type NodeStatus } from "../../src/chains/engine/states.ts";
import {
  type ChainsSetup,
  keyOf,
  type Mark,
  type Move,
  moves,
  type NodeAttempt,
  type NodeRow,
  nodeRows,
  type Store,
} from "./chains-setup.ts";

/** The nodes of each acknowledged run; all of them must have succeeded. */
export type Expected = ReadonlyMap<string, readonly NodeDef[]>;

export async function contradictions(store: Store, setup: ChainsSetup, expected: Expected): Promise<string[]> {
  const marks = setup.marks();
  const rows = await nodeRows(store);
  return [
    ...(await unended(store, expected)),
    ...wrongResults(rows, expected),
    ...doubled(marks, "began"),
    ...doubled(marks, "did"),
    ...wrongEffects(marks, rows),
    ...wrongOrder(marks, rows, expected),
    ...wrongMoves(await moves(store), rows),
    ...(await wrongAttempts(store)),
  ];
}

async function unended({ query }: Store, expected: Expected): Promise<string[]> {
  const runs = await query<{ run_id: string; status: string }>("select run_id, status from chains.job_run");
  const statuses = new Map(runs.map(({ run_id, status }) => [run_id, status]));
  return [...expected.keys()].flatMap((runId) =>
    statuses.get(runId) === "SUCCESS" ? [] : [`run ${runId} was acknowledged and is ${statuses.get(runId)}`],
  );
}

function wrongResults(rows: readonly NodeRow[], expected: Expected): string[] {
  const found = new Map(rows.map((row) => [nodeOf(row), row]));
  return [...expected].flatMap(([runId, nodes]) => {
    const values = new Map<string, number>();
    return nodes.flatMap(({ id, dependsOn = [] }) => {
      const value = dependsOn.reduce((sum, parent) => sum + (values.get(parent) ?? Number.NaN), 1);
      values.set(id, value);
      const row = found.get(`${runId}/${id}`);
      const right = row?.status === "SUCCESS" && row.artifact?.value === value && row.artifact.attempt === row.attempt;
      return right ? [] : [`${runId}/${id} should have the value ${value}: ${JSON.stringify(row)}`];
    });
  });
}

function doubled(marks: readonly Mark[], what: Mark["what"]): string[] {
  return repeated(marks.filter((mark) => mark.what === what).map(keyOf)).map((key) => `${key} ${what} twice`);
}

/** The artifact of a node must come from its last attempt, in the process that ran it. */
function wrongEffects(marks: readonly Mark[], rows: readonly NodeRow[]): string[] {
  const did = new Map(marks.filter(({ what }) => what === "did").map((mark) => [keyOf(mark), mark.pid]));
  return rows
    .filter((row) => row.status === "SUCCESS" && did.get(keyOf(row)) !== row.artifact?.pid)
    .map((row) => `${keyOf(row)} succeeded, but process ${row.artifact?.pid} did not run it`);
}

/** A node must start after the last attempts of its parents have ended. */
function wrongOrder(marks: readonly Mark[], rows: readonly NodeRow[], expected: Expected): string[] {
  const attempts = new Map(rows.map((row) => [nodeOf(row), row.attempt]));
  const seen = new Set<string>();
  const wrong: string[] = [];
  for (const mark of marks) {
    const { runId, nodeId } = mark;
    if (mark.what === "did") seen.add(keyOf(mark));
    const node = expected.get(runId)?.find(({ id }) => id === nodeId);
    const early = (node?.dependsOn ?? []).filter(
      (parent) => !seen.has(keyOf({ runId, nodeId: parent, attempt: attempts.get(`${runId}/${parent}`) ?? 0 })),
    );
    if (early.length > 0) wrong.push(`${keyOf(mark)} ${mark.what} before its parents ${early.join(", ")} had ended`);
  }
  return wrong;
}

function wrongMoves(made: readonly Move[], rows: readonly NodeRow[]): string[] {
  const illegal = made
    .filter(({ before, after }) => !(NODE_NEXT[before] as readonly NodeStatus[]).includes(after))
    .map((move) => `${keyOf(move)} went from ${move.before} to ${move.after}`);
  const begun = made.filter(({ after }) => after === "RUNNING").map(keyOf);
  const usedTwice = repeated(begun).map((key) => `${key} was claimed twice`);
  const succeeded = made.filter(({ after }) => after === "SUCCESS").map(nodeOf);
  const again = repeated(succeeded).map((node) => `${node} succeeded again`);
  const once = new Set(succeeded);
  const never = rows.filter((row) => !once.has(nodeOf(row))).map((row) => `${nodeOf(row)} never succeeded`);
  return [...illegal, ...usedTwice, ...again, ...never];
}

/** All attempts before the last one must be stored. */
async function wrongAttempts({ query }: Store): Promise<string[]> {
  const rows = await query<{ node: string; attempt: number; kept: number[] }>(
    `select n.run_id || '/' || n.node_id as node, n.attempt, coalesce(a.kept, '{}') as kept
     from chains.job_run_node n left join lateral (
       select array_agg(attempt order by attempt) as kept from chains.job_run_attempt a
       where a.run_id = n.run_id and a.node_id = n.node_id
     ) a on true`,
  );
  return rows
    .filter(({ attempt, kept }) => kept.length !== attempt - 1 || kept.some((number, index) => number !== index + 1))
    .map(
      ({ node, attempt, kept }) =>
        `${node} is at attempt ${attempt}, but the stored attempts before it are ${kept.join(", ")}`,
    );
}

function repeated(list: readonly string[]): string[] {
  const seen = new Set<string>();
  return list.filter((item) => seen.size === seen.add(item).size);
}

function nodeOf({ runId, nodeId }: NodeAttempt): string {
  return `${runId}/${nodeId}`;
}
