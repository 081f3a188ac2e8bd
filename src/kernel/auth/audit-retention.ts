/** How long the kernel's own history is kept: the audit log, and events of the outbox that were given up. */
import type { Tx } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { type Batch, createRetention, type RetentionDeps } from "../work/retention.ts";
import type { Service } from "../work/service.ts";

// Ids grow with time, so a look at the oldest is enough.
const DELETE_AUDIT = statement<{ looked: number; deleted: number }>(
  "kernel.audit.delete_old",
  `with oldest as materialized (select id, at from kernel.audit_log order by id limit $2),
        gone as (delete from kernel.audit_log a using oldest o
                 where a.id = o.id and o.at < now() - make_interval(days => $1) returning a.id)
   select (select count(*)::int from gone) as deleted,
          (select count(*)::int from oldest where at < now() - make_interval(days => $1)) as looked`,
);
const DELETE_DEAD = statement<{ looked: number; deleted: number }>(
  "kernel.outbox.delete_dead",
  `with oldest as materialized (
     select id from kernel.outbox where state = 'dead' and created_at < now() - make_interval(days => $1)
     order by created_at limit $2 for update skip locked
   ), gone as (delete from kernel.outbox o using oldest d where o.id = d.id returning o.id)
   select (select count(*)::int from gone) as deleted, (select count(*)::int from oldest) as looked`,
);

export interface HistoryOptions extends RetentionDeps {
  auditKeepDays: number;
  outboxKeepDays: number;
}

export function historyRetention({ auditKeepDays, outboxKeepDays, ...deps }: HistoryOptions): Service[] {
  const deleting = (from: typeof DELETE_AUDIT, days: number) => async (tx: Tx, limit: number) =>
    (await tx.rows(from, [days, limit]))[0] as Batch;
  return [
    createRetention({ ...deps, name: "kernel.audit.retention", deleteBatch: deleting(DELETE_AUDIT, auditKeepDays) }),
    createRetention({ ...deps, name: "kernel.outbox.retention", deleteBatch: deleting(DELETE_DEAD, outboxKeepDays) }),
  ];
}
