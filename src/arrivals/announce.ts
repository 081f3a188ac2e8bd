/**
 * Records that a table has arrived for an opTime and, in the same transaction, decides for every model that depends on it.
 * Concurrent announcements are committed together; a batch of tables that no model uses costs two statements.
 */
import type { Queryable } from "../kernel/data/db.ts";
import { affectedOpTimes } from "./models/mapping.ts";
import { type Considered, consider, type Why } from "./runs/consider.ts";
import { keyOf } from "./runs/decide.ts";
import { knownModels, mappingOf } from "./runs/needs.ts";
import { MODEL_STATES } from "./runs/states.ts";
import { type ArrivalRow, recordArrivals } from "./store/arrivals.ts";
import { type Cause, findInstances, type InstanceKey, lockInstances } from "./store/instances.ts";
import { dependentsOf, type FactsWithDependency } from "./store/models.ts";

export interface Announcement {
  table: string;
  opTime: string;
  /** Repeats of a request with the same key are one arrival. */
  idempotencyKey: string | null;
  /** Who announces it: the name of a key, a node of a run, a model or a file. */
  by?: string;
}

/** What was decided for the models that depend on the table. */
export interface Announced {
  /** Whether any model depends on the table, published or not, for whatever opTimes. */
  isUsed: boolean;
  /** Ids of models that are not published. */
  unpublished: string[];
  considered: Considered[];
  /** False for the repeat of a request with the same idempotency key. */
  isNew: boolean;
}

/**
 * Answers in the order of the announcements, no two of which may have the same table and opTime. `alsoLock` names further
 * instances that the caller needs locked: all locks are taken in one order, so two callers cannot deadlock.
 */
export async function announce(
  tx: Queryable,
  announcements: readonly Announcement[],
  alsoLock: readonly InstanceKey[] = [],
): Promise<Announced[]> {
  const recorded = await recordArrivals(
    tx,
    announcements.map(({ table, opTime, idempotencyKey, by }) => ({
      table_name: table,
      op_time: opTime,
      idempotency_key: idempotencyKey,
      announced_by: by ?? null,
    })),
  );
  const rows = new Map(recorded.map((row) => [keyOf({ table: row.table_name, opTime: row.op_time }), row]));
  const dependents = await dependentsOf(tx, [...new Set(announcements.map(({ table }) => table))]);
  if (dependents.length === 0) return announcements.map((announced) => unused(rows.get(keyOf(announced))));

  const byTable = groupedByTable(dependents);
  const causes = new Map<string, Cause>();
  const affected = announcements.map(({ table, opTime }) => {
    const keys = instancesOf(byTable.get(table) ?? [], opTime);
    if (rows.get(keyOf({ table, opTime }))?.fresh) {
      for (const key of keys) causes.set(textOf(key), { table, opTime });
    }
    return keys;
  });
  const considered = new Map<string, Considered>();
  const changed = [...causes.keys()].map(keyFrom);
  const models = await knownModels(
    tx,
    changed.map(({ model_id }) => model_id),
  );
  const why: Why = { trigger: "arrival", causeOf: (key: InstanceKey) => causes.get(textOf(key)) ?? null };
  if (alsoLock.length > 0) await lockInstances(tx, [...changed, ...alsoLock]);
  for (const each of await consider(tx, changed, models, why)) considered.set(textOf(each), each);
  const repeated = affected.flat().filter((key) => !considered.has(textOf(key)));
  for (const each of await presentStates(tx, repeated)) considered.set(textOf(each), each);

  return announcements.map(({ table, opTime }, index) => ({
    isUsed: byTable.has(table),
    isNew: rows.get(keyOf({ table, opTime }))?.fresh ?? false,
    unpublished: [...new Set(byTable.get(table)?.flatMap((one) => (isPublished(one) ? [] : one.model_id)))],
    considered: (affected[index] ?? []).flatMap((key) => considered.get(textOf(key)) ?? []),
  }));
}

function unused(row: ArrivalRow | undefined): Announced {
  return { isUsed: false, unpublished: [], considered: [], isNew: row?.fresh ?? false };
}

function groupedByTable(dependents: readonly FactsWithDependency[]): Map<string, FactsWithDependency[]> {
  const groups = new Map<string, FactsWithDependency[]>();
  for (const one of dependents) {
    const group = groups.get(one.dependency.dependency_table_name);
    if (group) group.push(one);
    else groups.set(one.dependency.dependency_table_name, [one]);
  }
  return groups;
}

/** The instances of published models that need this opTime of the table. */
export function instancesOf(dependents: readonly FactsWithDependency[], opTime: string): InstanceKey[] {
  const keys = new Map<string, InstanceKey>();
  for (const one of dependents) {
    if (!isPublished(one)) continue;
    for (const affected of affectedOpTimes(mappingOf(one, one.dependency), opTime)) {
      const key = { model_id: one.model_id, op_time: affected };
      keys.set(textOf(key), key);
    }
  }
  return [...keys.values()];
}

function isPublished({ state }: FactsWithDependency): boolean {
  return state === MODEL_STATES.published;
}

/** The present states of the models, for the repeat of a request: nothing is decided again. */
async function presentStates(tx: Queryable, keys: readonly InstanceKey[]): Promise<Considered[]> {
  const instances = keys.length > 0 ? await findInstances(tx, keys) : [];
  return instances.map(({ model_id, op_time, state, generation, due_at }): Considered => {
    const key = { model_id, op_time };
    switch (state) {
      case "running":
      case "parked":
      case "returned":
      case "retrying":
        return { ...key, generation, verdict: { kind: "ready" } };
      case "ready":
        return { ...key, generation: generation + 1, verdict: { kind: "ready" } };
      case "quiet":
        return { ...key, generation: generation + 1, verdict: { kind: "quiet", dueMs: due_at?.getTime() ?? 0 } };
      case "waiting":
        return { ...key, generation: generation + 1, verdict: { kind: "waiting", missing: [] } };
      case "asking":
        return { ...key, generation, verdict: { kind: "asking" } };
      case "idle":
        return { ...key, generation, verdict: generation > 0 ? { kind: "ready" } : { kind: "nothing new" } };
    }
  });
}

/** Model ids and opTimes hold no line break: routes refuse control characters. */
function textOf({ model_id, op_time }: InstanceKey): string {
  return `${model_id}\n${op_time}`;
}

function keyFrom(text: string): InstanceKey {
  const [model_id = "", op_time = ""] = text.split("\n");
  return { model_id, op_time };
}
