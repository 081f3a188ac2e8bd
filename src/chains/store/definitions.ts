/** SQL for the definitions of chains, their versions, and pools. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Dag } from "../definitions/dag.ts";
import type { RunStatus } from "../engine/states.ts";

export interface ChainRow {
  chain_id: string;
  name: string;
  description: string | null;
  enabled: boolean;
  version: number;
  dag: Dag;
  max_active_runs: number | null;
  run_timeout_ms: number | null;
  created_at: Date;
  updated_at: Date;
}

const COLUMNS = `chain_id, name, description, enabled, version::float8 as version, dag_json as dag, max_active_runs,
          run_timeout_ms::float8 as run_timeout_ms, created_at, updated_at`;

const VERSION_OF = (source: string) => `insert into chains.job_chain_version
       (chain_id, version, name, description, dag_json, created_by)
     select chain_id, version, name, description, dag_json, $1 from ${source}`;

const INSERT = statement<ChainRow>(
  "chains.definition.insert",
  `with made as (
     insert into chains.job_chain_definition
       (chain_id, name, description, enabled, dag_json, max_active_runs, run_timeout_ms)
     values ($2, $3, $4, $5, $6::jsonb, $7, $8)
     on conflict (name) do nothing
     returning *
   ), kept as (${VERSION_OF("made")})
   select ${COLUMNS} from made`,
);

export interface ChainWrite {
  chainId: string;
  name: string;
  description: string | null;
  dag: Dag;
  by: string;
}
interface ChainLimits {
  maxActiveRuns: number | null;
  runTimeoutMs: number | null;
}

/** Returns undefined when the name is taken. */
export async function insertChain(
  db: Queryable,
  chain: ChainWrite & ChainLimits & { enabled: boolean },
): Promise<ChainRow | undefined> {
  const { chainId, name, description, dag, maxActiveRuns, runTimeoutMs, by, enabled } = chain;
  const values = [by, chainId, name, description, enabled, JSON.stringify(dag), maxActiveRuns, runTimeoutMs];
  return (await db.rows(INSERT, values))[0];
}

const UPDATE = statement<ChainRow>(
  "chains.definition.update",
  `with made as (
     update chains.job_chain_definition
     set name = $3, description = $4, dag_json = $5::jsonb,
         max_active_runs = case when $6 then $7 else max_active_runs end,
         run_timeout_ms = case when $9 then $10 else run_timeout_ms end,
         version = version + 1, updated_at = now()
     where chain_id = $2 and version = $8
     returning *
   ), kept as (${VERSION_OF("made")})
   select ${COLUMNS} from made`,
);

/**
 * Limits that are not given stay as they are. Returns undefined when the chain is at another version. Throws a unique
 * violation when the name is taken.
 */
export async function updateChain(
  db: Queryable,
  chain: ChainWrite & { [Limit in keyof ChainLimits]?: ChainLimits[Limit] | undefined } & { version: number },
): Promise<ChainRow | undefined> {
  const { chainId, name, description, dag, maxActiveRuns: runs, runTimeoutMs: timeout, by, version } = chain;
  const limits = [runs !== undefined, runs ?? null, version, timeout !== undefined, timeout ?? null];
  return (await db.rows(UPDATE, [by, chainId, name, description, JSON.stringify(dag), ...limits]))[0];
}

const SET_ENABLED = statement<ChainRow>(
  "chains.definition.set_enabled",
  `update chains.job_chain_definition
   set enabled = $2, updated_at = case when enabled = $2 then updated_at else now() end
   where chain_id = $1 returning ${COLUMNS}`,
);

export async function setEnabled(db: Queryable, chainId: string, enabled: boolean): Promise<ChainRow | undefined> {
  return (await db.rows(SET_ENABLED, [chainId, enabled]))[0];
}

const BY_ID = statement<ChainRow>(
  "chains.definition.by_id",
  `select ${COLUMNS} from chains.job_chain_definition where chain_id = $1`,
);

export async function findChain(db: Queryable, chainId: string): Promise<ChainRow | undefined> {
  return (await db.rows(BY_ID, [chainId]))[0];
}

export interface ChainSummaryRow extends Omit<ChainRow, "dag"> {
  node_count: number;
  last_run: { runId: string; status: RunStatus; createdAt: string } | null;
}

const MATCHING = `($1 = '' or strpos(lower(name), lower($1)) > 0 or strpos(lower(coalesce(description, '')), lower($1)) > 0)
   and ($2::boolean is null or enabled = $2) and ($3::text is null or name = $3)`;
const PAGE = statement<ChainSummaryRow>(
  "chains.definition.page",
  `select d.chain_id, d.name, d.description, d.enabled, d.version::float8 as version, d.max_active_runs,
          d.run_timeout_ms::float8 as run_timeout_ms, d.created_at, d.updated_at,
          jsonb_array_length(d.dag_json -> 'nodes') as node_count,
          (select json_build_object('runId', r.run_id, 'status', r.status, 'createdAt', r.created_at)
           from chains.job_run r where r.chain_id = d.chain_id order by r.created_at desc limit 1) as last_run
   from (select * from chains.job_chain_definition where ${MATCHING} order by name limit $4 offset $5) d
   order by d.name`,
);
const TOTAL = statement<{ total: number }>(
  "chains.definition.total",
  `select count(*)::int as total from chains.job_chain_definition where ${MATCHING}`,
);

export interface ChainFilter {
  keyword: string;
  enabled: boolean | null;
  name: string | null;
}

export async function listChains(
  db: Db,
  { keyword, enabled, name }: ChainFilter,
  page: { size: number; offset: number },
) {
  const [items, [count]] = await Promise.all([
    db.read(PAGE, [keyword, enabled, name, page.size, page.offset]),
    db.read(TOTAL, [keyword, enabled, name]),
  ]);
  return { items, total: count?.total ?? 0 };
}

export interface VersionRow {
  version: number;
  name: string;
  description: string | null;
  created_at: Date;
  created_by: string;
}
const VERSION_COLUMNS = "version::float8 as version, name, description, created_at, created_by";
const VERSION = statement<VersionRow & { dag: Dag }>(
  "chains.definition.version",
  `select ${VERSION_COLUMNS}, dag_json as dag from chains.job_chain_version where chain_id = $1 and version = $2`,
);

export async function findVersion(db: Db, chainId: string, version: number) {
  return (await db.read(VERSION, [chainId, version]))[0];
}

const VERSIONS = statement<VersionRow>(
  "chains.definition.versions",
  `select ${VERSION_COLUMNS} from chains.job_chain_version
   where chain_id = $1 and ($2::bigint is null or version < $2)
   order by version desc limit $3`,
);

/** Newest first; `before` is the last version already seen. */
export function listVersions(
  db: Db,
  chainId: string,
  page: { before: number | null; limit: number },
): Promise<VersionRow[]> {
  return db.read(VERSIONS, [chainId, page.before, page.limit]);
}

// Pools

export interface PoolRow {
  name: string;
  size: number;
  running: number;
  ready: number;
}
const POOLS = statement<PoolRow>(
  "chains.pool.list",
  `select p.name, p.size,
          (select count(*)::int from chains.live_node n where n.state = 'leased' and n.pool = p.name) as running,
          (select count(*)::int from chains.live_node n where n.state = 'ready' and n.pool = p.name) as ready
   from chains.pool p order by p.name`,
);

export function listPools(db: Db): Promise<PoolRow[]> {
  return db.read(POOLS);
}

const POOL_NAMES = statement<{ name: string }>("chains.pool.names", "select name from chains.pool");

export async function poolNames(db: Queryable): Promise<Set<string>> {
  return new Set((await db.rows(POOL_NAMES)).map(({ name }) => name));
}

const SET_POOL = statement(
  "chains.pool.set",
  `insert into chains.pool (name, size) values ($1, $2)
   on conflict (name) do update set size = excluded.size, updated_at = now()`,
);

export async function setPool(db: Queryable, name: string, size: number): Promise<void> {
  await db.rows(SET_POOL, [name, size]);
}

const LOCK_POOL = statement<{ size: number }>(
  "chains.pool.lock_one",
  "select size from chains.pool where name = $1 for no key update",
);

/** Locks the pool against changes until the transaction ends. */
export async function lockPool(tx: Queryable, name: string): Promise<{ size: number } | undefined> {
  return (await tx.rows(LOCK_POOL, [name]))[0];
}

const LOCK_POOLS = statement<{ name: string }>(
  "chains.pool.lock",
  "select name from chains.pool where name = any($1::text[]) order by name for key share",
);

/** Returns those that exist and keeps them from being deleted until the transaction ends. Their size may still change. */
export async function lockPools(tx: Queryable, names: readonly string[]): Promise<Set<string>> {
  return new Set((await tx.rows(LOCK_POOLS, [names])).map(({ name }) => name));
}

const FIND_POOL = statement<{ name: string }>(
  "chains.pool.find",
  "select name from chains.pool where name = $1 for update",
);

export interface PoolUsers {
  /** The number of chains that name it, and one of them. */
  chains: number;
  chain: string | null;
  /** Live nodes in it. */
  nodes: number;
  /** Runs that have not ended and whose definition names it. */
  runs: number;
}
const namesPool = (dag: string) =>
  `jsonb_path_exists(${dag}, '$.nodes[*] ? (@.pool == $pool || (@.type == "map" && @.cfg.node.pool == $pool))',
     jsonb_build_object('pool', $1::text))`;
// A chain may have thousands of open runs, so each of their versions is checked once.
const POOL_USERS = statement<PoolUsers>(
  "chains.pool.users",
  `with open_runs as materialized (
     select run_id, chain_id, chain_version from chains.job_run where status = 'PENDING'
     union all
     select run_id, chain_id, chain_version from chains.job_run where status in ('RUNNING', 'STOPPING')
   ), users as (
     select min(name) as chain, count(*)::int as chains from chains.job_chain_definition where ${namesPool("dag_json")}
   ), versions as (
     select chain_id, chain_version, count(*) as runs from open_runs where chain_id is not null group by 1, 2
   )
   select users.chain, users.chains,
          (select count(*)::int from chains.live_node where pool = $1) as nodes,
          (select coalesce(sum(o.runs), 0)::int from versions o
           join chains.job_chain_version v on v.chain_id = o.chain_id and v.version = o.chain_version
           where ${namesPool("v.dag_json")}) +
          (select count(*)::int from open_runs o join chains.job_run r on r.run_id = o.run_id
           where o.chain_id is null and ${namesPool("r.dag_json")}) as runs
   from users`,
);
const DELETE_POOL = statement("chains.pool.delete", "delete from chains.pool where name = $1");

/** Deletes a pool that is not in use. Returns its users, or undefined when there is no such pool. */
export async function deletePool(tx: Queryable, name: string): Promise<PoolUsers | undefined> {
  // Locked first: a definition that names it has either been committed and is seen, or waits and finds the pool deleted.
  if ((await tx.rows(FIND_POOL, [name])).length === 0) return undefined;
  const [users] = await tx.rows(POOL_USERS, [name]);
  if (!users) throw new Error("the statement for a pool's users returned no row");
  if (users.chains + users.nodes + users.runs === 0) await tx.rows(DELETE_POOL, [name]);
  return users;
}

const LOCK_CHAIN = statement<{ name: string; runs: boolean }>(
  "chains.definition.lock_to_delete",
  `select d.name, exists (select from chains.job_run r where r.chain_id = d.chain_id) as runs
   from chains.job_chain_definition d where d.chain_id = $1 for update of d`,
);
const DELETE_CHAIN = statement(
  "chains.definition.delete",
  `with schedules as (delete from chains.schedule where chain_id = $1),
        keys as (delete from chains.start_key where chain_id = $1),
        versions as (delete from chains.job_chain_version where chain_id = $1)
   delete from chains.job_chain_definition where chain_id = $1`,
);

/** Locks a chain that is to be deleted, and says whether runs of it are kept. Undefined if there is no such chain. */
export async function lockChain(tx: Queryable, chainId: string): Promise<{ name: string; runs: boolean } | undefined> {
  return (await tx.rows(LOCK_CHAIN, [chainId]))[0];
}

/** With its versions and schedules. */
export async function deleteChain(tx: Queryable, chainId: string): Promise<void> {
  await tx.rows(DELETE_CHAIN, [chainId]);
}

// Chains are as many as people have written, so all are looked at; a deletion is rare.
const NAMED_IN_CFG = statement<{ name: string }>(
  "chains.definition.named_in_cfg",
  `select d.name from chains.job_chain_definition d
   where jsonb_path_exists(d.dag_json, $1::text::jsonpath, jsonb_build_object('type', $2::text, 'name', $3::text))
   order by d.name limit 2`,
);
const NAMES_SECRET = statement<{ name: string }>(
  "chains.definition.names_secret",
  `select d.name from chains.job_chain_definition d
   where d.dag_json::text ~ ('\\$\\{\\s*secrets\\.' || $1 || '\\s*\\}') order by d.name limit 1`,
);

/** Two at most of the chains that have a node of this type, also inside of a `map`, with this name in a field of its `cfg`. */
export async function chainsNaming(tx: Queryable, type: string, field: string, name: string): Promise<string[]> {
  const path = `$.nodes[*].** ? (@.type == $type && @.cfg.${JSON.stringify(field)} == $name)`;
  return (await tx.rows(NAMED_IN_CFG, [path, type, name])).map((row) => row.name);
}

/** A chain that inserts this secret. */
export async function chainNamingSecret(tx: Queryable, secret: string): Promise<string | undefined> {
  return (await tx.rows(NAMES_SECRET, [secret]))[0]?.name;
}
