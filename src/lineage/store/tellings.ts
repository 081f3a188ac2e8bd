/** Tellings: what events tell, apart from when it was, and which assets they name. */
import { itemsByKey, toArrays, unnest } from "../../kernel/data/batch.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Source } from "../extract/index.ts";

export interface KnownTelling {
  key: string;
  in_full: boolean;
  overtaken: boolean;
  /** The statement or job that it tells of. */
  process_id: string | null;
}
const SEEN = { key: "uuid", at: "int8" };
// Told again of a time before something that it names was dropped or renamed, it may tell of what there was before. Endings
// are known by the names that tables go by, so other names are followed to these.
const KNOWN = statement<KnownTelling>(
  "lineage.known_tellings",
  `select t.key, t.in_full, t.process_id::text, i.at < t.last_at and exists (
       with recursive named(key) as (
         select m.key from lineage.mention m where m.tenant_id = $3 and m.telling = t.key
         union
         select a.to_key from named n join lineage.alias a on a.tenant_id = $3 and a.key = n.key
       )
       select from named n join lineage.ending e on e.tenant_id = $3 and e.subject = n.key where e.at > i.at
     ) as overtaken
   from ${itemsByKey({ key: SEEN.key }, { at: SEEN.at })} join lineage.telling t on t.tenant_id = $3 and t.key = i.key`,
);
/** Each key once, with the earliest time at which it is told now. Those that are not in the answer were never told. */
export async function knownTellings(
  tx: Queryable,
  tenantId: string,
  told: readonly { key: string; at: number }[],
): Promise<KnownTelling[]> {
  return told.length > 0 ? tx.rows(KNOWN, [...toArrays(SEEN, told), tenantId]) : [];
}

const TOLD = { key: "uuid", last_at: "int8" };
// Guarded, so that a row that would stay as it is leaves no dead one behind.
const TELL = statement(
  "lineage.tell_again",
  `update lineage.telling t set last_at = i.last_at
   from ${itemsByKey({ key: TOLD.key }, { last_at: TOLD.last_at })}
   where t.tenant_id = $3 and t.key = i.key and t.last_at < i.last_at`,
);
/** Notes that they were told again. Each key once. */
export async function tellAgain(
  tx: Queryable,
  tenantId: string,
  told: readonly { key: string; last_at: number }[],
): Promise<void> {
  if (told.length > 0) await tx.rows(TELL, [...toArrays(TOLD, told), tenantId]);
}

export interface NewTelling {
  key: string;
  last_at: number;
  in_full: boolean;
  event: string;
  source: Source;
  baseline: boolean;
}
const NEW = { key: "uuid", last_at: "int8", in_full: "bool", event: "text", source: "text", baseline: "bool" };
const ADD = statement(
  "lineage.add_tellings",
  `with items as (select * from ${unnest(NEW, "i")}), told as (
     insert into lineage.telling (tenant_id, key, last_at, in_full) select $7::int8, key, last_at, in_full from items
   )
   insert into lineage.telling_event (tenant_id, key, event, source, baseline)
   select $7::int8, key, event::json, source, baseline from items`,
);
export async function addTellings(tx: Queryable, tenantId: string, tellings: readonly NewTelling[]): Promise<void> {
  if (tellings.length > 0) await tx.rows(ADD, [...toArrays(NEW, tellings), tenantId]);
}

const MENTION = { key: "uuid", telling: "uuid" };
const ADD_MENTIONS = statement(
  "lineage.add_mentions",
  `insert into lineage.mention (tenant_id, key, telling) select $3::int8, i.key, i.telling from ${itemsByKey(MENTION)}
   on conflict do nothing`,
);
export async function addMentions(
  tx: Queryable,
  tenantId: string,
  mentions: readonly { key: string; telling: string }[],
): Promise<void> {
  if (mentions.length > 0) await tx.rows(ADD_MENTIONS, [...toArrays(MENTION, mentions), tenantId]);
}

const NAMING = statement<{ telling: string; last_at: string }>(
  "lineage.tellings_naming",
  `select distinct t.key as telling, t.last_at::text
   from lineage.mention m join lineage.telling t on t.tenant_id = m.tenant_id and t.key = m.telling
   where m.tenant_id = $1 and m.key = any($2::uuid[])`,
);
export const tellingsNaming = (tx: Queryable, tenantId: string, keys: readonly string[]) =>
  tx.rows(NAMING, [tenantId, keys]);

const SET_IN_FULL = statement(
  "lineage.set_in_full",
  `update lineage.telling t set in_full = $3 where t.tenant_id = $1 and t.key = any($2::uuid[]) and t.in_full <> $3`,
);
export async function setInFull(tx: Queryable, tenantId: string, keys: readonly string[], inFull: boolean) {
  if (keys.length > 0) await tx.rows(SET_IN_FULL, [tenantId, keys, inFull]);
}

const SET_PROCESS = statement(
  "lineage.set_process",
  `update lineage.telling t set process_id = i.process_id from ${itemsByKey({ key: "uuid" }, { process_id: "int8" })}
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

export interface StoredTelling {
  key: string;
  event: unknown;
  source: Source;
  baseline: boolean;
}
const READ = statement<StoredTelling>(
  "lineage.read_tellings",
  `select key, event, source, baseline from lineage.telling_event where tenant_id = $1 and key = any($2::uuid[])`,
);
export const readTellings = (tx: Queryable, tenantId: string, keys: readonly string[]): Promise<StoredTelling[]> =>
  tx.rows(READ, [tenantId, keys]);

const AT = "(extract(epoch from e.event_time) * 1000000)::int8";
// One look at the index for each telling and stretch: how often it was told within does not matter.
const LATEST = statement<{ telling: string; at: string }>(
  "lineage.latest_within",
  `select t.key as telling, e.at::text
   from unnest($2::uuid[]) as t(key)
   cross join unnest($3::timestamptz[], $4::timestamptz[]) as s(since, before)
   cross join lateral (
     select ${AT} as at from lineage.lineage_events e
     where e.tenant_id = $1 and e.telling = t.key and e.event_time >= s.since and e.event_time < s.before
     order by e.event_time desc limit 1
   ) e`,
);
/** When each telling was told for the last time within each stretch of time; stretches are ISO times. */
export const latestWithin = (
  tx: Queryable,
  tenantId: string,
  tellings: readonly string[],
  stretches: readonly { since: string; before: string }[],
) => tx.rows(LATEST, [tenantId, tellings, stretches.map(({ since }) => since), stretches.map(({ before }) => before)]);

const REMEMBER = statement(
  "lineage.remember_times",
  `insert into lineage.telling_time (tenant_id, key, at)
   select $1::int8, t.key, e.at
   from unnest($2::uuid[]) as t(key)
   cross join lateral (
     select ${AT} as at from lineage.lineage_events e
     where e.tenant_id = $1 and e.telling = t.key and e.event_time < $3
     order by e.event_time desc limit 1
   ) e
   on conflict do nothing`,
);
/** Keeps the last time before `before`, an ISO time, at which each was told. */
export async function rememberTimes(tx: Queryable, tenantId: string, tellings: readonly string[], before: string) {
  if (tellings.length > 0) await tx.rows(REMEMBER, [tenantId, tellings, before]);
}

const TIME = { key: "uuid", at: "int8" };
const ADD_TIMES = statement(
  "lineage.add_times",
  `insert into lineage.telling_time (tenant_id, key, at)
   select $3::int8, i.key, i.at from ${itemsByKey(TIME)}
   join lineage.telling t on t.tenant_id = $3 and t.key = i.key and i.at < t.last_at
   on conflict do nothing`,
);
/** Keeps the times of those that are told late: their last time says nothing of this one. */
export async function addTimes(tx: Queryable, tenantId: string, times: readonly { key: string; at: number }[]) {
  if (times.length > 0) await tx.rows(ADD_TIMES, [...toArrays(TIME, times), tenantId]);
}

const TIMES = statement<{ key: string; at: string }>(
  "lineage.remembered_times",
  "select key, at::text from lineage.telling_time where tenant_id = $1 and key = any($2::uuid[])",
);
export const rememberedTimes = (tx: Queryable, tenantId: string, tellings: readonly string[]) =>
  tx.rows(TIMES, [tenantId, tellings]);
