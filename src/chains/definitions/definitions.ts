/** Use cases of definitions: create, update, enable, disable, read. Every version is kept. */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import { auditedChanges } from "../../kernel/auth/audited-changes.ts";
import { type Db, type Queryable, sqlState, UNIQUE_VIOLATION } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import { ApiError } from "../../kernel/errors.ts";
import { parseJson } from "../../kernel/http/body.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { FindUser, InUse } from "../../kernel/in-use.ts";
import { differences } from "../../kernel/json/differences.ts";
import type { NamedSecrets } from "../../kernel/secrets/named-secrets.ts";
import { type ChainsHints, chainsError } from "../catalogue.ts";
import * as store from "../store/definitions.ts";
import { listOverviews } from "../store/summaries.ts";
import { map } from "../types/map.ts";
import type { Reference } from "../types/node-type.ts";
import type { Registry } from "../types/registry.ts";
import type { Dag, DagProblem } from "./dag.ts";
import { unknownReferences } from "./references.ts";
import { validateDag } from "./validate.ts";

export interface ChainInput {
  name: string;
  description?: string | null;
  dagJson: string | object;
  /** In an update, an absent limit stays and null removes it. */
  maxActiveRuns?: number | null;
  runTimeoutMs?: number | null;
}

export interface Definitions {
  create(input: ChainInput & { enabled?: boolean | null }, actor: Actor, options?: DryRun): Promise<store.ChainRow>;
  update(
    chainId: string,
    input: ChainInput & { version: number },
    actor: Actor,
    options?: DryRun,
  ): Promise<store.ChainRow>;
  setEnabled(chainId: string, enabled: boolean, actor: Actor, options?: DryRun): Promise<store.ChainRow>;
  /** With its versions and schedules. Refused while runs of it are kept, or another chain runs it. */
  remove(chainId: string, actor: Actor, options?: DryRun): Promise<{ name: string }>;
  get(chainId: string): Promise<store.ChainRow>;
  list(filter: store.ChainFilter, page: { size: number; offset: number }): ReturnType<typeof store.listChains>;
  /** With their last runs. */
  summaries(keyword: string, page: { size: number; offset: number }): ReturnType<typeof listOverviews>;
  /** Newest first, before version `before` if it is given. */
  versions(chainId: string, page: { before: number | null; limit: number }): Promise<store.VersionRow[]>;
  version(chainId: string, version: number): Promise<store.VersionRow & { dag: Dag }>;
  /** Returns the DAG, or throws everything that is wrong with it. `ownName` is the name of its chain. */
  check(dagJson: string | object, ownName?: string): Promise<Dag>;
}

export interface DefinitionsDeps {
  db: Db;
  hints: ChainsHints;
  registry: Registry;
  ids: Ids;
  secrets: Pick<NamedSecrets, "list">;
  inUse?: InUse;
}

export function createDefinitions(deps: DefinitionsDeps): Definitions {
  const { db, hints, registry, ids } = deps;
  deps.inUse?.add(namedByChains(registry));
  const secretNames = async () => (await deps.secrets.list()).map(({ name }) => name);
  const secrets: Reference = {
    what: "secret",
    existing: secretNames,
    all: secretNames,
    hint: "Create it with `millrace secrets set` or PUT /api/v1/secrets/{name}.",
  };

  async function check(dagJson: string | object, ownName?: string): Promise<Dag> {
    const value = typeof dagJson === "string" ? parseDag(dagJson) : dagJson;
    const checked = validateDag(value, { registry, pools: await store.poolNames(db) });
    if ("problems" in checked) throw invalid(checked.problems);
    const unknown = await unknownReferences(checked.dag, { registry, secrets, ownName });
    if (unknown.length > 0) throw invalid(unknown);
    return checked.dag;
  }

  const commonFields = (input: ChainInput, dag: Dag, actor: Actor) => ({
    name: input.name,
    description: input.description ?? null,
    dag,
    by: actor.caller.name,
  });

  /** Locks the pools of the DAG and checks it again if one was deleted since the first check. */
  async function ensurePools(tx: Queryable, dag: Dag): Promise<void> {
    const named = poolsOf(dag);
    if (named.size === 0) return;
    const pools = await store.lockPools(tx, [...named]);
    if (pools.size === named.size) return;
    const checked = validateDag(dag, { registry, pools });
    if ("problems" in checked) throw invalid(checked.problems);
  }

  async function get(chainId: string): Promise<store.ChainRow> {
    const row = await store.findChain(db, chainId);
    if (!row) throw chainsError("CHAIN_NOT_FOUND", { chainId });
    return row;
  }

  return {
    check,

    async create(input, actor, options = FOR_REAL) {
      const dag = await check(input.dagJson, input.name);
      return transact(db, options, async (tx) => {
        await ensurePools(tx, dag);
        const chainId = ids.uuid();
        const row = await store.insertChain(tx, {
          ...commonFields(input, dag, actor),
          maxActiveRuns: input.maxActiveRuns ?? null,
          runTimeoutMs: input.runTimeoutMs ?? null,
          chainId,
          enabled: input.enabled ?? true,
        });
        if (!row) throw chainsError("CHAIN_NAME_TAKEN", { name: input.name });
        await audit(tx, actor, "chain.create", chainId, { name: input.name });
        hints.changed(tx, "chain", chainId);
        return row;
      });
    },

    async update(chainId, input, actor, options = FOR_REAL) {
      const dag = await check(input.dagJson, input.name);
      try {
        return await transact(db, options, async (tx) => {
          await ensurePools(tx, dag);
          const { version, maxActiveRuns, runTimeoutMs } = input;
          const limits = { maxActiveRuns, runTimeoutMs };
          // If it is at this version, the update finds it unchanged.
          const before = await store.findChain(tx, chainId);
          const row = await store.updateChain(tx, { ...commonFields(input, dag, actor), ...limits, chainId, version });
          if (row && before) {
            const changes = auditedChanges(differences(auditedFields(before), auditedFields(row)));
            await audit(tx, actor, "chain.update", chainId, { name: input.name, version: row.version, ...changes });
            hints.changed(tx, "chain", chainId);
            return row;
          }
          const present = await store.findChain(tx, chainId);
          if (!present) throw chainsError("CHAIN_NOT_FOUND", { chainId });
          throw chainsError("VERSION_CONFLICT", { chainId, version: present.version, yours: input.version });
        });
      } catch (error) {
        if (sqlState(error) === UNIQUE_VIOLATION) throw chainsError("CHAIN_NAME_TAKEN", { name: input.name });
        throw error;
      }
    },

    setEnabled: (chainId, enabled, actor, options = FOR_REAL) =>
      transact(db, options, async (tx) => {
        const row = await store.setEnabled(tx, chainId, enabled);
        if (!row) throw chainsError("CHAIN_NOT_FOUND", { chainId });
        await audit(tx, actor, enabled ? "chain.enable" : "chain.disable", chainId, { name: row.name });
        hints.changed(tx, "chain", chainId);
        return row;
      }),

    remove: (chainId, actor, options = FOR_REAL) =>
      transact(db, options, async (tx) => {
        const found = await store.lockChain(tx, chainId);
        if (!found) throw chainsError("CHAIN_NOT_FOUND", { chainId });
        const { name, runs } = found;
        const because = runs
          ? "it has runs, which are deleted chains.keepDays after their end"
          : await deps.inUse?.by(tx, "chain", name);
        if (because !== undefined) throw chainsError("CHAIN_IN_USE", { name }, { because });
        await store.deleteChain(tx, chainId);
        await audit(tx, actor, "chain.delete", chainId, { name });
        hints.changed(tx, "chain", chainId);
        return { name };
      }),

    get,
    list: (filter, page) => store.listChains(db, filter, page),
    summaries: (keyword, page) => listOverviews(db, keyword, page),

    async versions(chainId, page) {
      const { chain_id } = await get(chainId);
      return store.listVersions(db, chain_id, page);
    },

    async version(chainId, version) {
      const row = await store.findVersion(db, chainId, version);
      if (row) return row;
      await get(chainId);
      throw chainsError("CHAIN_VERSION_NOT_FOUND", { chainId, version });
    },
  };
}

/** Each node is a field of its own. */
function auditedFields({ name, description, max_active_runs, run_timeout_ms, dag }: store.ChainRow): object {
  const nodes = Object.fromEntries(dag.nodes.map(({ id, ...node }) => [id, node]));
  return { name, description, maxActiveRuns: max_active_runs, runTimeoutMs: run_timeout_ms, nodes };
}

/** Finds the chain that names something in a node. One that names itself may be deleted. */
function namedByChains(registry: Registry): FindUser {
  return async (tx, what, name) => {
    if (what === "secret") {
      const chain = await store.chainNamingSecret(tx, name);
      return chain === undefined ? undefined : `chain \`${chain}\` names it`;
    }
    for (const type of registry.names()) {
      for (const { field, what: named } of registry.get(type)?.references ?? []) {
        if (named !== what || field === undefined) continue;
        const chains = await store.chainsNaming(tx, type, field, name);
        const chain = chains.find((one) => what !== "chain" || one !== name);
        if (chain !== undefined) return `chain \`${chain}\` names it`;
      }
    }
    return undefined;
  };
}

function poolsOf({ nodes }: Dag): Set<string> {
  const named = nodes.flatMap(({ type, pool, cfg = {} }) => {
    const { node }: { node?: { pool?: string } } = cfg;
    return [pool, type === map.type ? node?.pool : undefined];
  });
  return new Set(named.filter((name) => name !== undefined));
}

function parseDag(text: string): unknown {
  try {
    return parseJson(Buffer.from(text));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw invalid([{ path: "", message: error.message.replace(/^The body/, "its text") }]);
  }
}

/** The sentence holds the first problem and the number of the others; the details list all. */
function invalid(problems: readonly DagProblem[]): ApiError {
  const [first, ...others] = problems;
  const where = first?.path
    ? ` (at \`${first.path}\`${first.nodeId === undefined ? "" : `, node \`${first.nodeId}\``})`
    : "";
  const more = others.length > 0 ? `, and ${others.length} more: see \`details.problems\`` : "";
  const reason = `The DAG is not valid: ${first?.message.replace(/\.$/, "")}${where}${more}`;
  return chainsError("DAG_INVALID", { problems }, { reason });
}
