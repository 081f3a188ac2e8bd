/** The audit log: who did what, when and from where. Written in the transaction of the action, if there is one. */
import type { Db, Queryable } from "../data/db.ts";
import { filtered } from "../data/filtered.ts";
import { statement } from "../data/statement.ts";
import type { Caller } from "./scopes.ts";

/** The caller and the request of an action. */
export interface Actor {
  caller: Caller;
  address: string;
  requestId: string;
}

export interface AuditRow {
  id: string;
  at: Date;
  actor: string;
  key_id: string | null;
  action: string;
  target: string;
  details: unknown;
  address: string;
  request_id: string;
}

// Of two actions that wait for each other, the one that began first may be the second: now() would be when it began.
const WRITE = statement(
  "kernel.audit.write",
  `insert into kernel.audit_log (at, actor, key_id, action, target, details, address, request_id)
   values (clock_timestamp(), $1, $2, $3, $4, $5, $6, $7)`,
);

export interface AuditFilter {
  /** The name of a key. */
  actor: string | null;
  keyId: string | null;
  action: string | null;
  /** Its beginning. */
  target: string | null;
  from: Date | null;
  to: Date | null;
  /** The id of the last row of the previous page. */
  before: string | null;
}

const LIST = filtered<AuditFilter, AuditRow>({
  name: "kernel.audit.list",
  conditions: {
    actor: (p) => `actor = ${p}`,
    keyId: (p) => `key_id = ${p}::uuid`,
    action: (p) => `action = ${p}`,
    target: (p) => `target ^@ ${p}`,
    from: (p) => `at >= ${p}`,
    to: (p) => `at < ${p}`,
    // The first condition is for the index; the second decides between rows of the same moment.
    before: (p) => `at <= (select b.at from kernel.audit_log b where b.id = ${p}::bigint)
       and (at, id) < (select b.at, b.id from kernel.audit_log b where b.id = ${p}::bigint)`,
  },
  text: (where, parameter) => `select id, at, actor, key_id, action, target, details, address, request_id
   from kernel.audit_log where ${where} order by at desc, id desc limit ${parameter(0)}`,
});
// From one action to the next in the index, whatever the number of rows.
const ACTIONS = statement<{ action: string }>(
  "kernel.audit.actions",
  `with recursive known as (
     (select action from kernel.audit_log order by action limit 1)
     union all
     select (select l.action from kernel.audit_log l where l.action > k.action order by l.action limit 1)
     from known k where k.action is not null
   )
   select action from known where action is not null`,
);

export async function audit(
  db: Queryable,
  { caller, address, requestId }: Actor,
  action: string,
  target: string,
  details: object = {},
): Promise<void> {
  const all = caller.session ? { ...details, via: "console" } : details;
  await db.rows(WRITE, [caller.name, caller.keyId, action, target, all, address, requestId]);
}

/** Newest first. */
export function listAudit(db: Db, filter: AuditFilter, limit: number): Promise<AuditRow[]> {
  const { statement: list, values } = LIST(filter);
  return db.read(list, [...values, limit]);
}

/** Those that the log has. */
export async function auditedActions(db: Db): Promise<string[]> {
  return (await db.read(ACTIONS)).map(({ action }) => action);
}
