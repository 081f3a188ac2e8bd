/** The use cases of models: define, publish, unpublish, delete. */

import { ENGINE_DEFAULT, type Engines } from "../../engines/index.ts";
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import { auditedChanges } from "../../kernel/auth/audited-changes.ts";
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import { invalid, kernelError } from "../../kernel/errors.ts";
import type { FindUser } from "../../kernel/in-use.ts";
import { differences } from "../../kernel/json/differences.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Grain } from "../../kernel/time/op-time.ts";
import { wrongTimeZone } from "../../kernel/time/time-zone.ts";
import { unknownName } from "../../kernel/unknown-name.ts";
import type { RetryFields } from "../../kernel/work/retry-fields.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type ArrivalsHints, arrivalsError } from "../catalogue.ts";
import { type Expect, problemOfExpect } from "../kpis/checks.ts";
import { modelReply } from "../replies.ts";
import type { Names } from "../runs/chain-port.ts";
import { reconsider } from "../runs/consider.ts";
import { MODEL_STATES, type RerunPolicy } from "../runs/states.ts";
import { dropDeadlines, setDeadlines } from "../store/deadlines.ts";
import { waitingInstances, withdrawInstances } from "../store/instances.ts";
import { clearComputedOf, dependingKpis, kpiTypes, lockKpis, registerKpis } from "../store/kpis.ts";
import type { ProducingModel } from "../store/models.ts";
import * as store from "../store/models.ts";
import { endTasksOf, type ListTasks, listTasks } from "../store/tasks.ts";
import { TIMER_TOPIC } from "../topics.ts";
import { unknownModel } from "../unknown-names.ts";
import { nextDeadline, parseDeadline } from "./deadline.ts";
import { checkMapping } from "./mapping.ts";
import { cycleProblem } from "./table-cycles.ts";

export interface DependencyInput {
  table: string;
  optional?: boolean;
  quietSeconds?: number;
  deadline?: string;
  grain?: Grain;
  offset?: number;
}

export interface ModelInput {
  name: string;
  description?: string | null;
  engine?: string;
  sql?: string;
  chain?: string;
  dependencies: readonly DependencyInput[];
  kpis: readonly string[];
  grain?: Grain | null;
  timeZone?: string;
  produces?: string | null;
  rerun?: RerunPolicy;
  timeoutSeconds?: number;
  retry?: RetryFields | null;
  expect?: Expect | null;
  allowEmpty?: boolean;
}

export interface Models {
  put(
    modelId: string,
    input: ModelInput,
    actor: Actor,
    options?: DryRun,
  ): Promise<{ model: store.ModelRow; created: boolean }>;
  get(modelId: string): Promise<store.ModelRow>;
  list(query: store.ListModels): ReturnType<typeof store.listModels>;
  /** The newest first. */
  runs(query: ListTasks): ReturnType<typeof listTasks>;
  setPublished(modelId: string, published: boolean, actor: Actor, options?: DryRun): Promise<store.ModelRow>;
  remove(modelId: string, actor: Actor, options?: DryRun): Promise<store.ModelRow>;
}

export interface ModelsDeps {
  db: Db;
  wake: Wake;
  hints: ArrivalsHints;
  clock: Clock;
  engines: Pick<Engines, "names" | "syntaxError">;
  chains: Names;
  /** The name under which a table is stored and compared. */
  tableName: (given: string) => string;
  timeoutSeconds: number;
  /** Who names a model, in words. */
  userOf: FindUser | undefined;
  /** Called after the commit of a deletion. */
  onRemoved: (modelId: string) => void;
}

/** The newest opTimes that wait and are judged again after a change of the model. */
const JUDGED_AGAIN_MAX = 10_000;
const TIME_ZONE_DEFAULT = "UTC";

export function createModels({
  db,
  wake,
  hints,
  clock,
  engines,
  chains,
  tableName,
  timeoutSeconds,
  userOf,
  onRemoved,
}: ModelsDeps): Models {
  function modelWriteOf(modelId: string, input: ModelInput): store.ModelWrite {
    const isSql = input.sql !== undefined;
    return {
      model_id: modelId,
      name: input.name,
      description: input.description ?? null,
      engine: isSql ? (input.engine ?? ENGINE_DEFAULT) : null,
      sql: input.sql ?? null,
      chain: input.chain ?? null,
      grain: input.grain ?? null,
      time_zone: input.timeZone ?? TIME_ZONE_DEFAULT,
      produces: input.produces ? tableName(input.produces) : null,
      rerun: input.rerun ?? "auto",
      timeout_seconds: input.timeoutSeconds ?? timeoutSeconds,
      retry: input.retry ?? null,
      expect: input.expect ?? null,
      allow_empty: input.allowEmpty ?? false,
    };
  }

  async function findOrThrow(reader: Queryable, modelId: string): Promise<store.ModelRow> {
    const model = await store.findModel(reader, modelId);
    if (!model) throw await unknownModel(reader, modelId);
    return model;
  }

  /** Sets the timers of a published model to its next deadlines. */
  async function setTimers(tx: Queryable, modelId: string): Promise<void> {
    const rows = await store.dependenciesOf(tx, [modelId]);
    const deadlines = rows.flatMap(({ grain, time_zone: timeZone, dependency: { id, deadline } }) => {
      if (grain === null || deadline === null) return [];
      const { opTime, dueMs } = nextDeadline({ grain, timeZone, deadline }, clock.now());
      return [{ dependency_id: id, op_time: opTime, due_at: new Date(dueMs) }];
    });
    await setDeadlines(tx, deadlines);
  }

  async function refuseCycle(tx: Queryable, modelId: string, model: ProducingModel): Promise<void> {
    const others = (await store.producingModels(tx)).filter(({ model_id }) => model_id !== modelId);
    const problem = cycleProblem([...others, model]);
    if (problem !== undefined) throw kernelError("VALIDATION_FAILED", { problem: "circle" }, { reason: problem });
  }

  return {
    async put(modelId, given, actor, options = FOR_REAL) {
      const named = given.dependencies.map((one) => ({ ...one, table: tableName(one.table) }));
      const input = { ...given, dependencies: named };
      const problem = problemOf(input);
      if (problem !== undefined) throw invalid(problem);
      if (input.sql !== undefined) await refuseSql(input.sql, input.engine ?? ENGINE_DEFAULT, engines);
      if (input.chain !== undefined) await refuseUnknownChain(input.chain, chains);
      const model = modelWriteOf(modelId, input);
      const dependencies = input.dependencies.map(dependencyRow);
      return transact(db, options, async (tx) => {
        await lockKpis(tx);
        const present = (await store.lockModel(tx, modelId)) && (await store.findModel(tx, modelId));
        await refuseComputed(tx, input.kpis);
        if (model.produces !== null) {
          const needs = dependencies.map(({ dependency_table_name: table, shift, optional }) => ({
            table,
            shift,
            optional,
          }));
          await refuseCycle(tx, modelId, { produces: model.produces, needs });
        }
        const isNew = await store.upsertModel(tx, model);
        await store.replaceDependencies(tx, modelId, dependencies);
        const [taken] = await store.replaceModelKpis(tx, modelId, input.kpis);
        if (taken) throw arrivalsError("KPI_FED_ALREADY", { kpiId: taken.kpi_id, modelId: taken.model_id });
        await registerKpis(tx, input.kpis);
        if (present?.state === MODEL_STATES.published) {
          await setTimers(tx, modelId);
          // A table that it waited for may not be needed any more, or another one may be.
          await reconsider(tx, await waitingInstances(tx, modelId, JUDGED_AGAIN_MAX), "edit", wake);
        }
        const written = await findOrThrow(tx, modelId);
        const changes = present && auditedChanges(differences(auditedFields(present), auditedFields(written)));
        await audit(tx, actor, isNew ? "model.create" : "model.update", modelId, { name: input.name, ...changes });
        tx.afterCommit(() => wake.hint(TIMER_TOPIC));
        hints.changed(tx, "model", modelId);
        hints.changed(tx, "kpi", input.kpis);
        return { model: written, created: isNew };
      });
    },

    get: (modelId) => findOrThrow(db, modelId),
    list: (query) => store.listModels(db, query),
    async runs(query) {
      const tasks = await listTasks(db, query);
      // The runs of a deleted model are still there.
      if (tasks.total === 0 && query.modelId !== null) await findOrThrow(db, query.modelId);
      return tasks;
    },

    setPublished: (modelId, published, actor, options = FOR_REAL) =>
      transact(db, options, async (tx) => {
        const state = published ? MODEL_STATES.published : MODEL_STATES.unpublished;
        if (!(await store.setModelState(tx, modelId, state))) throw await unknownModel(tx, modelId);
        if (published) await setTimers(tx, modelId);
        else {
          await dropDeadlines(tx, modelId);
          await withdrawInstances(tx, modelId);
        }
        await audit(tx, actor, published ? "model.publish" : "model.unpublish", modelId);
        tx.afterCommit(() => wake.hint(TIMER_TOPIC));
        hints.changed(tx, "model", modelId);
        return findOrThrow(tx, modelId);
      }),

    remove: (modelId, actor, options = FOR_REAL) =>
      transact(db, options, async (tx) => {
        const model = await findOrThrow(tx, modelId);
        const because = await userOf?.(tx, "model", modelId);
        if (because !== undefined) throw arrivalsError("MODEL_IN_USE", { modelId }, { because });
        // A formula has no value without its parts.
        const computed = await dependingKpis(tx, model.kpis);
        // Comes first: it waits for a run that is just ending, whose values must be deleted too.
        await store.deleteModel(tx, modelId);
        await clearComputedOf(
          tx,
          modelId,
          computed.map(({ kpi_id }) => kpi_id),
        );
        await store.deleteModelValues(tx, modelId);
        await endTasksOf(tx, modelId, "the model was deleted");
        await audit(tx, actor, "model.delete", modelId, { name: model.name });
        tx.afterCommit(() => onRemoved(modelId));
        hints.changed(tx, "model", modelId);
        hints.changed(tx, "kpi", [...model.kpis, ...computed.map(({ kpi_id }) => kpi_id)]);
        return model;
      }),
  };
}

/** The definition as the API shows it; each dependency is a field of its own. */
function auditedFields(row: store.ModelRow): object {
  const {
    modelId: _id,
    version: _version,
    state: _state,
    createdAt: _created,
    updatedAt: _updated,
    ...fields
  } = modelReply(row);
  const dependencies = fields.dependencies.map(({ table, offset, ...one }) => [
    offset === 0 ? table : `${table} (${offset})`,
    { ...one, offset },
  ]);
  return { ...fields, dependencies: Object.fromEntries(dependencies) };
}

function dependencyRow(dependency: DependencyInput) {
  return {
    dependency_table_name: dependency.table,
    optional: dependency.optional ?? false,
    quiet_seconds: dependency.quietSeconds ?? 0,
    deadline: dependency.deadline ?? null,
    grain: dependency.grain ?? null,
    shift: dependency.offset ?? 0,
  };
}

/** The first problem of a model, as a sentence without its full stop. */
function problemOf({ sql, chain, engine, grain, timeZone, dependencies, expect }: ModelInput): string | undefined {
  if ((sql === undefined) === (chain === undefined)) return "A model has either `sql` or a `chain`, and not both";
  if (engine !== undefined && chain !== undefined) return "A model that runs a `chain` has no `engine`";
  const zoneProblem = timeZone === undefined ? undefined : wrongTimeZone(timeZone);
  if (zoneProblem !== undefined) return `The field \`timeZone\`: ${zoneProblem.replace(/^T/, "t")}`;
  const checkProblem = expect ? problemOfExpect(expect) : undefined;
  if (checkProblem !== undefined) return checkProblem;
  const seen = new Set<string>();
  for (const [index, { table, deadline, grain: own, offset = 0 }] of dependencies.entries()) {
    const where = `The field \`dependencies[${index}]\` (${table})`;
    if (seen.has(`${table} ${offset}`)) return `${where}: the same table with the same offset is listed twice`;
    seen.add(`${table} ${offset}`);
    const mapping = checkMapping({ modelGrain: grain ?? undefined, grain: own, offset });
    if (mapping !== undefined) return `${where}: ${mapping}`;
    if (deadline === undefined) continue;
    if (!grain) return `${where}: a \`deadline\` needs the model's \`grain\`, which says when the period ends`;
    const parsed = parseDeadline(deadline);
    if ("problem" in parsed) return `${where}: ${parsed.problem}`;
  }
  return undefined;
}

async function refuseSql(sql: string, engine: string, engines: ModelsDeps["engines"]): Promise<void> {
  const names = engines.names();
  if (!names.includes(engine)) {
    const known = `${didYouMean(engine, names)} Known: ${names.join(", ")}`;
    throw invalid(`The field \`engine\`: there is no engine \`${engine}\`.${known}`);
  }
  const problem = await engines.syntaxError(engine, sql);
  if (problem !== undefined) throw invalid(`The field \`sql\` cannot be parsed: ${problem}`);
}

async function refuseUnknownChain(chain: string, chains: Names): Promise<void> {
  if ((await chains.existing([chain])).length > 0) return;
  throw unknownName({ field: "chain", what: "chain", name: chain }, await chains.all());
}

async function refuseComputed(tx: Queryable, kpiIds: readonly string[]): Promise<void> {
  const computed = (await kpiTypes(tx, kpiIds)).find(({ type }) => type === "COMPUTED");
  if (computed) throw invalid(`\`${computed.kpi_id}\` is a COMPUTED indicator; a model feeds EXTENDED ones`);
}
