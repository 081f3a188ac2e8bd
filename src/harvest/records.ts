/** Reading records: one by its key, or all of an endpoint in the order of their changes. */

import type { Db } from "../kernel/data/db.ts";
import { invalid } from "../kernel/errors.ts";
import { type ChangePosition, changesAfter, type FeedRow, findRecord } from "./store/records/record-feed.ts";

const START: ChangePosition = { xid: "0", key: "" };
/** The largest transaction number. */
const XID_MAX = 2n ** 64n - 1n;

export interface RecordsPage {
  rows: FeedRow[];
  /** The `after` of the next page; stays valid when there is nothing new yet. */
  next: string;
}

/** Throws VALIDATION_FAILED for an `after` that is no position. */
export async function recordChanges(
  db: Db,
  endpointId: number,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<RecordsPage> {
  const position = after === undefined ? START : positionOf(after);
  const rows = await changesAfter(db, endpointId, position, limit);
  const last = rows.at(-1);
  return { rows, next: textOf(last ? { xid: last.change_xid, key: last.item_key } : position) };
}

export async function recordByKey(db: Db, endpointId: number, key: string): Promise<RecordsPage> {
  const row = await findRecord(db, endpointId, key);
  return { rows: row ? [row] : [], next: textOf(START) };
}

/** The reply as text, with the data of each record as it is stored. */
export function recordsText({ rows, next }: RecordsPage): string {
  const items = rows.map(({ item_key, version, deleted, data, source_time, slice_id, generation, batch_no }) => {
    const head = {
      key: item_key,
      version,
      deleted,
      updatedAt: source_time,
      batch: { slice: Number(slice_id), generation, number: batch_no },
    };
    return `${JSON.stringify(head).slice(0, -1)},"data":${data ?? "null"}}`;
  });
  return `{"items":[${items.join(",")}],"next":${JSON.stringify(next)}}`;
}

function textOf({ xid, key }: ChangePosition): string {
  return key === "" ? xid : `${xid}.${Buffer.from(key).toString("base64url")}`;
}

function positionOf(text: string): ChangePosition {
  const [, xid = "", encoded = ""] = /^(\d{1,20})(?:\.([\w-]*))?$/.exec(text) ?? [];
  if (xid === "" || BigInt(xid) > XID_MAX) throw invalid("`after` must be the `next` of an earlier reply");
  const key = Buffer.from(encoded, "base64url").toString();
  if (key.includes("\u0000")) throw invalid("`after` must be the `next` of an earlier reply");
  return { xid, key };
}
