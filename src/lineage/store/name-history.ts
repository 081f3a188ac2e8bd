/** SQL for endings (drops and renames) and aliases (symlinks) of names. */
import { itemsByKey, toArrays } from "../../kernel/data/batch.ts";
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Name } from "../graph/names.ts";
import type { Doubt, Ending } from "../graph/resolve.ts";

interface EndingRow {
  key: string;
  at: string;
  kind: Ending["kind"];
  to_path: string[] | null;
  columns: string[] | null;
  reported: boolean;
  doubt: Doubt | null;
}
const ENDINGS = statement<EndingRow>(
  "lineage.endings",
  `select e.key, e.at::text, e.kind, e.to_path, e.columns, coalesce(e.reported, false) as reported, e.doubt
   from lineage.ending e
   where e.tenant_id = $1 and e.key = any($2::uuid[]) order by e.at, e.kind, e.to_path`,
);
const ALIASES = statement<{ key: string; to_path: string[] }>(
  "lineage.aliases",
  "select key, to_path from lineage.alias where tenant_id = $1 and key = any($2::uuid[])",
);
export const endingsOf = (tx: Queryable, tenantId: string, keys: readonly string[]) =>
  tx.rows(ENDINGS, [tenantId, keys]);
export const aliasesOf = (tx: Queryable, tenantId: string, keys: readonly string[]) =>
  tx.rows(ALIASES, [tenantId, keys]);

export interface NewEnding {
  key: string;
  at: number;
  kind: Ending["kind"];
  name_kind: Name["kind"];
  path: readonly string[];
  to_path: readonly string[] | null;
  to_key: string | null;
  columns: readonly string[] | null;
  subject: string;
  /** Whether an engine reports it. Null for one of which that is not known. */
  reported: boolean | null;
  doubt: Doubt | null;
}
const ENDING_KEY = { key: "uuid", at: "int8", kind: "text" };
const ENDING_VALUES = {
  name_kind: "text",
  path: "jsonb",
  to_path: "jsonb",
  to_key: "uuid",
  columns: "jsonb",
  subject: "uuid",
  reported: "bool",
  doubt: "text",
};
// Paths travel as JSON: an array of arrays of different lengths is no Postgres array. Of two lists of one moment, what both name
// was there before it. A reported rename that Gravitino confirms has happened. Only a row that was inserted has no xmax.
const ADD_ENDINGS = statement<AddedEnding>(
  "lineage.add_endings",
  `insert into lineage.ending as e
     (tenant_id, key, at, kind, name_kind, path, to_path, to_key, columns, subject, reported, doubt)
   select $12::int8, i.key, i.at, i.kind, i.name_kind, ${texts("i.path")}, ${texts("i.to_path")}, i.to_key,
          ${texts("i.columns")}, i.subject, i.reported, i.doubt
   from ${itemsByKey(ENDING_KEY, ENDING_VALUES)}
   on conflict (tenant_id, key, at, kind, to_key) do update
   set columns = case when e.kind = 'listed'
                      then array(select unnest(e.columns) intersect select unnest(excluded.columns)) end,
       reported = excluded.reported, doubt = case when excluded.reported then e.doubt end
   where case when e.kind = 'listed' then not e.columns <@ excluded.columns
              when e.reported is null then excluded.reported
              else e.reported and not excluded.reported end
   returning e.key, e.at::text, e.kind, e.to_key, e.xmax = 0 as inserted`,
);
function texts(json: string): string {
  return `case when ${json} is not null then array(select jsonb_array_elements_text(${json})) end`;
}
export interface AddedEnding {
  key: string;
  at: string;
  kind: Ending["kind"];
  to_key: string | null;
  /** False for one that was known and has changed. */
  inserted: boolean;
}
/** Those that were not known yet, or say something else now. */
export async function addEndings(
  tx: Queryable,
  tenantId: string,
  endings: readonly NewEnding[],
): Promise<AddedEnding[]> {
  const each = new Map<string, NewEnding>();
  for (const ending of endings) {
    const id = endingId(ending);
    const known = each.get(id);
    const columns = known?.columns?.filter((column) => ending.columns?.includes(column)) ?? ending.columns;
    each.set(id, { ...(known && !known.reported ? known : ending), columns });
  }
  if (each.size === 0) return [];
  const items = toArrays({ ...ENDING_KEY, ...ENDING_VALUES }, [...each.values()]);
  return tx.rows(ADD_ENDINGS, [...items, tenantId]);
}
export const endingId = ({ key, at, kind, to_key }: EndingKey): string => `${key} ${at} ${kind} ${to_key}`;
/** Times of rows are text, those of facts are numbers. */
interface EndingKey {
  key: string;
  at: string | number;
  kind: Ending["kind"];
  to_key: string | null;
}

const CONTESTED = statement<{ key: string; at: string }>(
  "lineage.contested_renames",
  `select e.key, e.at::text from lineage.ending e
   where e.tenant_id = $1 and e.key = any($2::uuid[]) and e.kind = 'renamed' and e.doubt is null
   group by e.key, e.at having count(*) > 1`,
);
/** Of the names with these keys: when one was given two others at one moment. */
export const contestedRenames = (tx: Queryable, tenantId: string, keys: readonly string[]) =>
  keys.length === 0 ? Promise.resolve([]) : tx.rows(CONTESTED, [tenantId, keys]);

export interface NewAlias {
  key: string;
  to_path: readonly string[];
  to_key: string;
  at: number;
}
const ALIAS = { key: "uuid", to_path: "text", to_key: "uuid", at: "int8" };
// The earliest assertion of an alias holds: it is the one that later ones can change only by arriving late.
const ADD_ALIASES = statement<{ key: string; former: string | null }>(
  "lineage.add_aliases",
  `with known as (
     select a.key, a.to_key from lineage.alias a where a.tenant_id = $5 and a.key = any($1::uuid[])
   )
   insert into lineage.alias as a (tenant_id, key, to_path, to_key, at)
   select $5::int8, i.key, array(select jsonb_array_elements_text(i.to_path::jsonb)), i.to_key, i.at
   from ${itemsByKey({ key: "uuid" }, { to_path: "text", to_key: "uuid", at: "int8" })}
   on conflict (tenant_id, key) do update set to_path = excluded.to_path, to_key = excluded.to_key, at = excluded.at
   where (excluded.at, excluded.to_key) < (a.at, a.to_key)
   returning a.key, (select k.to_key::text from known k where k.key = a.key) as former`,
);
/** Those that are new or have changed, with what they stood for before. */
export async function addAliases(
  tx: Queryable,
  tenantId: string,
  aliases: readonly NewAlias[],
): Promise<{ key: string; former: string | null }[]> {
  if (aliases.length === 0) return [];
  const items = aliases.map((one) => ({ ...one, to_path: JSON.stringify(one.to_path) }));
  return tx.rows(ADD_ALIASES, [...toArrays(ALIAS, items), tenantId]);
}

export interface TakenEnding {
  at: string;
  kind: Ending["kind"];
  name_kind: Name["kind"];
  path: string[];
  to_path: string[] | null;
  columns: string[] | null;
  subject: string;
  reported: boolean | null;
  doubt: Doubt | null;
}
const TAKE_ENDINGS = statement<TakenEnding>(
  "lineage.take_endings",
  `delete from lineage.ending e where e.tenant_id = $1 and e.subject = any($2::uuid[])
   returning e.at::text, e.kind, e.name_kind, e.path, e.to_path, e.columns, e.subject, e.reported, e.doubt`,
);
/** Takes away what is known of these and of what belongs to them, to be written under another name. */
export const takeEndings = (tx: Queryable, tenantId: string, subjects: readonly string[]): Promise<TakenEnding[]> =>
  subjects.length === 0 ? Promise.resolve([]) : tx.rows(TAKE_ENDINGS, [tenantId, subjects]);

const RENAMES = statement<{ at: string }>(
  "lineage.times_of_renames",
  `select distinct e.at::text from lineage.ending e
   where e.tenant_id = $1 and e.subject = any($2::uuid[]) and e.kind = 'renamed'`,
);
/** When these, or anything that belongs to them, got another name. */
export async function timesOfRenames(tx: Queryable, tenantId: string, subjects: readonly string[]): Promise<number[]> {
  return (await tx.rows(RENAMES, [tenantId, subjects])).map(({ at }) => Number(at));
}

const HAS_REPORTED = statement<{ yes: boolean }>(
  "lineage.has_reported_renames",
  "select exists (select from lineage.ending e where e.tenant_id = $1 and e.reported and e.at >= $2) as yes",
);
/** Whether engines have reported a rename of this time, in microseconds, or of a later one. Most tenants have none. */
export const hasReportedRenames = async (tx: Queryable, tenantId: string, since: number): Promise<boolean> =>
  (await tx.rows(HAS_REPORTED, [tenantId, since]))[0]?.yes ?? false;

export interface ReportedRename {
  key: string;
  at: string;
  path: string[];
  to_key: string;
  to_path: string[];
  doubt: Doubt | null;
}
const REPORTED = statement<ReportedRename>(
  "lineage.reported_renames",
  `select e.key, e.at::text, e.path, e.to_key, e.to_path, e.doubt from lineage.ending e
   where e.tenant_id = $1 and e.reported and e.kind = 'renamed'
     and (e.key = any($2::uuid[]) or e.to_key = any($2::uuid[])) order by e.at, e.key, e.to_key`,
);
/** From or to a name with one of these keys, in the order of time. */
export const reportedRenames = (tx: Queryable, tenantId: string, keys: readonly string[]): Promise<ReportedRename[]> =>
  tx.rows(REPORTED, [tenantId, keys]);

const DOUBT_KEY = { key: "uuid", at: "int8" };
const DOUBT_VALUES = { kind: "text", to_key: "uuid", doubt: "text" };
const SET_DOUBTS = statement(
  "lineage.set_doubts",
  `update lineage.ending e set doubt = i.doubt from ${itemsByKey(DOUBT_KEY, DOUBT_VALUES)}
   where e.tenant_id = $6 and e.key = i.key and e.at = i.at and e.kind = i.kind and e.to_key is not distinct from i.to_key
     and e.reported and e.doubt is distinct from i.doubt`,
);
export async function setDoubts(
  tx: Queryable,
  tenantId: string,
  doubts: readonly Pick<NewEnding, "key" | "at" | "kind" | "to_key" | "doubt">[],
): Promise<void> {
  if (doubts.length > 0) await tx.rows(SET_DOUBTS, [...toArrays({ ...DOUBT_KEY, ...DOUBT_VALUES }, doubts), tenantId]);
}

const BESIDE = statement<{ key: string }>(
  "lineage.names_beside",
  `select e.key from lineage.ending e where e.tenant_id = $1 and e.to_key = any($2::uuid[])
   union
   select a.key from lineage.alias a where a.tenant_id = $1 and a.to_key = any($2::uuid[])
   union
   select e.to_key from lineage.ending e where e.tenant_id = $1 and e.key = any($2::uuid[]) and e.to_key is not null
   union
   select a.to_key from lineage.alias a where a.tenant_id = $1 and a.key = any($2::uuid[])`,
);
/** The keys of the names that one rename or alias leads from, or to. */
export async function namesBeside(tx: Queryable, tenantId: string, keys: readonly string[]): Promise<string[]> {
  return (await tx.rows(BESIDE, [tenantId, keys])).map(({ key }) => key);
}
