/** Explains why a model ran for an opTime or has not: what it needs, what arrived when, which run used it, what would make it run. */

import type { Role } from "../../kernel/config/settings.ts";
import type { Db } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import { listed } from "../../kernel/text/sentences.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { grainOf, meantOpTime } from "../../kernel/time/op-time.ts";
import { policyOf } from "../../kernel/work/retry-fields.ts";
import { servedRoles } from "../../kernel/work/session.ts";
import { formulaOf, readParts } from "../kpis/computed.ts";
import { evaluateFormula } from "../kpis/formula.ts";
import { decide, keyOf, type Need, type Verdict } from "../runs/decide.ts";
import { arrivedOf, knownModels, needsOf } from "../runs/needs.ts";
import { type InstanceState, isUnderWay, MODEL_STATES } from "../runs/states.ts";
import { findRetracted, type Retracted } from "../store/arrivals.ts";
import { findInstances, type InstanceRow } from "../store/instances.ts";
import { dependingKpis } from "../store/kpis.ts";
import { findModel, type ModelRow } from "../store/models.ts";
import { listTasks, type TaskRow } from "../store/tasks.ts";
import { unknownModel } from "../unknown-names.ts";
import { usualTimes } from "./usual-time.ts";

export interface Explanation {
  modelId: string;
  opTime: string;
  state: string;
  verdict: string;
  tables: TableSeen[];
  /** The next attempt, if the last one failed and another one is due. */
  retry: NextAttempt | null;
  runs: TaskRow[];
  wouldRun: string[];
  computed: { kpiId: string; missing: string[] }[];
}

interface NextAttempt {
  attempt: number;
  maxAttempts: number;
  at: Date;
}

interface TableSeen {
  table: string;
  opTime: string;
  optional: boolean;
  missing: boolean;
  /** When it becomes late, or became late. */
  deadline: Date | null;
  arrivedAt: Date | null;
  sequence: string | null;
  /** Who announced it. */
  announcedBy: string | null;
  /** When and by whom it was taken back, if it has not arrived since. */
  retractedAt: Date | null;
  retractedBy: string | null;
  /** When it usually arrives, if it is missing and has arrived before. */
  usualAt: Date | null;
  /** The newest run that used this arrival. */
  consumedBy: { taskId: string; generation: number } | null;
}

const RUNS_SHOWN = 20;
const REASONS_SHOWN = 5;

export async function explain(db: Db, clock: Clock, modelId: string, opTime: string): Promise<Explanation> {
  const model = (await knownModels(db, [modelId])).get(modelId);
  const row = await findModel(db, modelId);
  if (!model || !row) throw await unknownModel(db, modelId);
  if (model.grain !== null && grainOf(opTime) !== model.grain) {
    const reason = `The opTimes of model \`${modelId}\` are ${model.grain}s, which \`${opTime}\` is not`;
    throw invalid(`${reason}${meantOpTime(opTime, model.grain)}`);
  }
  const needs = needsOf(model, opTime);
  const arrived = await arrivedOf(db, needs);
  const [instance] = await findInstances(db, [{ model_id: modelId, op_time: opTime }]);
  const { items: runs } = await listTasks(db, { modelId, opTime, status: null, page: 1, size: RUNS_SHOWN });
  const verdict = decide({
    needs,
    arrived,
    consumed: instance?.consumed ?? null,
    rerun: model.rerun,
    nowMs: instance?.now_ms ?? clock.now(),
  });
  const missing = needs.filter((need) => !arrived.has(keyOf(need)));
  const usual = await usualTimes(db, missing, model.time_zone);
  const retracted = await retractedOf(db, needs);
  const tables = needs.map((need): TableSeen => {
    const found = arrived.get(keyOf(need));
    const user = runs.find(({ consumed }) => found && consumed[keyOf(need)] === found.sequence);
    return {
      table: need.table,
      opTime: need.opTime,
      optional: need.optional,
      missing: !found,
      deadline: need.deadlineMs === null ? null : new Date(need.deadlineMs),
      arrivedAt: found ? new Date(found.atMs) : null,
      sequence: found?.sequence ?? null,
      announcedBy: found?.by ?? null,
      retractedAt: retracted.get(keyOf(need))?.retracted_at ?? null,
      retractedBy: retracted.get(keyOf(need))?.retracted_by ?? null,
      usualAt: usual.get(keyOf(need)) ?? null,
      consumedBy: user ? { taskId: user.id, generation: user.generation } : null,
    };
  });
  const retry = nextAttempt(row, instance);
  const words = {
    ...(retry
      ? sentencesOfRetry(row, retry, runs[0])
      : sentencesOf(row, instance, isTimed(verdict, instance) ? verdict : { kind: "ready" }, runs)),
    ...(await unserved(db, instance)),
  };
  return {
    modelId,
    opTime,
    state: instance?.state ?? "idle",
    ...words,
    verdict: [words.verdict, ...retractions(retracted, instance)].join(" "),
    tables,
    retry,
    runs,
    computed: await missingComputed(db, row.kpis, opTime),
  };
}

function nextAttempt({ retry }: ModelRow, instance: InstanceRow | undefined): NextAttempt | null {
  if (instance?.state !== "retrying" || instance.due_at === null) return null;
  const attempt = instance.failed_attempts + 1;
  return { attempt, maxAttempts: Math.max(policyOf(retry).maxAttempts, attempt), at: instance.due_at };
}

function sentencesOfRetry(model: ModelRow, { attempt, maxAttempts, at }: NextAttempt, last: TaskRow | undefined) {
  return {
    verdict: `Attempt ${attempt} of ${maxAttempts} begins at ${at.toISOString()}. The last one failed: ${last?.message ?? "?"}`,
    wouldRun: [
      "The end of that wait.",
      ARRIVES_AGAIN,
      `A change of the model, such as ${model.sql === null ? "another chain" : "corrected SQL"} (PUT ${pathOf(model)}).`,
      `POST ${pathOf(model)}:run.`,
    ],
  };
}

const ARRIVES_AGAIN = "Any of its tables arriving again.";

function pathOf({ model_id: modelId }: ModelRow): string {
  return `/api/v1/kpi/models/${modelId}`;
}

/** A change of the model alone runs nothing. */
function stepsAfterFailure(model: ModelRow): string[] {
  const correct =
    model.sql === null
      ? `If its chain \`${model.chain}\` is at fault: correct that, then run the model again.`
      : `If its SQL is at fault: correct it (PUT ${pathOf(model)}), then run it again.`;
  return [correct, `POST ${pathOf(model)}:retry.`];
}

const ROLE_OF_STATE: Partial<Record<InstanceState, Role>> = {
  ready: "worker",
  quiet: "scheduler",
  retrying: "scheduler",
};
const WAITS_THERE: Partial<Record<InstanceState, string>> = {
  ready: "It is ready",
  quiet: "All tables have arrived",
  retrying: "Its last attempt failed and the next one is due",
};

/** The verdict on an instance that waits for a process with a role that none has. */
async function unserved(db: Db, instance: InstanceRow | undefined): Promise<{ verdict?: string }> {
  const role = instance && ROLE_OF_STATE[instance.state];
  if (!instance || role === undefined || (await servedRoles(db)).has(role)) return {};
  return {
    verdict: `${WAITS_THERE[instance.state]}; it waits for a process with the role \`${role}\`: none is alive.`,
  };
}

/** Only an instance in the state `quiet` has a timer: tables that arrived before the model was published set none. */
function isTimed({ kind }: Verdict, instance: InstanceRow | undefined): boolean {
  return kind !== "quiet" || instance?.state === "quiet";
}

/** The verdict in words, and what would make it run. */
function sentencesOf(
  model: ModelRow,
  instance: InstanceRow | undefined,
  verdict: Verdict,
  runs: readonly TaskRow[],
): { verdict: string; wouldRun: string[] } {
  const { state, rerun } = model;
  const [last] = runs;
  const byHand = `POST ${pathOf(model)}:run`;
  if (state !== MODEL_STATES.published) {
    return {
      verdict: "The model is not published, so arrivals do not run it.",
      wouldRun: ["Publish it: later arrivals run it."],
    };
  }
  if (instance && isUnderWay(instance.state)) {
    const next = rerun === "auto" ? ", so it will run again" : "";
    const more = instance.again ? ` Something arrived meanwhile${next}.` : "";
    const chain = instance.state === "parked" ? `, and waits for run ${last?.chain_run_id ?? "?"} of its chain` : "";
    return { verdict: `It is running, as generation ${last?.generation ?? "?"}${chain}.${more}`, wouldRun: [] };
  }
  if (instance?.state === "ready") return { verdict: "Queued: waiting for a free worker.", wouldRun: [] };
  switch (verdict.kind) {
    case "waiting":
      return {
        verdict: `Waiting for ${verdict.missing.length === 1 ? "a table" : `${verdict.missing.length} tables`}: ${listed(verdict.missing.map(keyOf), REASONS_SHOWN)}.`,
        wouldRun: [
          `The arrival of ${listed(verdict.missing.map(keyOf), REASONS_SHOWN)}.`,
          ...deadlineThatFrees(verdict.missing),
          `${byHand} with \`force: true\`.`,
        ],
      };
    case "quiet":
      return {
        verdict: `All tables have arrived; it waits until ${new Date(verdict.dueMs).toISOString()} in case one arrives again.`,
        wouldRun: ["The end of the quiet period.", `${byHand}.`],
      };
    case "asking":
      return {
        verdict: "A table has arrived again. The rerun needs approval (rerun: ask).",
        wouldRun: [`${byHand}.`],
      };
    case "ignored":
      return {
        verdict: "A table has arrived again, but the model ignores that (rerun: ignore).",
        wouldRun: [`${byHand}.`],
      };
    case "nothing new": {
      const success = runs.find(({ status }) => status === "SUCCESS");
      const again = rerun === "auto" ? [ARRIVES_AGAIN] : [];
      if (last?.status === "FAILED") {
        const used = `${success ? `generation ${success.generation}` : "an earlier one"} has used everything that has arrived`;
        return {
          // The message comes last, because it may have several lines.
          verdict: `${lastFailed(last)}; ${used}, and its values stay. The error: ${last.message}`,
          wouldRun: [...stepsAfterFailure(model), ...again],
        };
      }
      const inGeneration = success ? `, in generation ${success.generation}` : "";
      return {
        verdict: `It has used everything that has arrived${inGeneration}. ${warningOf(success)}`.trimEnd(),
        wouldRun: [...again, `${byHand}.`],
      };
    }
    case "ready":
      return last?.status === "FAILED"
        ? {
            verdict: `${lastFailed(last)}: ${last.message}`,
            wouldRun: [...stepsAfterFailure(model), ARRIVES_AGAIN],
          }
        : {
            verdict: "All tables have arrived, but before the model was published or last changed.",
            wouldRun: [ARRIVES_AGAIN, `${byHand}, or :backfill for a range.`],
          };
  }
}

/** Attempts of one run share its generation. */
function lastFailed({ generation }: TaskRow): string {
  return `Its last run, generation ${generation}, failed`;
}

function warningOf(success: TaskRow | undefined): string {
  return success && success.warnings.length > 0 ? `That run has warnings: ${success.warnings.join(" ")}` : "";
}

/** If only optional tables are missing, the model runs without them after their deadlines. */
function deadlineThatFrees(missing: readonly Need[]): string[] {
  const times = missing.map(({ optional, deadlineMs }) => (optional ? deadlineMs : null));
  if (times.some((time) => time === null)) return [];
  return [`The deadline at ${new Date(Math.max(...times.map(Number))).toISOString()}: what is missing is optional.`];
}

/** The COMPUTED indicators that depend on the model and lack values, with the reasons. */
async function missingComputed(db: Db, kpiIds: readonly string[], opTime: string) {
  const formulas = (await dependingKpis(db, kpiIds)).map(formulaOf);
  const parts = await readParts(
    db,
    opTime,
    formulas.flatMap(({ references }) => references),
  );
  return formulas.flatMap((formula) => {
    const { missing } = evaluateFormula(formula, parts);
    if (missing.length === 0) return [];
    const reasons = missing.slice(0, REASONS_SHOWN).map(({ dimensions, reasons: said }) => {
      const of = Object.keys(dimensions).length > 0 ? `${JSON.stringify(dimensions)}: ` : "";
      return `${of}${said.join(" ")}`;
    });
    return [{ kpiId: formula.kpiId, missing: reasons }];
  });
}

async function retractedOf(db: Db, needs: readonly Need[]): Promise<Map<string, Retracted>> {
  const keys = new Map(
    needs.map(({ table, opTime }) => [keyOf({ table, opTime }), { table_name: table, op_time: opTime }]),
  );
  const rows = await findRetracted(db, [...keys.values()]);
  return new Map(rows.map((row) => [keyOf({ table: row.table_name, opTime: row.op_time }), row]));
}

/** A sentence for each table that was taken back, the first ones. */
function retractions(retracted: ReadonlyMap<string, Retracted>, instance: InstanceRow | undefined): string[] {
  return [...retracted].slice(0, REASONS_SHOWN).map(([key, { table_name, op_time, retracted_by }]) => {
    const used = instance?.consumed?.[key] === undefined ? "" : " Its last success has used it, and its values stay.";
    return `${table_name} ${op_time} was retracted by ${retracted_by}.${used}`;
  });
}
