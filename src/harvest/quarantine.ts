/** Reading what is quarantined: one by one from the newest on, and in groups of the same error. */
import type { Db } from "../kernel/data/db.ts";
import {
  groupQuarantined,
  hasMoreQuarantined,
  LOOKED_AT_MAX,
  lastLookedAt,
  listQuarantined,
  type QuarantineFilter,
} from "./store/records/quarantine-reads.ts";

const GROUPS_MAX = 200;

export async function quarantinedOf(db: Db, endpointId: number, filter: QuarantineFilter, limit: number) {
  const rows = await listQuarantined(db, endpointId, filter, limit);
  const last = rows.length === limit ? rows.at(-1)?.quarantine_id : await lastLookedAt(db, endpointId, filter.before);
  return {
    items: rows.map((row) => ({
      id: row.quarantine_id,
      key: row.item_key,
      code: row.reason_code,
      reason: row.reason,
      expression: row.expression,
      fragment: row.fragment,
      batch: { slice: Number(row.slice_id), generation: row.generation, number: row.batch_no },
      createdAt: row.created_at,
      resolved: row.resolved,
    })),
    next: last ?? null,
  };
}

export async function quarantineGroups(db: Db, source: string) {
  const [rows, isCut] = await Promise.all([
    groupQuarantined(db, source, GROUPS_MAX + 1),
    hasMoreQuarantined(db, source),
  ]);
  return {
    items: rows.slice(0, GROUPS_MAX).map((row) => ({
      endpoint: row.endpoint_name,
      code: row.reason_code,
      expression: row.expression,
      records: row.records,
      reason: row.reason,
      createdAt: row.created_at,
    })),
    countedMax: LOOKED_AT_MAX,
    cut: isCut || rows.length > GROUPS_MAX,
  };
}
