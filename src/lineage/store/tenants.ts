/** SQL for tenants and their dead letters. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { TenantModel } from "../tasks/model.ts";
import { statesBefore, type TenantState } from "../tenants/states.ts";

export interface TenantRow {
  id: string;
  code: string;
  name: string;
  state: TenantState;
  cutover_time: Date | null;
  rate_limit_per_minute: number | null;
  body_limit_bytes: number | null;
  model: TenantModel | null;
  created_at: Date;
  updated_at: Date;
}

export interface NewTenant {
  id: string;
  code: string;
  name: string;
  state: TenantState;
  rateLimitPerMinute: number | null;
  bodyLimitBytes: number | null;
}

/** What is undefined stays as it is. */
export interface TenantChange {
  code?: string;
  name?: string;
  rateLimitPerMinute?: number | null;
  bodyLimitBytes?: number | null;
}

const COLUMNS = `id, code, name, state, cutover_time, rate_limit_per_minute, body_limit_bytes, model,
          created_at, updated_at`;

const FIND = statement<TenantRow>("lineage.tenant.find", `select ${COLUMNS} from lineage.tenant where id = $1`);

export async function findTenant(db: Queryable, id: string): Promise<TenantRow | undefined> {
  return (await db.rows(FIND, [id]))[0];
}

const LOCK = statement<TenantRow>(
  "lineage.tenant.lock",
  `select ${COLUMNS} from lineage.tenant where id = $1 for no key update`,
);

/** Locks the tenant against changes until the transaction ends. */
export async function lockTenant(tx: Queryable, id: string): Promise<TenantRow | undefined> {
  return (await tx.rows(LOCK, [id]))[0];
}

const INSERT = statement<TenantRow>(
  "lineage.tenant.insert",
  `insert into lineage.tenant (id, code, name, state, rate_limit_per_minute, body_limit_bytes)
   values ($1, $2, $3, $4, $5, $6) on conflict do nothing returning ${COLUMNS}`,
);

/** Answers nothing if the id or the code is taken. */
export async function insertTenant(tx: Queryable, tenant: NewTenant): Promise<TenantRow | undefined> {
  const { id, code, name, state, rateLimitPerMinute, bodyLimitBytes } = tenant;
  return (await tx.rows(INSERT, [id, code, name, state, rateLimitPerMinute, bodyLimitBytes]))[0];
}

const UPDATE = statement<TenantRow>(
  "lineage.tenant.update",
  `update lineage.tenant
   set code = coalesce($2, code), name = coalesce($3, name),
       rate_limit_per_minute = case when $4 then $5 else rate_limit_per_minute end,
       body_limit_bytes = case when $6 then $7 else body_limit_bytes end, updated_at = now()
   where id = $1 returning ${COLUMNS}`,
);

/** Fails with a unique violation if the code is taken. */
export async function updateTenant(tx: Queryable, id: string, change: TenantChange): Promise<TenantRow | undefined> {
  const { code, name, rateLimitPerMinute: rate, bodyLimitBytes: bytes } = change;
  const [row] = await tx.rows(UPDATE, [id, code, name, rate !== undefined, rate, bytes !== undefined, bytes]);
  return row;
}

const MOVE = statement<TenantRow>(
  "lineage.tenant.move",
  `update lineage.tenant
   set state = $2, cutover_time = case when $2 = 'SYNCING' then coalesce($4, now()) else cutover_time end,
       updated_at = now()
   where id = $1 and state = any($3) returning ${COLUMNS}`,
);

/** Answers nothing if there is no such tenant, or if it may not move there from where it is. */
export async function moveTenant(
  tx: Queryable,
  id: string,
  to: TenantState,
  cutoverTime: Date | null = null,
): Promise<TenantRow | undefined> {
  return (await tx.rows(MOVE, [id, to, statesBefore(to), cutoverTime]))[0];
}

export interface TenantNow {
  state: TenantState;
  /** Microseconds. */
  cutover_at: string | null;
}

const NOW = statement<TenantNow>(
  "lineage.tenant.now",
  `select state, (extract(epoch from cutover_time) * 1000000)::int8::text as cutover_at from lineage.tenant where id = $1`,
);

/** Read it once the tenant's graph is locked: what a tenant does with its events changes under that lock only. */
export async function tenantNow(tx: Queryable, tenantId: string): Promise<TenantNow | undefined> {
  return (await tx.rows(NOW, [tenantId]))[0];
}

const FILTER = `($1::bigint is null or id = $1)
     and ($2::text is null or strpos(lower(code), lower($2)) > 0 or strpos(lower(name), lower($2)) > 0)
     and ($3::text is null or state = $3)`;
const LIST = statement<TenantRow>(
  "lineage.tenant.list",
  `select ${COLUMNS} from lineage.tenant where ${FILTER} order by id limit $4 offset $5`,
);
const COUNT = statement<{ total: number }>(
  "lineage.tenant.count",
  `select count(*)::int as total from lineage.tenant where ${FILTER}`,
);

export interface ListTenants {
  /** Only this one. */
  id: string | null;
  q: string | null;
  state: TenantState | null;
  page: number;
  size: number;
}

export async function listTenants(db: Db, { id, q, state, page, size }: ListTenants) {
  const filter = [id, q, state];
  const [items, [count]] = await Promise.all([
    db.read(LIST, [...filter, size, (page - 1) * size]),
    db.read(COUNT, filter),
  ]);
  return { items, total: count?.total ?? 0 };
}

const DEAD_LETTERS = statement<{ id: string }>(
  "lineage.tenant.dead_letters",
  `select id from lineage.lineage_events
   where tenant_id = $1 and apply_state = 'DEAD' and ($2::bigint is null or id > $2) order by id limit $3`,
);

/** The ids of dead letters, oldest first, from behind `after` on. */
export async function listDeadLetters(
  db: Db,
  tenantId: string,
  after: string | null,
  limit: number,
): Promise<string[]> {
  return (await db.read(DEAD_LETTERS, [tenantId, after, limit])).map(({ id }) => id);
}

const COUNT_DEAD = statement<{ total: number }>(
  "lineage.tenant.count_dead",
  "select count(*)::int as total from lineage.lineage_events where tenant_id = $1 and apply_state = 'DEAD'",
);

export async function countDeadLetters(db: Db, tenantId: string): Promise<number> {
  return (await db.read(COUNT_DEAD, [tenantId]))[0]?.total ?? 0;
}
