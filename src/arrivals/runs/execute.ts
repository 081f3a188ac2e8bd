/**
 * Executes one run: the model's SQL on its engine, or reads what its chain has returned. Answers the outcome; throws only when
 * it is aborted.
 */
import { EngineRefusal, type Engines } from "../../engines/index.ts";
import { isUnavailable } from "../../kernel/data/db.ts";
import { ApiError } from "../../kernel/errors.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import { withRetry } from "../../kernel/work/retry.ts";
import { OUTLAST_SESSION } from "../../kernel/work/session.ts";
import { failedChecks } from "../kpis/checks.ts";
import { collectValues, ModelFailure } from "../kpis/values.ts";
import type { ValueWrite } from "../store/kpis.ts";
import type { ModelRow } from "../store/models.ts";
import type { ChainPort } from "./chain-port.ts";
import type { Outcome, Run } from "./finish.ts";

export interface ExecuteDeps {
  engines: Engines;
  chains: ChainPort;
  rowsMax: number;
  bytesMax: number;
}

export async function execute(deps: ExecuteDeps, run: Run, signal: AbortSignal): Promise<Outcome> {
  const { model, chain_run_id: chainRunId } = run;
  if (chainRunId === null && model.sql === null) return { status: "PARKED", chainRunId };
  try {
    const collected = collectValues(model.kpis);
    if (chainRunId !== null) {
      const artifacts = await retryUnavailable(() => artifactsOf(deps, run, chainRunId), signal);
      if (artifacts === undefined) return { status: "PARKED", chainRunId };
      for (const artifact of artifacts) collected.add(rowsIn(artifact));
    } else {
      await runSql(deps, model, run.op_time, signal, collected.add);
    }
    return checked(model, { values: collected.values(), computed: collected.computed() });
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const isFinal = error instanceof EngineRefusal || error instanceof StoppedByHand;
    return { status: "FAILED", message: sentenceOf(error), isFinal };
  }
}

/** A result that fails its checks is not stored, unless they only warn. */
function checked(model: ModelRow, { values, computed }: { values: ValueWrite[]; computed: number }): Outcome {
  const problems = failedChecks(model, { values, computed });
  if (problems.length > 0 && model.expect?.onFail !== "warn") {
    return { status: "FAILED", message: problems.join(" "), isFinal: false };
  }
  return { status: "SUCCESS", values, computeCount: computed, warnings: problems };
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

function retryUnavailable<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return withRetry(work, { policy: OUTLAST_SESSION, retryOn: isUnavailable, signal });
}

/** Somebody has stopped the run of its chain; to try again would undo that. */
class StoppedByHand extends ModelFailure {}

/** Undefined if it is under way: it had failed and was continued before this was read. */
async function artifactsOf(
  { chains, bytesMax }: ExecuteDeps,
  { timedOut }: Run,
  chainRunId: string,
): Promise<unknown[] | undefined> {
  const end = await chains.outcome(chainRunId, bytesMax);
  if (end === undefined) return undefined;
  const { status, reason, artifacts, artifactBytes } = end;
  if (status !== "SUCCESS") {
    const sentence = `Run ${chainRunId} of its chain ended as ${status}: ${reason ?? "no reason given"}`;
    throw status === "STOPPED" && !timedOut ? new StoppedByHand(sentence) : new ModelFailure(sentence);
  }
  if (artifacts !== null) return artifacts;
  const returned = `The last nodes of run ${chainRunId} return ${artifactBytes} bytes`;
  throw new ModelFailure(`${returned}, more than the ${bytesMax} that \`arrivals.resultBytesMax\` allows.`);
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
