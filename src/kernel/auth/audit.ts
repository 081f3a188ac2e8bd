/** The audit log: who did what, when and from where. Written in the transaction of the action, if there is one. */
import type { Db, Queryable } from "../data/db.ts";
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

const WRITE = statement(
  "kernel.audit.write",
  `insert into kernel.audit_log (actor, key_id, action, target, details, address, request_id)
   values ($1, $2, $3, $4, $5, $6, $7)`,
);
const LIST = statement<AuditRow>(
  "kernel.audit.list",
  `select id, at, actor, key_id, action, target, details, address, request_id
   from kernel.audit_log where $1::bigint is null or id < $1 order by id desc limit $2`,
);

export async function audit(
  db: Queryable,
  { caller, address, requestId }: Actor,
  action: string,
  target: string,
  details: object = {},
): Promise<void> {
  await db.rows(WRITE, [caller.name, caller.keyId, action, target, details, address, requestId]);
}

/** Newest first; `before` is the id of the last row of the previous page. */
export function listAudit(db: Db, page: { limit: number; before: string | null }): Promise<AuditRow[]> {
  return db.read(LIST, [page.before, page.limit]);
}
