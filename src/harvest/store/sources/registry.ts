/** SQL of the registry: sources, their endpoints, credentials and schedules, and the dictionary. */
import { toArrays, unnest } from "../../../kernel/data/batch.ts";
import type { Db, Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import { CFG_TABLE_NAMES, type CfgTable } from "../../definition/tables.ts";

export interface SourceWrite {
  provenance_code: string;
  name: string;
  description: string;
  base_url: string;
  base_url_override: string | null;
  defaults: object;
}
export interface EndpointWrite {
  endpoint_name: string;
  role_code: string;
  http_method: string;
  path_template: string;
  is_default: boolean;
  requires_auth: boolean;
  detail_endpoint: string | null;
  overrides: object;
  /** Null where the endpoint says nothing. */
  cfg: Record<CfgTable, object | null>;
  params: { param_name: string; cfg: object }[];
}
export interface CredentialWrite {
  credential_name: string;
  kind: "env" | "secret";
  reference: string;
}
export interface ScheduleWrite {
  schedule_name: string;
  endpoint_name: string;
  operation_code: string;
  cron: string;
  time_zone: string;
  params: object;
  priority: number | null;
}

/** Everything that a definition says about a source. */
export interface SourceParts {
  source: SourceWrite;
  endpoints: EndpointWrite[];
  credentials: CredentialWrite[];
  schedules: ScheduleWrite[];
}

export interface SourceRow extends SourceWrite {
  revision: number;
  created_at: Date;
  updated_at: Date;
  updated_by: string;
}
/** A source as it is stored, without the endpoints that were removed. */
export interface StoredSource extends SourceRow {
  endpoints: (EndpointWrite & { endpoint_id: number })[];
  credentials: CredentialWrite[];
  schedules: ScheduleWrite[];
}

const SOURCE = `p.provenance_code, p.name, p.description, p.base_url, p.base_url_override, p.defaults, p.revision,
          p.created_at, p.updated_at, p.updated_by`;
const CFGS = CFG_TABLE_NAMES.map(
  (table) => `'${table}', (select c.cfg from harvest.${table} c where c.endpoint_id = e.endpoint_id)`,
).join(", ");
// One statement, so that a reader never sees half of a change.
const FIND = statement<StoredSource>(
  "harvest.registry.find",
  `select ${SOURCE},
     (select coalesce(json_agg(json_build_object(
               'endpoint_id', e.endpoint_id, 'endpoint_name', e.endpoint_name, 'role_code', e.role_code,
               'http_method', e.http_method, 'path_template', e.path_template, 'is_default', e.is_default,
               'requires_auth', e.requires_auth, 'detail_endpoint', e.detail_endpoint, 'overrides', e.overrides,
               'cfg', json_build_object(${CFGS}),
               'params', (select coalesce(json_agg(json_build_object('param_name', m.param_name, 'cfg', m.cfg)
                                                   order by m.param_no), '[]')
                          from harvest.reg_prov_api_param_map m where m.endpoint_id = e.endpoint_id)
             ) order by e.endpoint_id), '[]')
      from harvest.reg_prov_endpoint_def e
      where e.provenance_code = p.provenance_code and e.removed_at is null) as endpoints,
     (select coalesce(json_agg(json_build_object(
               'credential_name', c.credential_name, 'kind', c.kind, 'reference', c.reference) order by c.credential_id), '[]')
      from harvest.reg_prov_credential c where c.provenance_code = p.provenance_code) as credentials,
     (select coalesce(json_agg(json_build_object(
               'schedule_name', s.schedule_name, 'endpoint_name', s.endpoint_name, 'operation_code', s.operation_code,
               'cron', s.cron, 'time_zone', s.time_zone, 'params', s.params, 'priority', s.priority)
             order by s.schedule_id), '[]')
      from harvest.ing_schedule s where s.provenance_code = p.provenance_code) as schedules
   from harvest.reg_provenance p where p.provenance_code = $1`,
);

export async function findSource(db: Queryable, source: string): Promise<StoredSource | undefined> {
  return (await db.rows(FIND, [source]))[0];
}

const LOCK = statement(
  "harvest.registry.lock",
  "select pg_advisory_xact_lock(hashtextextended('harvest.source ' || $1, 0))",
);

/** Serialises the changes of a source, also of one that does not exist yet. */
export async function lockSource(tx: Queryable, source: string): Promise<void> {
  await tx.rows(LOCK, [source]);
}

const UPSERT_SOURCE = statement<{ revision: number }>(
  "harvest.registry.upsert_source",
  `insert into harvest.reg_provenance as p
     (provenance_code, name, description, base_url, base_url_override, defaults, updated_by)
   values ($1, $2, $3, $4, $5, $6::jsonb, $7)
   on conflict (provenance_code) do update
   set name = excluded.name, description = excluded.description, base_url = excluded.base_url,
       base_url_override = excluded.base_url_override, defaults = excluded.defaults, updated_by = excluded.updated_by,
       updated_at = now(), revision = p.revision + 1
   returning revision`,
);

const ENDPOINT = {
  endpoint_name: "text",
  role_code: "text",
  http_method: "text",
  path_template: "text",
  is_default: "boolean",
  requires_auth: "boolean",
  detail_endpoint: "text",
  overrides: "jsonb",
};
const ENDPOINT_NAMES = Object.keys(ENDPOINT);
const UPSERT_ENDPOINTS = statement<{ endpoint_id: number; endpoint_name: string }>(
  "harvest.registry.upsert_endpoints",
  `insert into harvest.reg_prov_endpoint_def (provenance_code, ${ENDPOINT_NAMES.join(", ")})
   select $1, ${ENDPOINT_NAMES.map((name) => `i.${name}`).join(", ")} from ${unnest(ENDPOINT, "i", 2)}
   on conflict (provenance_code, endpoint_name) do update
   set ${ENDPOINT_NAMES.slice(1)
     .map((name) => `${name} = excluded.${name}`)
     .join(", ")}, removed_at = null
   returning endpoint_id, endpoint_name`,
);
const REMOVE_ENDPOINTS = statement(
  "harvest.registry.remove_endpoints",
  `update harvest.reg_prov_endpoint_def set removed_at = now()
   where provenance_code = $1 and removed_at is null and endpoint_name <> all($2::text[])`,
);

const CFG = { endpoint_id: "integer", cfg: "jsonb" };
const PARAM = { endpoint_id: "integer", param_no: "integer", param_name: "text", cfg: "jsonb" };
const CFG_WRITES = CFG_TABLE_NAMES.map((table) => ({
  table,
  clear: statement(
    `harvest.registry.clear_${table}`,
    `delete from harvest.${table} where endpoint_id = any($1::integer[])`,
  ),
  insert: statement(
    `harvest.registry.insert_${table}`,
    `insert into harvest.${table} (endpoint_id, cfg) select i.endpoint_id, i.cfg from ${unnest(CFG, "i")}`,
  ),
}));
const CLEAR_PARAMS = statement(
  "harvest.registry.clear_params",
  "delete from harvest.reg_prov_api_param_map where endpoint_id = any($1::integer[])",
);
const INSERT_PARAMS = statement(
  "harvest.registry.insert_params",
  `insert into harvest.reg_prov_api_param_map (endpoint_id, param_no, param_name, cfg)
   select i.endpoint_id, i.param_no, i.param_name, i.cfg from ${unnest(PARAM, "i")}`,
);

const CREDENTIAL = { credential_name: "text", kind: "text", reference: "text" };
// A kept credential keeps its version: the value may be the same under another reference.
const UPSERT_CREDENTIALS = statement(
  "harvest.registry.upsert_credentials",
  `insert into harvest.reg_prov_credential (provenance_code, credential_name, kind, reference)
   select $1, i.credential_name, i.kind, i.reference from ${unnest(CREDENTIAL, "i", 2)}
   on conflict (provenance_code, credential_name) do update set kind = excluded.kind, reference = excluded.reference`,
);
const REMOVE_CREDENTIALS = statement(
  "harvest.registry.remove_credentials",
  "delete from harvest.reg_prov_credential where provenance_code = $1 and credential_name <> all($2::text[])",
);

const SCHEDULE = {
  schedule_name: "text",
  endpoint_name: "text",
  operation_code: "text",
  cron: "text",
  time_zone: "text",
  params: "jsonb",
  priority: "integer",
  next_at: "timestamptz",
};
const SCHEDULE_NAMES = Object.keys(SCHEDULE);
// A schedule that fires at the same times as before keeps its next fire, and so does not skip one that is due.
const UPSERT_SCHEDULES = statement(
  "harvest.registry.upsert_schedules",
  `insert into harvest.ing_schedule as s (provenance_code, ${SCHEDULE_NAMES.join(", ")})
   select $1, ${SCHEDULE_NAMES.map((name) => `i.${name}`).join(", ")} from ${unnest(SCHEDULE, "i", 2)}
   on conflict (provenance_code, schedule_name) do update
   set endpoint_name = excluded.endpoint_name, operation_code = excluded.operation_code, params = excluded.params,
       priority = excluded.priority, cron = excluded.cron, time_zone = excluded.time_zone,
       next_at = case when (s.cron, s.time_zone) = (excluded.cron, excluded.time_zone) then s.next_at else excluded.next_at end`,
);
const REMOVE_SCHEDULES = statement(
  "harvest.registry.remove_schedules",
  "delete from harvest.ing_schedule where provenance_code = $1 and schedule_name <> all($2::text[])",
);

/** Writes a whole source, in a transaction that holds its lock. Returns its revision. */
export async function writeSource(
  tx: Queryable,
  { source, endpoints, credentials, schedules }: SourceParts,
  { by, nextAt }: { by: string; nextAt(schedule: ScheduleWrite): Date | null },
): Promise<number> {
  const code = source.provenance_code;
  const [row] = await tx.rows(UPSERT_SOURCE, [
    code,
    source.name,
    source.description,
    source.base_url,
    source.base_url_override,
    JSON.stringify(source.defaults),
    by,
  ]);
  const kept = await tx.rows(UPSERT_ENDPOINTS, [code, ...toArrays(ENDPOINT, endpoints)]);
  const idOf = new Map(kept.map(({ endpoint_name, endpoint_id }) => [endpoint_name, endpoint_id]));
  const withIds = endpoints.map((endpoint) => ({ ...endpoint, endpoint_id: idOf.get(endpoint.endpoint_name) }));
  const ids = [...idOf.values()];
  const timed = schedules.map((schedule) => ({ ...schedule, next_at: nextAt(schedule) }));
  await Promise.all([
    tx.rows(REMOVE_ENDPOINTS, [code, endpoints.map(({ endpoint_name }) => endpoint_name)]),
    ...CFG_WRITES.flatMap(({ table, clear, insert }) => {
      const rows = withIds.flatMap(({ endpoint_id, cfg }) => (cfg[table] ? [{ endpoint_id, cfg: cfg[table] }] : []));
      return [tx.rows(clear, [ids]), tx.rows(insert, toArrays(CFG, rows))];
    }),
    tx.rows(CLEAR_PARAMS, [ids]),
    tx.rows(
      INSERT_PARAMS,
      toArrays(
        PARAM,
        withIds.flatMap(({ endpoint_id, params }) =>
          params.map((param, param_no) => ({ endpoint_id, param_no, ...param })),
        ),
      ),
    ),
    tx.rows(UPSERT_CREDENTIALS, [code, ...toArrays(CREDENTIAL, credentials)]),
    tx.rows(REMOVE_CREDENTIALS, [code, credentials.map(({ credential_name }) => credential_name)]),
    tx.rows(UPSERT_SCHEDULES, [code, ...toArrays(SCHEDULE, timed)]),
    tx.rows(REMOVE_SCHEDULES, [code, schedules.map(({ schedule_name }) => schedule_name)]),
  ]);
  if (!row) throw new Error(`source ${code} was not written`);
  return row.revision;
}

const DELETE = statement("harvest.registry.delete", "delete from harvest.reg_provenance where provenance_code = $1");

/** With all that belongs to it. Fails where a plan refers to one of its endpoints. */
export async function deleteSource(tx: Queryable, source: string): Promise<void> {
  await tx.rows(DELETE, [source]);
}

export interface SourceSummary extends SourceRow {
  endpoints: number;
  schedules: number;
}
const FILTER = "$1::text is null or strpos(lower(p.name), lower($1)) > 0 or strpos(p.provenance_code, lower($1)) > 0";
const LIST = statement<SourceSummary>(
  "harvest.registry.list",
  `select ${SOURCE},
     (select count(*)::int from harvest.reg_prov_endpoint_def e
      where e.provenance_code = p.provenance_code and e.removed_at is null) as endpoints,
     (select count(*)::int from harvest.ing_schedule s where s.provenance_code = p.provenance_code) as schedules
   from harvest.reg_provenance p where ${FILTER} order by p.provenance_code limit $2 offset $3`,
);
const COUNT = statement<{ total: number }>(
  "harvest.registry.count",
  `select count(*)::int as total from harvest.reg_provenance p where ${FILTER}`,
);

export async function listSources(db: Db, { q, size, offset }: { q: string | null; size: number; offset: number }) {
  const [items, [counted]] = await Promise.all([db.read(LIST, [q, size, offset]), db.read(COUNT, [q])]);
  return { items, total: counted?.total ?? 0 };
}

const NAMES_READ_MAX = 10_000;
const NAMES = statement<{ provenance_code: string }>(
  "harvest.registry.names",
  `select provenance_code from harvest.reg_provenance order by provenance_code limit ${NAMES_READ_MAX}`,
);

/** The names of sources, to find a similar one. */
export async function sourceNames(db: Queryable): Promise<string[]> {
  return (await db.rows(NAMES)).map(({ provenance_code }) => provenance_code);
}

const LANDING = statement<{ provenance_code: string; landing_table: string }>(
  "harvest.registry.landing",
  `select distinct provenance_code, landing_table from (
     select p.provenance_code, p.defaults -> 'landing' ->> 'table' as landing_table from harvest.reg_provenance p
     union all
     select e.provenance_code, coalesce(b.cfg -> 'landing' ->> 'table', e.overrides -> 'landing' ->> 'table')
     from harvest.reg_prov_endpoint_def e left join harvest.reg_prov_batching_cfg b using (endpoint_id)
     where e.removed_at is null) declared
   where lower(landing_table) = any($2::text[]) and provenance_code <> $1`,
);

/** Other sources that land in one of these tables. Engines do not tell capital letters from small ones. */
export function landingElsewhere(db: Queryable, source: string, tables: readonly string[]) {
  return db.rows(LANDING, [source, tables.map((table) => table.toLowerCase())]);
}

export interface DictionaryRow {
  type_code: string;
  description: string;
  items: { code: string; description: string; aliases: string[] }[];
}
const DICTIONARY = statement<DictionaryRow>(
  "harvest.registry.dictionary",
  `select t.type_code, t.description,
     (select coalesce(json_agg(json_build_object('code', i.item_code, 'description', i.description, 'aliases',
               (select coalesce(json_agg(a.alias_code order by a.alias_code), '[]') from harvest.sys_dict_item_alias a
                where a.type_code = i.type_code and a.item_code = i.item_code)) order by i.item_code), '[]')
      from harvest.sys_dict_item i where i.type_code = t.type_code) as items
   from harvest.sys_dict_type t order by t.type_code`,
);

export function readDictionary(db: Queryable): Promise<DictionaryRow[]> {
  return db.rows(DICTIONARY);
}
