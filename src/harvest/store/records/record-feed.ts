/**
 * SQL that reads records in the order of their changes.
 *
 * A change has the number of its transaction. Transactions commit in another order than they begin, so a reader stops before the
 * oldest one that is still open: whatever it has passed is complete, and who continues where it stopped misses nothing.
 */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

export interface FeedRow {
  item_key: string;
  version: number;
  deleted: boolean;
  change_xid: string;
  source_time: Date | null;
  slice_id: string;
  generation: number;
  batch_no: number;
  /** JSON text: parsed, numbers of many digits would be rounded. */
  data: string | null;
}

/** A place in the order of changes. */
export interface ChangePosition {
  xid: string;
  key: string;
}

const COLUMNS = `item_key, version, deleted, change_xid::text, source_time, slice_id::text, generation, batch_no, data::text as data`;

// `order by change_xid` would be the order of the texts in the result, in which 1000 comes before 999.
export const CHANGES = statement<FeedRow>(
  "harvest.record.changes",
  `select ${COLUMNS} from harvest.record r
   where endpoint_id = $1 and change_xid >= $2::xid8 and (change_xid, item_key) > ($2::xid8, $3)
     and change_xid < pg_snapshot_xmin(pg_current_snapshot())
   order by r.change_xid, r.item_key limit $4`,
);
// The last change of each endpoint is one step in the index.
const AHEAD = statement<{ change_xid: string; next_xid: string }>(
  "harvest.record.changes_ahead",
  `select max(r.change_xid)::text as change_xid, pg_snapshot_xmax(pg_current_snapshot())::text as next_xid
   from harvest.reg_prov_endpoint_def e
   cross join lateral (select change_xid from harvest.record where endpoint_id = e.endpoint_id
                       order by change_xid desc limit 1) r
   having max(r.change_xid) >= pg_snapshot_xmax(pg_current_snapshot())`,
);

/** A change that this cluster has not come to yet, which only a restored dump can have. */
export async function changesAhead(db: Db): Promise<{ changeXid: string; nextXid: string } | undefined> {
  const [row] = await db.read(AHEAD);
  return row && { changeXid: row.change_xid, nextXid: row.next_xid };
}

const ONE = statement<FeedRow>(
  "harvest.record.one",
  `select ${COLUMNS} from harvest.record where endpoint_id = $1 and item_key = $2`,
);

export function changesAfter(db: Db, endpointId: number, after: ChangePosition, limit: number): Promise<FeedRow[]> {
  return db.read(CHANGES, [endpointId, after.xid, after.key, limit]);
}

export async function findRecord(db: Db, endpointId: number, key: string): Promise<FeedRow | undefined> {
  return (await db.read(ONE, [endpointId, key]))[0];
}
