/** When an asset was dropped, and by which event. */
import type { Db } from "../../kernel/data/db.ts";
import { isoOf } from "../graph/micros.ts";
import { ownName } from "../graph/names.ts";
import { eventReply, timeOf } from "./events.ts";
import { type DetailRow, type DropRow, type LineRow, readDrops } from "./store/asset.ts";
import { listEventsNaming } from "./store/events.ts";

interface Drop {
  droppedAt: string | null;
  /** Null if retention has deleted the event, or if there is none: a schema ends with the last asset in it. */
  droppedBy: ReturnType<typeof eventReply> | null;
}

/** `above` is what the asset was in, its parent last. */
export async function dropOf(db: Db, tenantId: string, asset: DetailRow, above: readonly LineRow[]): Promise<Drop> {
  const { deleted_at: gone, key, kind } = asset;
  if (gone === null) return { droppedAt: null, droppedBy: null };
  // What was dropped in one transaction was dropped together: a table with its schema, a column with its table.
  const together = above.filter(({ deleted_at: at }) => at?.getTime() === gone.getTime());
  const table = kind === "COLUMN" ? above.at(-1)?.key : undefined;
  const column = table === undefined ? null : { table, name: ownName(asset) };
  const drop = firstOf(await readDrops(db, tenantId, [key, ...together.map((one) => one.key)], column));
  if (!drop) return { droppedAt: gone.toISOString(), droppedBy: null };
  const at = Number(drop.at);
  const span = { after: null, from: isoOf(at), to: isoOf(at + 1) };
  const [event] = await listEventsNaming(db, tenantId, [drop.subject], span, 1);
  return { droppedAt: timeOf(drop.at), droppedBy: event ? eventReply(event) : null };
}

/** The newest drop; of full syncs, the first of those that have not found the column any more. */
function firstOf(newestFirst: readonly DropRow[]): DropRow | undefined {
  let first: DropRow | undefined;
  for (const row of newestFirst) {
    if (row.is_there) break;
    first = row;
    if (row.is_drop) break;
  }
  return first;
}
