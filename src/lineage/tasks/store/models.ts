/**
 * SQL for the model of a tenant. Its column also stores the progress of queueing stale assets (`requeue`), so that a crash in
 * between loses nothing.
 */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { TenantModel } from "../model.ts";

interface ModelRow {
  code: string;
  model: TenantModel | null;
}

const READ = statement<ModelRow>(
  "lineage.model.read",
  "select code, model - 'requeue' as model from lineage.tenant where id = $1",
);

/** Undefined if there is no such tenant. */
export async function readModel(db: Queryable, tenantId: string): Promise<ModelRow | undefined> {
  return (await db.rows(READ, [tenantId]))[0];
}

const requeue = (after: string, isLast: boolean, at: string) =>
  `jsonb_build_object('requeue', jsonb_build_object('after', ${after}, 'isLast', ${isLast}, 'at', ${at}))`;

const WRITE = statement<{ id: string }>(
  "lineage.model.write",
  `update lineage.tenant set model = $2::jsonb || ${requeue("'0'", false, "now()")}, updated_at = now()
   where id = $1 returning id`,
);

/** With null the tenant has none. Answers whether there is such a tenant. */
export async function writeModel(tx: Queryable, tenantId: string, model: TenantModel | null): Promise<boolean> {
  return (await tx.rows(WRITE, [tenantId, model === null ? null : JSON.stringify(model)])).length > 0;
}

const REQUEUE = statement(
  "lineage.model.requeue",
  `update lineage.tenant set model = model || ${requeue("'0'", false, "now()")} where id = $1 and model is not null`,
);

/** Has all assets looked at again, as after a choice: some may have changed without being queued. */
export async function requeueAll(tx: Queryable, tenantId: string): Promise<void> {
  await tx.rows(REQUEUE, [tenantId]);
}

export interface Requeueing extends ModelRow {
  id: string;
  /** The last asset that was looked at. */
  after: string;
  isLast: boolean;
  /** Until it goes on. */
  due_in_ms: number;
}

const REQUEUEING = statement<Requeueing>(
  "lineage.model.requeueing",
  `select id, code, model - 'requeue' as model, model -> 'requeue' ->> 'after' as after,
          (model -> 'requeue' -> 'isLast')::bool as "isLast",
          (extract(epoch from (model -> 'requeue' ->> 'at')::timestamptz - now()) * 1000)::float8 as due_in_ms
   from lineage.tenant where model ? 'requeue' order by due_in_ms limit $1`,
);

/** The tenants whose assets have not all been looked at since they chose their model. */
export function requeueing(db: Queryable, limit: number): Promise<Requeueing[]> {
  return db.rows(REQUEUEING, [limit]);
}

/** How far it has come: an asset, the end of the first round, or the end. */
export type Advance = { after: string } | { nextRoundInSeconds: number } | "done";

const ADVANCE = statement<{ id: string }>(
  "lineage.model.advance",
  `update lineage.tenant
   set model = case when $4::text is not null then jsonb_set(model, '{requeue,after}', to_jsonb($4::text))
                    when $5::float8 is not null then model || ${requeue("'0'", true, "now() + make_interval(secs => $5)")}
                    else model - 'requeue' end
   where id = $1 and model -> 'requeue' ->> 'after' = $2 and (model -> 'requeue' -> 'isLast')::bool = $3 returning id`,
);

/** Returns false and changes nothing if another process did it, or if the tenant has chosen another model. */
export async function advanceRequeueing(
  tx: Queryable,
  { id, after, isLast }: Requeueing,
  to: Advance,
): Promise<boolean> {
  const next = to === "done" ? null : "after" in to ? to.after : null;
  const seconds = to !== "done" && "nextRoundInSeconds" in to ? to.nextRoundInSeconds : null;
  return (await tx.rows(ADVANCE, [id, after, isLast, next, seconds])).length > 0;
}
