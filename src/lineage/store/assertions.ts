/** SQL for assertions, their times, and the assets that they mention. */
import { itemsByKey, toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Source } from "../extract/index.ts";

export interface KnownAssertion {
  key: string;
  in_full: boolean;
  overtaken: boolean;
  /** The statement or job whose executions its events count. */
  process_id: string | null;
}
const SEEN = { key: "uuid", at: "int8" };
// An event older than the last one may mean another asset, if something that it names was dropped or renamed after it. Endings
// are stored under the names of tables, so aliases are followed to these.
const KNOWN = statement<KnownAssertion>(
  "lineage.known_assertions",
  `select t.key, t.in_full, t.process_id::text, i.at < t.last_at and exists (
       with recursive named(key) as (
         select m.key from lineage.mention m where m.tenant_id = $3 and m.assertion = t.key
         union
         select a.to_key from named n join lineage.alias a on a.tenant_id = $3 and a.key = n.key
       )
       select from named n join lineage.ending e on e.tenant_id = $3 and e.subject = n.key where e.at > i.at
     ) as overtaken
   from ${itemsByKey({ key: SEEN.key }, { at: SEEN.at })} join lineage.assertion t on t.tenant_id = $3 and t.key = i.key`,
);
/** Each key once, with the earliest time of its events. Returns those that are known. */
export async function knownAssertions(
  tx: Queryable,
  tenantId: string,
  assertions: readonly { key: string; at: number }[],
): Promise<KnownAssertion[]> {
  return assertions.length > 0 ? tx.rows(KNOWN, [...toArrays(SEEN, assertions), tenantId]) : [];
}

const TOUCHED = { key: "uuid", last_at: "int8" };
// Guarded, because an update that changes nothing still leaves a dead row.
const TOUCH = statement(
  "lineage.touch_assertions",
  `update lineage.assertion t set last_at = i.last_at
   from ${itemsByKey({ key: TOUCHED.key }, { last_at: TOUCHED.last_at })}
   where t.tenant_id = $3 and t.key = i.key and t.last_at < i.last_at`,
);
/** Raises the last time of known assertions. Each key once. */
export async function touchAssertions(
  tx: Queryable,
  tenantId: string,
  assertions: readonly { key: string; last_at: number }[],
): Promise<void> {
  if (assertions.length > 0) await tx.rows(TOUCH, [...toArrays(TOUCHED, assertions), tenantId]);
}

export interface NewAssertion {
  key: string;
  last_at: number;
  in_full: boolean;
  event: string;
  source: Source;
  baseline: boolean;
}
const NEW = { key: "uuid", last_at: "int8", in_full: "bool", event: "text", source: "text", baseline: "bool" };
const ADD = statement(
  "lineage.add_assertions",
  `with items as (select * from ${unnest(NEW, "i")}), assertions as (
     insert into lineage.assertion (tenant_id, key, last_at, in_full) select $7::int8, key, last_at, in_full from items
   )
   insert into lineage.assertion_event (tenant_id, key, event, source, baseline)
   select $7::int8, key, event::json, source, baseline from items`,
);
export async function addAssertions(
  tx: Queryable,
  tenantId: string,
  assertions: readonly NewAssertion[],
): Promise<void> {
  if (assertions.length > 0) await tx.rows(ADD, [...toArrays(NEW, assertions), tenantId]);
}

const MENTION = { key: "uuid", assertion: "uuid" };
const ADD_MENTIONS = statement(
  "lineage.add_mentions",
  `insert into lineage.mention (tenant_id, key, assertion) select $3::int8, i.key, i.assertion from ${itemsByKey(MENTION)}
   on conflict do nothing`,
);
export async function addMentions(
  tx: Queryable,
  tenantId: string,
  mentions: readonly { key: string; assertion: string }[],
): Promise<void> {
  if (mentions.length > 0) await tx.rows(ADD_MENTIONS, [...toArrays(MENTION, mentions), tenantId]);
}

const NAMING = statement<{ assertion: string; last_at: string }>(
  "lineage.assertions_naming",
  `select distinct t.key as assertion, t.last_at::text
   from lineage.mention m join lineage.assertion t on t.tenant_id = m.tenant_id and t.key = m.assertion
   where m.tenant_id = $1 and m.key = any($2::uuid[])`,
);
export const assertionsNaming = (tx: Queryable, tenantId: string, keys: readonly string[]) =>
  tx.rows(NAMING, [tenantId, keys]);

const SET_IN_FULL = statement(
  "lineage.set_in_full",
  `update lineage.assertion t set in_full = $3 where t.tenant_id = $1 and t.key = any($2::uuid[]) and t.in_full <> $3`,
);
export async function setInFull(tx: Queryable, tenantId: string, keys: readonly string[], inFull: boolean) {
  if (keys.length > 0) await tx.rows(SET_IN_FULL, [tenantId, keys, inFull]);
}

const SET_PROCESS = statement(
  "lineage.set_process",
  `update lineage.assertion t set process_id = i.process_id from ${itemsByKey({ key: "uuid" }, { process_id: "int8" })}
   where t.tenant_id = $3 and t.key = i.key and t.process_id is distinct from i.process_id`,
);
export async function setProcess(
  tx: Queryable,
  tenantId: string,
  processes: readonly { key: string; process_id: string }[],
): Promise<void> {
  if (processes.length === 0) return;
  await tx.rows(SET_PROCESS, [...toArrays({ key: "uuid", process_id: "int8" }, processes), tenantId]);
}

export interface StoredAssertion {
  key: string;
  event: unknown;
  source: Source;
  baseline: boolean;
}
const READ = statement<StoredAssertion>(
  "lineage.read_assertions",
  `select key, event, source, baseline from lineage.assertion_event where tenant_id = $1 and key = any($2::uuid[])`,
);
export const readAssertions = (tx: Queryable, tenantId: string, keys: readonly string[]): Promise<StoredAssertion[]> =>
  tx.rows(READ, [tenantId, keys]);

const AT = "(extract(epoch from e.event_time) * 1000000)::int8";
// One index lookup for each assertion and period, however many events it has in the period.
const LATEST = statement<{ assertion: string; at: string }>(
  "lineage.latest_within",
  `select t.key as assertion, e.at::text
   from unnest($2::uuid[]) as t(key)
   cross join unnest($3::timestamptz[], $4::timestamptz[]) as s(since, before)
   cross join lateral (
     select ${AT} as at from lineage.lineage_events e
     where e.tenant_id = $1 and e.assertion = t.key and e.event_time >= s.since and e.event_time < s.before
     order by e.event_time desc limit 1
   ) e`,
);
/** The last time of each assertion in each period; periods are pairs of ISO times. */
export const latestWithin = (
  tx: Queryable,
  tenantId: string,
  assertions: readonly string[],
  periods: readonly { since: string; before: string }[],
) => tx.rows(LATEST, [tenantId, assertions, periods.map(({ since }) => since), periods.map(({ before }) => before)]);

const REMEMBER = statement(
  "lineage.remember_times",
  `insert into lineage.assertion_time (tenant_id, key, at)
   select $1::int8, t.key, e.at
   from unnest($2::uuid[]) as t(key)
   cross join lateral (
     select ${AT} as at from lineage.lineage_events e
     where e.tenant_id = $1 and e.assertion = t.key and e.event_time < $3
     order by e.event_time desc limit 1
   ) e
   on conflict do nothing`,
);
/** Stores the last time of each assertion before `before`, an ISO time. */
export async function rememberTimes(tx: Queryable, tenantId: string, assertions: readonly string[], before: string) {
  if (assertions.length > 0) await tx.rows(REMEMBER, [tenantId, assertions, before]);
}

const TIME = { key: "uuid", at: "int8" };
const ADD_TIMES = statement(
  "lineage.add_times",
  `insert into lineage.assertion_time (tenant_id, key, at)
   select $3::int8, i.key, i.at from ${itemsByKey(TIME)}
   join lineage.assertion t on t.tenant_id = $3 and t.key = i.key and i.at < t.last_at
   on conflict do nothing`,
);
/** Stores times that are earlier than the last one of their assertion. */
export async function addTimes(tx: Queryable, tenantId: string, times: readonly { key: string; at: number }[]) {
  if (times.length > 0) await tx.rows(ADD_TIMES, [...toArrays(TIME, times), tenantId]);
}

const TIMES = statement<{ key: string; at: string }>(
  "lineage.remembered_times",
  "select key, at::text from lineage.assertion_time where tenant_id = $1 and key = any($2::uuid[])",
);
export const rememberedTimes = (tx: Queryable, tenantId: string, assertions: readonly string[]) =>
  tx.rows(TIMES, [tenantId, assertions]);
