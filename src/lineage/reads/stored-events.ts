/** Lists stored events, newest first. */
import type { Db } from "../../kernel/data/db.ts";
import { lineageError } from "../catalogue.ts";
import { keysOf } from "./asset.ts";
import { isId } from "./find.ts";
import { type EventFilter, listEvents, listEventsNaming, readEvent, type Scanned } from "./store/events.ts";

const NO_FILTER: EventFilter = {
  run: null,
  job: null,
  kind: null,
  eventType: null,
  state: null,
  from: null,
  to: null,
  after: null,
};

export const storedEvents = (db: Db, tenantId: string, filter: EventFilter, limit: number): Promise<Scanned> =>
  listEvents(db, tenantId, filter, limit);

export const deadLetters = (db: Db, tenantId: string, after: EventFilter["after"], limit: number): Promise<Scanned> =>
  listEvents(db, tenantId, { ...NO_FILTER, state: "DEAD", after }, limit);

/** Those that name an asset. */
export async function eventsNaming(
  db: Db,
  tenantId: string,
  asset: string,
  span: Pick<EventFilter, "after" | "from" | "to">,
  limit: number,
): Promise<Scanned> {
  const keys = await keysOf(db, tenantId, asset);
  const rows = await listEventsNaming(db, tenantId, keys, span, limit + 1);
  const items = rows.slice(0, limit);
  return { rows: items, end: rows.length > limit ? (items.at(-1) ?? null) : null };
}

export async function storedEvent(db: Db, tenantId: string, id: string) {
  const row = isId(id) ? await readEvent(db, tenantId, id) : undefined;
  if (!row) throw lineageError("LINEAGE_EVENT_NOT_FOUND", { id });
  return row;
}
