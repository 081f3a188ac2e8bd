/** SQL that reads what is quarantined. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { hasComeSince } from "./quarantine-signals.ts";

export interface QuarantineRow {
  quarantine_id: string;
  item_key: string | null;
  reason_code: string;
  reason: string;
  expression: string | null;
  fragment: string;
  slice_id: string;
  generation: number;
  batch_no: number;
  created_at: Date;
  /** A record of the id has come since. */
  resolved: boolean;
}

// From the newest on, along the index by time.
const LIST = statement<QuarantineRow>(
  "harvest.quarantine.list",
  `select q.quarantine_id::text, q.item_key, q.reason_code, q.reason, q.expression, q.fragment, q.slice_id::text, q.generation,
          q.batch_no, q.created_at, q.resolved_at is not null or ${hasComeSince("q")} as resolved
   from harvest.quarantine q where q.endpoint_id = $1 and q.quarantine_id < $2 order by q.quarantine_id desc limit $3`,
);
const NEWEST = String(2n ** 63n - 1n);

export function listQuarantined(
  db: Db,
  endpointId: number,
  { before = NEWEST, limit }: { before: string | undefined; limit: number },
): Promise<QuarantineRow[]> {
  return db.read(LIST, [endpointId, before, limit]);
}
