/** SQL for subscriptions, and for the targets of deliveries. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { filtered } from "../../kernel/data/filtered.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { SecretType } from "../secrets/secret.ts";

export interface SubscriptionFields {
  kpi_id: string;
  callback_url: string;
  /** Sealed. */
  secret: string | null;
  secret_type: SecretType | null;
  secret_key: string | null;
  retry_num: number;
  status: "0" | "1";
  team_name: string;
  user_id: string;
}

export interface SubscriptionRow extends SubscriptionFields {
  id: number;
  created_at: Date;
  updated_at: Date;
}

/** With the health of its endpoint. */
export interface SubscriptionView extends Omit<SubscriptionRow, "secret"> {
  /** It has asked to wait until then. */
  held_until: Date | null;
  /** Deliveries that are to be sent, among the first `PENDING_MAX` of its callback. */
  pending: number;
  failing_since: Date | null;
  disabled_at: Date | null;
  disabled_reason: string | null;
}

const TABLE = "webhooks.metrics_webhook_subscription";
const FIELDS = [
  "kpi_id",
  "callback_url",
  "secret",
  "secret_type",
  "secret_key",
  "retry_num",
  "status",
  "team_name",
  "user_id",
] as const satisfies readonly (keyof SubscriptionFields)[];

const NEXT_ID = statement<{ id: number }>(
  "webhooks.subscription.next_id",
  "select nextval('webhooks.subscription_id')::int4 as id",
);

export async function nextSubscriptionId(db: Queryable): Promise<number> {
  const [row] = await db.rows(NEXT_ID);
  if (!row) throw new Error("the sequence of subscription ids returned no row");
  return row.id;
}

const INSERT = statement(
  "webhooks.subscription.insert",
  `insert into ${TABLE} (id, ${FIELDS.join(", ")}) values ($1, ${FIELDS.map((_, index) => `$${index + 2}`).join(", ")})`,
);
const UPDATE = statement(
  "webhooks.subscription.update",
  `update ${TABLE} set ${FIELDS.map((field, index) => `${field} = $${index + 2}`).join(", ")}, updated_at = now()
   where id = $1`,
);
const valuesOf = (id: number, fields: SubscriptionFields) => [id, ...FIELDS.map((field) => fields[field])];

export async function insertSubscription(tx: Queryable, id: number, fields: SubscriptionFields): Promise<void> {
  await tx.rows(INSERT, valuesOf(id, fields));
}

export async function updateSubscription(tx: Queryable, id: number, fields: SubscriptionFields): Promise<void> {
  await tx.rows(UPDATE, valuesOf(id, fields));
}

const LOCK = statement<SubscriptionRow>(
  "webhooks.subscription.lock",
  `select id, ${FIELDS.join(", ")}, created_at, updated_at from ${TABLE} where id = $1 for update`,
);

export async function lockSubscription(tx: Queryable, id: number): Promise<SubscriptionRow | undefined> {
  return (await tx.rows(LOCK, [id]))[0];
}

// The oldest, where an earlier version let several be made.
const SAME = statement<SubscriptionRow>(
  "webhooks.subscription.same",
  `select id, ${FIELDS.join(", ")}, created_at, updated_at from ${TABLE}
   where callback_url = $1 and team_name = $2 and kpi_id = $3 order by id limit 1`,
);

export async function findSame(
  tx: Queryable,
  { callback_url, team_name, kpi_id }: Pick<SubscriptionFields, "callback_url" | "team_name" | "kpi_id">,
): Promise<SubscriptionRow | undefined> {
  return (await tx.rows(SAME, [callback_url, team_name, kpi_id]))[0];
}

const OF_KPI = statement<{ id: number; callback_url: string }>(
  "webhooks.subscription.of_kpi",
  `select id, callback_url from ${TABLE} where kpi_id = $1 order by id limit 1`,
);

export async function subscriptionOfKpi(tx: Queryable, kpiId: string) {
  return (await tx.rows(OF_KPI, [kpiId]))[0];
}

const DELETE = statement("webhooks.subscription.delete", `delete from ${TABLE} where id = $1`);

export async function deleteSubscription(tx: Queryable, id: number): Promise<void> {
  await tx.rows(DELETE, [id]);
}

/** Of each callback in a list. */
export const PENDING_MAX = 1_000;
// The deliveries of a callback are read once, however many of its subscriptions are in the list.
const view = (which: string) => `with page as materialized (select s.* from ${TABLE} s ${which}),
     pending as (
       select c.callback_url, i.id, count(*)::int as n
       from (select distinct callback_url from page) c, lateral (
         select d.subscription_ids from webhooks.delivery d
         where d.status = 'PENDING' and d.callback_url = c.callback_url limit ${PENDING_MAX}
       ) d, unnest(d.subscription_ids) as i(id)
       group by c.callback_url, i.id
     )
   select s.id, s.kpi_id, s.callback_url, s.secret_type, s.secret_key, s.retry_num, s.status, s.team_name,
          s.user_id, s.created_at, s.updated_at, case when e.held_until > now() then e.held_until end as held_until,
          coalesce(p.n, 0) as pending, e.failing_since, e.disabled_at, e.disabled_reason
   from page s join webhooks.endpoint e on e.callback_url = s.callback_url and e.team_name = s.team_name
   left join pending p on p.callback_url = s.callback_url and p.id = s.id order by s.id`;
const READ = statement<SubscriptionView>("webhooks.subscription.read", view("where s.id = $1"));

export async function readSubscription(db: Queryable, id: number): Promise<SubscriptionView | undefined> {
  return (await db.rows(READ, [id]))[0];
}

export interface SubscriptionFilter {
  kpiId?: string;
  callbackUrl?: string;
  teamName?: string;
  status?: string;
  /** Part of the KPI, the address, the team or the user. */
  q?: string;
}

const byFilter = {
  conditions: {
    kpiId: (p: string) => `s.kpi_id = ${p}`,
    callbackUrl: (p: string) => `s.callback_url = ${p}`,
    teamName: (p: string) => `s.team_name = ${p}`,
    status: (p: string) => `s.status = ${p}`,
    q: (p: string) =>
      `strpos(lower(concat_ws(' ', s.kpi_id, s.callback_url, s.team_name, s.user_id)), lower(${p})) > 0`,
  },
  emptyIsNone: true,
} as const;
const PAGE = filtered<SubscriptionFilter, SubscriptionView>({
  ...byFilter,
  name: "webhooks.subscriptions",
  text: (where, parameter) => view(`where ${where} order by s.id limit ${parameter(0)} offset ${parameter(1)}`),
});
const TOTAL = filtered<SubscriptionFilter, { total: number }>({
  ...byFilter,
  name: "webhooks.subscriptions_total",
  text: (where) => `select count(*)::int as total from ${TABLE} s where ${where}`,
});

/** Sorted by id. */
export async function listSubscriptions(
  db: Db,
  filter: SubscriptionFilter,
  page: { size: number; offset: number },
): Promise<{ items: SubscriptionView[]; total: number }> {
  const { statement: list, values } = PAGE(filter);
  const [items, [count]] = await Promise.all([
    db.read(list, [...values, page.size, page.offset]),
    db.read(TOTAL(filter).statement, values),
  ]);
  return { items, total: count?.total ?? 0 };
}

export type Subscriber = Pick<SubscriptionRow, "id" | "kpi_id" | "callback_url" | "secret" | "retry_num" | "team_name">;

const SUBSCRIBERS = statement<Subscriber>(
  "webhooks.subscription.of_kpis",
  `select s.id, s.kpi_id, s.callback_url, s.secret, s.retry_num, s.team_name from ${TABLE} s
   where s.kpi_id = any($1::text[]) and s.status = '1'`,
);

/** The enabled subscriptions of these KPIs, by id. Sorted here, because `order by` could make Postgres read the whole table by id. */
export async function subscribersOf(db: Queryable, kpiIds: readonly string[]): Promise<Subscriber[]> {
  return (await db.rows(SUBSCRIBERS, [kpiIds])).toSorted((a, b) => a.id - b.id);
}

export interface TargetRow {
  id: number;
  callback_url: string;
  team_name: string;
  secret: string | null;
  signing_key: string;
  /** Null once it no longer signs. */
  previous_key: string | null;
}

const target = (where: string) => `select s.id, s.callback_url, s.team_name, s.secret, e.signing_key,
          case when e.previous_until > now() then e.previous_key end as previous_key
   from ${TABLE} s join webhooks.endpoint e on e.callback_url = s.callback_url and e.team_name = s.team_name
   where ${where} order by s.id`;
const ENABLED_TARGETS = statement<TargetRow>(
  "webhooks.subscription.targets",
  target("s.id = any($1::int4[]) and s.status = '1'"),
);
const TARGET = statement<TargetRow>("webhooks.subscription.target", target("s.id = $1"));

/** The targets of those subscriptions that are enabled. */
export async function enabledTargets(db: Queryable, ids: readonly number[]): Promise<TargetRow[]> {
  return ids.length === 0 ? [] : db.rows(ENABLED_TARGETS, [ids]);
}

/** The same for one, enabled or not. */
export async function targetRow(db: Queryable, id: number): Promise<TargetRow | undefined> {
  return (await db.rows(TARGET, [id]))[0];
}
