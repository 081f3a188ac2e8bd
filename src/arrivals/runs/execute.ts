/** Executes one run: the model's SQL on its engine, or its chain. Answers the outcome; throws only when it is aborted. */
import type { Engines } from "../../engines/index.ts";
import { isUnavailable } from "../../kernel/data/db.ts";
import { ApiError } from "../../kernel/errors.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { withRetry } from "../../kernel/work/retry.ts";
import { OUTLAST_SESSION } from "../../kernel/work/session.ts";
import { collectValues, ModelFailure } from "../kpis/values.ts";
import type { ModelRow } from "../store/models.ts";
import type { ChainPort } from "./chain-port.ts";
import type { Outcome, Run } from "./finish.ts";
import { runKeyOf } from "./model-flow.ts";

export interface ExecuteDeps {
  engines: Engines;
  chains: ChainPort;
  rowsMax: number;
  bytesMax: number;
  /** Records which chain run does the work. */
  onChainRun(run: Run, chainRunId: string): Promise<void>;
}

export async function execute(deps: ExecuteDeps, run: Run, signal: AbortSignal): Promise<Outcome> {
  const { model } = run;
  try {
    const collected = collectValues(model.kpis);
    if (model.sql !== null) await runSql(deps, model, run.op_time, signal, collected.add);
    else for (const rows of await retryUnavailable(() => runChain(deps, run, signal), signal)) collected.add(rows);
    return { status: "SUCCESS", values: collected.values(), computeCount: collected.computed() };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    return { status: "FAILED", message: sentenceOf(error) };
  }
}

type Row = Record<string, unknown>;
type AddRows = (rows: readonly Readonly<Row>[]) => void;

async function runSql(
  { engines, rowsMax, bytesMax }: ExecuteDeps,
  { engine, sql, timeout_seconds }: ModelRow,
  opTime: string,
  signal: AbortSignal,
  add: AddRows,
): Promise<void> {
  const options = { params: { op_time: opTime }, signal, rowsMax, bytesMax, timeoutMs: timeout_seconds * 1000 };
  for await (const rows of engines.get(engine ?? "").stream(sql ?? "", options)) add(rows);
}

/** The chain continues while the database is briefly unavailable, and is found again by its key. */
function retryUnavailable<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return withRetry(work, { policy: OUTLAST_SESSION, retryOn: isUnavailable, signal });
}

async function runChain(deps: ExecuteDeps, run: Run, signal: AbortSignal): Promise<Row[][]> {
  const { model, op_time: opTime, generation } = run;
  const runId = await deps.chains.start(model.chain ?? "", {
    opTime,
    params: { modelId: model.model_id, generation },
    key: runKeyOf(model, opTime, generation),
    startedBy: `model ${model.model_id}`,
  });
  await deps.onChainRun(run, runId);
  const time = AbortSignal.timeout(model.timeout_seconds * 1000);
  const { status, reason, artifacts } = await deps.chains
    .ended(runId, AbortSignal.any([signal, time]))
    .catch(async (error: unknown) => {
      if (!time.aborted) throw error;
      const tooLong = `Its chain took longer than ${model.timeout_seconds} s.`;
      await deps.chains.stop(runId, tooLong);
      throw new ModelFailure(tooLong);
    });
  if (status !== "SUCCESS")
    throw new ModelFailure(`Run ${runId} of its chain ended as ${status}: ${reason ?? "no reason given"}`);
  return artifacts.map(rowsIn);
}

/** The artifact of a `sql` node has its rows under `rows`. */
function rowsIn(artifact: unknown): Row[] {
  const rows = isRecord(artifact) ? artifact["rows"] : artifact;
  return Array.isArray(rows) ? rows.filter((row) => isRecord(row) && "kpi_id" in row) : [];
}

function sentenceOf(error: unknown): string {
  if (error instanceof ApiError || error instanceof Error) return error.message || "it failed without a message";
  return String(error);
}
