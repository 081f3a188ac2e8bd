/** Runs one prepared node: condition, templates, the type's `execute`, time-out. Returns the outcome to report. */
import { isDeepStrictEqual } from "node:util";
import { isUnavailable } from "../../kernel/data/db.ts";
import { storableJson, storableText } from "../../kernel/data/storable.ts";
import { ExpressionError } from "../../kernel/expressions/cel.ts";
import { type Mask, maskOf, NO_MASK } from "../../kernel/secrets/mask.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import {
  ARTIFACT_BYTES_MAX,
  FinalFailure,
  mayRetry,
  type NodeContext,
  type NodeResult,
  type SubRun,
  type Wait,
} from "../types/node-type.ts";
import type { Registry } from "../types/registry.ts";
import type { NodeOutput } from "./node-output.ts";
import { type PreparedNode, render } from "./prepare.ts";

export type Outcome =
  | { kind: "succeeded"; artifact: unknown; checkpoint?: unknown }
  | { kind: "sub-run"; subRun: SubRun }
  | { kind: "wait"; wait: Wait }
  | { kind: "skipped"; reason: string }
  | { kind: "failed"; error: string; final: boolean };

const ERROR_LENGTH_MAX = 4_000;
/** Lines that an attempt can log. What it logs beyond that is dropped, and the last line says so. */
const LOG_LINES_MAX = 100_000;
/** How long a node that timed out may take to end before it is abandoned. */
const TIMEOUT_GRACE_MS = 5_000;

export interface ExecuteDeps {
  registry: Registry;
  output: NodeOutput;
  saveCheckpoint(item: PreparedNode, value: unknown): Promise<void>;
}

export async function execute(deps: ExecuteDeps, item: PreparedNode, stop: AbortController): Promise<Outcome> {
  let mask = NO_MASK;
  try {
    const rendered = render(item, deps.registry);
    if ("skippedBecause" in rendered) return { kind: "skipped", reason: rendered.skippedBecause };
    const { type, cfg, secrets } = rendered;
    mask = maskOf(secrets);
    const { timeoutMs } = item.node.def;
    const timeout = timeoutMs === undefined ? undefined : { ms: timeoutMs, control: new AbortController() };
    const either = timeout && AbortSignal.any([stop.signal, timeout.control.signal]);
    const context = contextOf(deps, item, mask, () => either ?? stop.signal);
    const work = type.execute(context, cfg);
    return outcomeOf(timeout ? await within(work, timeout.ms, timeout.control) : await work, mask);
  } catch (error) {
    return failureOf(error, mask);
  }
}

/** Aborts the work at its time-out, and stops waiting for it TIMEOUT_GRACE_MS later. */
async function within(work: Promise<NodeResult>, timeoutMs: number, timeout: AbortController): Promise<NodeResult> {
  const timedOut = new Error(`it took longer than its ${timeoutMs} ms`);
  let timer: NodeJS.Timeout | undefined;
  let graceTimer: NodeJS.Timeout | undefined;
  const abandoned = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      timeout.abort(timedOut);
      graceTimer = setTimeout(() => reject(timedOut), TIMEOUT_GRACE_MS);
    }, timeoutMs);
  });
  try {
    const result = await Promise.race([work, abandoned]);
    if (!timeout.signal.aborted) return result;
  } catch (error) {
    if (!timeout.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
    clearTimeout(graceTimer);
  }
  throw timedOut; // A result after the time-out is ignored: it may be incomplete.
}

/** The signal is created on first access: that is expensive, and short nodes do not use it. */
function contextOf(deps: ExecuteDeps, item: PreparedNode, mask: Mask, signal: () => AbortSignal): NodeContext {
  const { run_id, node_id, fence, attempt, parents, checkpoint, run } = item;
  const held = { run_id, node_id, fence };
  let logged = 0;
  function log(text: string, level = "info"): void {
    logged += 1;
    if (logged <= LOG_LINES_MAX) deps.output.line({ ...held, attempt, level, line: mask.text(text) });
    else if (logged === LOG_LINES_MAX + 1) {
      const line = `The log ends here: an attempt can log ${LOG_LINES_MAX} lines.`;
      deps.output.line({ ...held, attempt, level: "warn", line });
    }
  }
  return {
    runId: run_id,
    nodeId: node_id,
    attempt,
    // Attempts without a result do not count, so that their effects are repeated under the same key. Also in
    // store/node-waits.ts.
    key: `${run_id}/${node_id}/${attempt - item.returned}`,
    opTime: run.facts.op_time,
    params: run.facts.params,
    parents,
    checkpoint,
    get signal() {
      return signal();
    },
    log,
    progress: (share, note) =>
      deps.output.progress({
        ...held,
        progress: Math.min(1, Math.max(0, share)),
        note: note === undefined ? null : mask.text(note),
      }),
    saveCheckpoint: (value) => deps.saveCheckpoint(item, mask.json(storable(value, "checkpoint"))),
  };
}

function outcomeOf({ artifact, checkpoint, subRun, wait }: NodeResult, mask: Mask): Outcome {
  if (wait) return { kind: "wait", wait };
  if (subRun) return { kind: "sub-run", subRun: withoutSecrets(copyOf(subRun, "run").copy, mask) as SubRun };
  return {
    kind: "succeeded",
    artifact: artifact === undefined ? null : mask.json(storable(artifact, "artifact")),
    ...(checkpoint === undefined ? {} : { checkpoint: mask.json(storable(checkpoint, "checkpoint")) }),
  };
}

/** A run whose params contain a secret is refused: with masked params it would do the wrong thing. */
function withoutSecrets(subRun: unknown, mask: Mask): unknown {
  if (mask === NO_MASK || isDeepStrictEqual(mask.json(subRun), subRun)) return subRun;
  throw new FinalFailure("it starts a run with a secret in it, which would be stored");
}

/** A deep copy that can be stored. */
function copyOf(value: unknown, what: string): { copy: unknown; bytes: number } {
  const json = storableJson(value);
  if ("reason" in json) throw new FinalFailure(`its ${what} cannot be stored: it is ${json.reason}`);
  return json;
}

function storable(value: unknown, what: string): unknown {
  const { copy, bytes } = copyOf(value, what);
  if (bytes <= ARTIFACT_BYTES_MAX) return copy;
  throw new FinalFailure(
    `its ${what} has ${bytes} bytes, more than the ${ARTIFACT_BYTES_MAX} allowed; store large results elsewhere and return a reference`,
  );
}

function failureOf(error: unknown, mask: Mask): Outcome {
  const message = mask.text(messageOf(error));
  // A condition or template that fails would fail again: the parents that it reads have ended.
  const final = !mayRetry(error) || (error instanceof ExpressionError && !isUnavailable(error));
  return {
    kind: "failed",
    error: storableText(message || "it failed without a message", ERROR_LENGTH_MAX),
    final,
  };
}
