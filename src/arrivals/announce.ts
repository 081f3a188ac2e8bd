/**
 * A table has arrived for an opTime: that is written down, and all models that depend on it are considered, in the same
 * transaction. Announcements of one moment are committed together; one that concerns nobody costs two statements a batch.
 */
import type { Queryable } from "../kernel/data/db.ts";
import { concernedOpTimes } from "./models/mapping.ts";
import { type Considered, consider, type Why } from "./runs/consider.ts";
import { keyOf } from "./runs/judge.ts";
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
}

/** What became of the models that depend on the table. */
export interface Announced {
  /** Whether any model depends on the table, published or not, for whatever opTimes. */
  isUsed: boolean;
  /** Ids of models that are not published. */
  unpublished: string[];
  considered: Considered[];
  isNews: boolean;
}

/**
 * In the order of the announcements, of which no two may be for the same table and opTime. `alsoLock` is for a caller who
 * needs the lock of further instances: all are taken in one order, so that two callers never wait for each other in a circle.
 */
export async function announce(
  tx: Queryable,
  announcements: readonly Announcement[],
  alsoLock: readonly InstanceKey[] = [],
): Promise<Announced[]> {
  const recorded = await recordArrivals(
    tx,
    announcements.map(({ table, opTime, idempotencyKey }) => ({
      table_name: table,
      op_time: opTime,
      idempotency_key: idempotencyKey,
    })),
  );
  const rows = new Map(recorded.map((row) => [keyOf({ table: row.table_name, opTime: row.op_time }), row]));
  const dependents = await dependentsOf(tx, [...new Set(announcements.map(({ table }) => table))]);
  if (dependents.length === 0) return announcements.map((announced) => nobody(rows.get(keyOf(announced))));

  const byTable = groupedByTable(dependents);
  const causes = new Map<string, Cause>();
  const concerned = announcements.map(({ table, opTime }) => {
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
  const repeated = concerned.flat().filter((key) => !considered.has(textOf(key)));
  for (const each of await standing(tx, repeated)) considered.set(textOf(each), each);

  return announcements.map(({ table, opTime }, index) => ({
    isUsed: byTable.has(table),
    isNews: rows.get(keyOf({ table, opTime }))?.fresh ?? false,
    unpublished: [...new Set(byTable.get(table)?.flatMap((one) => (isPublished(one) ? [] : one.model_id)))],
    considered: (concerned[index] ?? []).flatMap((key) => considered.get(textOf(key)) ?? []),
  }));
}

function nobody(row: ArrivalRow | undefined): Announced {
  return { isUsed: false, unpublished: [], considered: [], isNews: row?.fresh ?? false };
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

/** The instances of published models that an arrival of the table they depend on concerns. */
function instancesOf(dependents: readonly FactsWithDependency[], opTime: string): InstanceKey[] {
  const keys = new Map<string, InstanceKey>();
  for (const one of dependents) {
    if (!isPublished(one)) continue;
    for (const concerned of concernedOpTimes(mappingOf(one, one.dependency), opTime)) {
      const key = { model_id: one.model_id, op_time: concerned };
      keys.set(textOf(key), key);
    }
  }
  return [...keys.values()];
}

function isPublished({ state }: FactsWithDependency): boolean {
  return state === MODEL_STATES.published;
}

/** For the repeat of a request: where the models stand, without a second look at what to do. */
async function standing(tx: Queryable, keys: readonly InstanceKey[]): Promise<Considered[]> {
  const instances = keys.length > 0 ? await findInstances(tx, keys) : [];
  return instances.map(({ model_id, op_time, state, generation, due_at }): Considered => {
    const key = { model_id, op_time };
    switch (state) {
      case "running":
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
