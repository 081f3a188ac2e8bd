/**
 * The registry: the sources that are known, as their definitions say. A definition is applied as a whole or not at all, and only
 * if it compiles. Plans keep the snapshot that they were made with, so a change touches none that runs.
 */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import { auditedChanges } from "../../kernel/auth/audited-changes.ts";
import { type Db, FOREIGN_KEY_VIOLATION, type Queryable, sqlState } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import { type ApiError, invalid } from "../../kernel/errors.ts";
import type { InUse } from "../../kernel/in-use.ts";
import { differences, type FieldDifference } from "../../kernel/json/differences.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import type { NamedSecrets } from "../../kernel/secrets/named-secrets.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { nextFire } from "../../kernel/time/cron.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type HarvestHints, harvestError } from "../catalogue.ts";
import { liftRefusals } from "../control/refusals.ts";
import { type Compiled, type CompileInput, compileSpec } from "../spec/compile.ts";
import type { Dictionary } from "../spec/dictionary.ts";
import type { Operation } from "../spec/snapshot.ts";
import { sourceOfSecret } from "../store/sources/credentials.ts";
import * as store from "../store/sources/registry.ts";
import {
  type CheckedDefinition,
  type CompiledEndpoint,
  checkDefinition,
  compileEndpoint,
  type LocatedProblem,
  problemAt,
} from "./check.ts";
import type { Definition } from "./definition.ts";
import { definitionOf, normalised, partsOf } from "./rows.ts";

export interface Registry {
  apply(source: string, value: unknown, target: ApplyTarget, actor: Actor, options?: DryRun): Promise<Applied>;
  /** Compiles and writes nothing. */
  validate(value: unknown, target: Target): Promise<Validated>;
  /** What applying it would change. */
  diff(value: unknown, target: Target): Promise<Compared>;
  get(source: string): Promise<Source>;
  /** For definitions elsewhere that name a source. */
  names: { existing(names: readonly string[]): Promise<readonly string[]>; all(): Promise<readonly string[]> };
  list(filter: { q: string | null }, page: { size: number; offset: number }): ReturnType<typeof store.listSources>;
  /** Only of a source that has never been planned. */
  remove(source: string, actor: Actor, options?: DryRun): Promise<Source>;
  /** For a plan. Throws what is wrong, also with the trigger. */
  compile(source: Source, endpoint: string, operation: Operation, trigger: Trigger): Promise<Compiled>;
  /** As far as the endpoint does not depend on a trigger. */
  describe(source: Source, endpoint: string, operation: Operation): Promise<CompiledEndpoint>;
  dictionary(): Promise<store.DictionaryRow[]>;
}

export interface Target {
  /** Points the source at a mirror, a proxy or a simulator until the next apply. */
  baseUrl?: string | undefined;
}

interface ApplyTarget extends Target {
  /** The revision that the definition was made from; 0: there was none. Unset: whatever is there. */
  revision?: number | undefined;
}

type Trigger = NonNullable<CompileInput["trigger"]>;

export interface Source {
  source: string;
  /** As it was applied, in its normal form. */
  definition: Definition;
  baseUrlOverride: string | null;
  /** The integer ids, by name. */
  endpointIds: ReadonlyMap<string, number>;
  revision: number;
  createdAt: Date;
  updatedAt: Date;
  updatedBy: string;
}

export interface Compared {
  source: string;
  outcome: "created" | "changed" | "unchanged";
  /** Empty for a new source. */
  changes: FieldDifference[];
}
export interface Applied extends Compared {
  revision: number;
  baseUrl: string;
  baseUrlOverride: string | null;
  warnings: LocatedProblem[];
}
export interface Validated {
  valid: boolean;
  problems: LocatedProblem[];
  warnings: LocatedProblem[];
  /** Those that can be harvested. The fingerprint is null where it depends on what a trigger gives. */
  endpoints: { endpoint: string; specFingerprint: string | null; needs: string[] }[];
}

export interface RegistryDeps {
  db: Db;
  wake: Pick<Wake, "hint">;
  hints: HarvestHints;
  clock: Clock;
  secrets: Pick<NamedSecrets, "list">;
  /** Hosts with their port that may be private or without TLS. */
  allowPrivate: readonly string[];
  /** Engines in which tables can be written. Throws for others. */
  tables: { of(engine: string): unknown };
  inUse?: InUse;
  /** Called after a change of schedules is committed. */
  onSchedules(): void;
}

export function createRegistry(deps: RegistryDeps): Registry {
  const { db, hints, clock, secrets, allowPrivate, tables, onSchedules, inUse } = deps;
  inUse?.add(async (tx, what, name) => {
    const user = what === "secret" ? await sourceOfSecret(tx, name) : undefined;
    return user === undefined ? undefined : `the credential \`${user.credential}\` of source ${user.source} is it`;
  });
  async function check(
    value: unknown,
    { baseUrl }: Target,
  ): Promise<CheckedDefinition | { problems: LocatedProblem[] }> {
    const dictionary = dictionaryOf(await store.readDictionary(db));
    const checked = checkDefinition(value, { dictionary, allowPrivate, baseUrl });
    if ("problems" in checked) return checked;
    const taken = [...wrongEngines(checked), ...(await takenTables(checked))];
    if (taken.length > 0) return { problems: taken };
    return { ...checked, warnings: [...checked.warnings, ...(await missingSecrets(checked.definition))] };
  }

  /** Engines that do not exist, or in which no table can be written. */
  function wrongEngines({ compiled }: CheckedDefinition): LocatedProblem[] {
    return [...compiled].flatMap(([endpoint, found]) => {
      const { engine } = found.compiled.snapshot.spec.landing ?? {};
      if (engine === undefined) return [];
      try {
        tables.of(engine);
        return [];
      } catch (error) {
        return [problemAt(["endpoints", endpoint, "landing", "engine"], messageOf(error))];
      }
    });
  }

  /** Tables that another source lands in. */
  async function takenTables({ definition, compiled }: CheckedDefinition): Promise<LocatedProblem[]> {
    const landing = [...compiled].flatMap(([endpoint, found]) => {
      const { table } = found.compiled.snapshot.spec.landing ?? {};
      return table === undefined ? [] : [{ endpoint, table }];
    });
    if (landing.length === 0) return [];
    const names = landing.map(({ table }) => table);
    const others = await store.landingElsewhere(db, definition.source, names);
    return landing.flatMap(({ endpoint, table }) => {
      const other = others.find(({ landing_table }) => landing_table.toLowerCase() === table.toLowerCase());
      const reason = `The source ${other?.provenance_code} lands in ${table} already. A source has tables of its own.`;
      return other ? [problemAt(["endpoints", endpoint, "landing", "table"], reason)] : [];
    });
  }

  async function missingSecrets({ credentials = {} }: Definition): Promise<LocatedProblem[]> {
    const wanted = Object.entries(credentials).flatMap(([name, reference]) =>
      "secret" in reference ? [{ name, secret: reference.secret }] : [],
    );
    if (wanted.length === 0) return [];
    const known = (await secrets.list()).map(({ name }) => name);
    return wanted
      .filter(({ secret }) => !known.includes(secret))
      .map(({ name, secret }) => {
        const reason = `There is no secret \`${secret}\` yet.${didYouMean(secret, known)} Create it with \`millrace secrets set\`.`;
        return problemAt(["credentials", name, "secret"], reason);
      });
  }

  async function checkedOrThrow(source: string, value: unknown, target: Target): Promise<CheckedDefinition> {
    const checked = await check(value, target);
    if ("problems" in checked) throw unusable(source, checked.problems);
    return checked;
  }

  async function find(reader: Queryable, source: string): Promise<Source> {
    const row = await store.findSource(reader, source);
    if (row) return sourceOf(row);
    const hint =
      didYouMean(source, await store.sourceNames(reader)) || " `millrace harvest sources` lists those that there are.";
    throw harvestError("SOURCE_NOT_FOUND", { source }, { hint });
  }

  const nextAt = (schedule: store.ScheduleWrite) => {
    const ms = nextFire(schedule.cron, schedule.time_zone, clock.now());
    return ms === undefined ? null : new Date(ms);
  };

  return {
    async apply(source, value, target, actor, options = FOR_REAL) {
      const named = nameIn(value);
      if (named !== undefined && named !== source) {
        throw invalid(`The definition is of the source \`${named}\`, and the path names \`${source}\``);
      }
      const { definition, warnings } = await checkedOrThrow(source, value, target);
      return transact(db, options, async (tx) => {
        await store.lockSource(tx, source);
        const present = await store.findSource(tx, source);
        const presentRevision = present?.revision ?? 0;
        if (target.revision !== undefined && target.revision !== presentRevision)
          throw harvestError("REVISION_CONFLICT", { source, revision: presentRevision, yours: target.revision });
        const override = target.baseUrl ?? null;
        const compared = compare(present, definition, override);
        const { outcome, changes } = compared;
        let revision = presentRevision;
        if (outcome !== "unchanged") {
          revision = await store.writeSource(tx, partsOf(definition, override), { by: actor.caller.name, nextAt });
          const details = { revision, ...(outcome === "changed" && auditedChanges(changes)) };
          await audit(tx, actor, outcome === "created" ? "source.create" : "source.update", source, details);
          tx.afterCommit(onSchedules);
          hints.changed(tx, "source", source);
          await liftRefusals(tx, deps, source, actor);
        }
        return {
          ...compared,
          revision,
          baseUrl: override ?? definition.baseUrl,
          baseUrlOverride: override,
          warnings,
        };
      });
    },

    async validate(value, target) {
      const checked = await check(value, target);
      if ("problems" in checked) return { valid: false, problems: checked.problems, warnings: [], endpoints: [] };
      const endpoints = [...checked.compiled].map(([endpoint, { compiled, needs }]) => ({
        endpoint,
        specFingerprint: needs.length === 0 ? compiled.specFingerprint : null,
        needs,
      }));
      return { valid: true, problems: [], warnings: checked.warnings, endpoints };
    },

    async diff(value, target) {
      const { definition } = await checkedOrThrow(nameIn(value) ?? "this source", value, target);
      return compare(await store.findSource(db, definition.source), definition, target.baseUrl ?? null);
    },

    get: (source) => find(db, source),
    names: {
      all: () => store.sourceNames(db),
      existing: async (names) => (await store.sourceNames(db)).filter((name) => names.includes(name)),
    },
    list: (filter, page) => store.listSources(db, { ...filter, ...page }),
    dictionary: () => store.readDictionary(db),

    async remove(source, actor, options = FOR_REAL) {
      try {
        return await transact(db, options, async (tx) => {
          await store.lockSource(tx, source);
          const found = await find(tx, source);
          const because = await inUse?.by(tx, "source", source);
          if (because !== undefined) throw harvestError("SOURCE_IN_USE", { source }, { because });
          await store.deleteSource(tx, source);
          await audit(tx, actor, "source.delete", source, { revision: found.revision });
          hints.changed(tx, "source", source);
          return found;
        });
      } catch (error) {
        // Plans refer to the endpoints.
        if (sqlState(error) === FOREIGN_KEY_VIOLATION) {
          throw harvestError("SOURCE_IN_USE", { source }, { because: "it has plans, and its records belong to them" });
        }
        throw error;
      }
    },

    async compile(source, endpoint, operation, trigger) {
      const found = compileSpec({ ...(await inputOf(source, endpoint)), operation, trigger });
      if ("problems" in found) throw unusable(source.source, found.problems);
      return found.compiled;
    },

    async describe(source, endpoint, operation) {
      const found = compileEndpoint({ ...(await inputOf(source, endpoint)), operation });
      if ("problems" in found) throw unusable(source.source, found.problems);
      return found;
    },
  };

  /** What the compiler needs to know of an endpoint. */
  async function inputOf({ source, definition, baseUrlOverride }: Source, endpointName: string) {
    const names = Object.keys(definition.endpoints);
    if (!names.includes(endpointName)) {
      const hint = didYouMean(endpointName, names);
      throw harvestError("ENDPOINT_NOT_FOUND", { source, endpoint: endpointName }, { hint });
    }
    const effective = { ...definition, baseUrl: baseUrlOverride ?? definition.baseUrl };
    return {
      definition: effective,
      endpointName,
      dictionary: dictionaryOf(await store.readDictionary(db)),
      allowPrivate,
    };
  }
}

/** The name of the source in a value that may be a definition. */
function nameIn(value: unknown): string | undefined {
  const { source } = value as { source?: unknown };
  return typeof source === "string" ? source : undefined;
}

function compare(present: store.StoredSource | undefined, definition: Definition, override: string | null): Compared {
  const { source } = definition;
  if (!present) return { source, outcome: "created", changes: [] };
  const changes = differences(definitionOf(present), normalised(definition));
  if (present.base_url_override !== override) {
    changes.unshift({ field: "baseUrlOverride", from: present.base_url_override, to: override });
  }
  return { source, outcome: changes.length === 0 ? "unchanged" : "changed", changes };
}

function sourceOf(row: store.StoredSource): Source {
  return {
    source: row.provenance_code,
    definition: definitionOf(row),
    baseUrlOverride: row.base_url_override,
    endpointIds: new Map(row.endpoints.map(({ endpoint_name, endpoint_id }) => [endpoint_name, endpoint_id])),
    revision: row.revision,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    updatedBy: row.updated_by,
  };
}

function dictionaryOf(rows: readonly store.DictionaryRow[]): Dictionary {
  return Object.fromEntries(rows.map(({ type_code, items }) => [type_code, items.map(({ code }) => code)]));
}

/** The sentence has the first problem and the number of the others; the details list all. */
function unusable(source: string, problems: readonly { table: string; field: string; reason: string }[]): ApiError {
  const [first, ...others] = problems;
  const more = others.length > 0 ? ` There are ${others.length} more: see \`details.problems\`.` : "";
  const reason = `${first?.table}, ${first?.field}: ${first?.reason}${more}`;
  return harvestError("DEFINITION_INVALID", { source, problems }, { reason });
}
