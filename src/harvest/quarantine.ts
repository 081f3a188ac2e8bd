/** Reading what is quarantined, from the newest on. */
import type { Db } from "../kernel/data/db.ts";
import { listQuarantined } from "./store/records/quarantine-reads.ts";

export async function quarantinedOf(db: Db, endpointId: number, page: { before: string | undefined; limit: number }) {
  const rows = await listQuarantined(db, endpointId, page);
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
    next: rows.length === page.limit ? (rows.at(-1)?.quarantine_id ?? null) : null,
  };
}
