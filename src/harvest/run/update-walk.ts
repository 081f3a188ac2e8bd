/** What is particular about the run of an update: its ids come from the database, and it may only fill what is empty. */
import type { Tx } from "../../kernel/data/db.ts";
import { LeaseLost } from "../../kernel/work/run-control.ts";
import { parseRecord } from "../decode/json.ts";
import { jsonText } from "../decode/numbers.ts";
import { staleBeforeOf } from "../plan/update.ts";
import { taskLease } from "../store/queue/tasks.ts";
import type { IncomingRecord } from "../store/records/records.ts";
import { listUpdates, lockStored } from "../store/records/updates.ts";
import type { CompiledEndpoint } from "./compiled.ts";
import type { Walk, WalkDeps } from "./walk.ts";

export function isUpdate({ task }: Pick<Walk, "task">): boolean {
  return task.context.operation_code === "UPDATE";
}

/** The endpoint that answers the records of ids, where the walk asks for ids. */
export function answeringOf(walk: Pick<Walk, "task">): CompiledEndpoint | undefined {
  const { detail, list } = walk.task.source;
  return detail ?? (isUpdate(walk) ? list : undefined);
}

/** Lists the ids of the slice, unless an earlier run has begun with them. */
export async function listKnown({ db }: Pick<WalkDeps, "db">, walk: Walk): Promise<void> {
  if (walk.position.isListed) return;
  const { task, generation } = walk;
  const { context, source } = task;
  const listed = await db.tx(async (tx) => {
    const [held] = await taskLease.hold(tx, [task]);
    if (!held) return undefined;
    return listUpdates(tx, {
      sliceId: context.slice_id,
      generation,
      endpointId: context.endpoint_id,
      exprProtoHash: context.expr_proto_hash,
      staleBefore: staleBeforeOf(source.list.spec.update.staleAfterMs, context.planned_at),
    });
  });
  if (listed === undefined) throw new LeaseLost();
  walk.expected = listed;
  walk.position = { pageNo: 1, isListed: true };
}

export interface Update {
  /** These are stored as they came. */
  put: readonly IncomingRecord[];
  /** What is stored, with what came filled in. The rows are locked. */
  fill: readonly IncomingRecord[];
}

/**
 * What an update writes. Where it may only fill what is empty, records that are there have what they have nothing in filled from what
 * came. They keep the hash of what was stored, so that a harvest that brings that once more finds it unchanged.
 */
export async function updateOf(
  tx: Tx,
  { task: { context, source } }: Walk,
  records: readonly IncomingRecord[],
): Promise<Update> {
  const { fillEmpty } = source.list.spec.update;
  if (fillEmpty.length === 0 || records.length === 0) return { put: records, fill: [] };
  const stored = await lockStored(
    tx,
    context.endpoint_id,
    records.map(({ item_key }) => item_key),
  );
  const byKey = new Map(stored.map((row) => [row.item_key, row]));
  const put: IncomingRecord[] = [];
  const fill: IncomingRecord[] = [];
  for (const record of records) {
    const row = byKey.get(record.item_key);
    if (!row || record.deleted) {
      put.push(record);
      continue;
    }
    const merged = mergedInto(parseRecord(row.data), parseRecord(record.data), fillEmpty);
    // Nothing to fill: the record stays as it is, whatever else differs.
    if (merged !== undefined) fill.push({ ...row, deleted: false, data: jsonText(merged) });
  }
  return { put, fill };
}

/** Undefined if nothing is filled. */
function mergedInto(stored: unknown, came: unknown, names: readonly string[]): object | undefined {
  if (!isObject(stored) || !isObject(came)) return undefined;
  const fills = names.filter((name) => isEmpty(stored[name]) && !isEmpty(came[name]));
  if (fills.length === 0) return undefined;
  return { ...stored, ...Object.fromEntries(fills.map((name) => [name, came[name]])) };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
