/** Applies the dead letters of a tenant again, once the cause is fixed. */
import type { Db } from "../../kernel/data/db.ts";
import { ApiError } from "../../kernel/errors.ts";
import { countDeadLetters, listDeadLetters } from "../store/tenants.ts";
import type { Ingest, Taken } from "./ingest.ts";

export interface Replayed {
  applied: number;
  dead: number;
  /** Dead letters that are left. */
  remaining: number;
  /** Continues behind those that were tried; null at the end. */
  next: string | null;
}

/** The oldest first, as many as `limit`. */
export async function replayAll(
  { db, ingest }: { db: Db; ingest: Pick<Ingest, "replay"> },
  tenantId: string,
  { after, limit }: { after: string | null; limit: number },
): Promise<Replayed> {
  const ids = await listDeadLetters(db, tenantId, after, limit);
  const done = { applied: 0, dead: 0 };
  // One after the other: a dead letter may be one because it is too much for the database.
  for (const id of ids) {
    const state = await replayed(ingest, tenantId, id);
    if (state) done[state === "DEAD" ? "dead" : "applied"] += 1;
  }
  const next = ids.length === limit ? (ids.at(-1) ?? null) : null;
  return { ...done, remaining: await countDeadLetters(db, tenantId), next };
}

/** What became of a dead letter; nothing if someone else has replayed it meanwhile. */
async function replayed(
  ingest: Pick<Ingest, "replay">,
  tenantId: string,
  eventId: string,
): Promise<Taken["state"] | undefined> {
  try {
    return (await ingest.replay(tenantId, eventId)).state;
  } catch (error) {
    if (error instanceof ApiError && error.code === "DEAD_LETTER_NOT_FOUND") return undefined;
    throw error;
  }
}
