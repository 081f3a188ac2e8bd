/** Runs one prepared node to its end: condition, templates, the type's own work, time-out. Answers what to report. */

import { isDeepStrictEqual } from "node:util";
import { isUnavailable } from "../../kernel/data/db.ts";
import { storableJson, storableText } from "../../kernel/data/storable.ts";
import { ExpressionError } from "../../kernel/expressions/cel.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { FinalFailure, mayRetry, type NodeContext, type NodeResult, type SubRun } from "../types/node-type.ts";
import type { Registry } from "../types/registry.ts";
import { type Mask, maskOf, NO_MASK } from "./mask.ts";
import type { NodeOutput } from "./node-output.ts";
import { type PreparedNode, render } from "./prepare.ts";

export type Outcome =
  | { kind: "succeeded"; artifact: unknown; checkpoint?: unknown }
  | { kind: "sub-run"; subRun: SubRun }
  | { kind: "skipped"; reason: string }
  | { kind: "failed"; error: string; final: boolean };

export const ARTIFACT_BYTES_MAX = 1_048_576;
const ERROR_LENGTH_MAX = 4_000;
/** What a time-out leaves a node to put its things in order before it is given up. */
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

/** Ends the wait when the time is up, whether the node listens to its signal or not. */
async function within(work: Promise<NodeResult>, timeoutMs: number, timeout: AbortController): Promise<NodeResult> {
  const tooLate = new Error(`it took longer than its ${timeoutMs} ms`);
  let timer: NodeJS.Timeout | undefined;
  let hopeless: NodeJS.Timeout | undefined;
  const givenUp = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      timeout.abort(tooLate);
      hopeless = setTimeout(() => reject(tooLate), TIMEOUT_GRACE_MS);
    }, timeoutMs);
  });
  try {
    const result = await Promise.race([work, givenUp]);
    if (!timeout.signal.aborted) return result;
  } catch (error) {
    if (!timeout.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
    clearTimeout(hopeless);
  }
  throw tooLate; // Whatever became of it after that: a part of the work is no result.
}

/** Its signal is made when somebody asks for it: that is not cheap, and nodes which do little never do. */
function contextOf(deps: ExecuteDeps, item: PreparedNode, mask: Mask, signal: () => AbortSignal): NodeContext {
  const { run_id, node_id, fence, attempt, parents, checkpoint, run } = item;
  const held = { run_id, node_id, fence };
  return {
    runId: run_id,
    nodeId: node_id,
    attempt,
    // Tries that came back without a result do not count: what they may have done is done over under the same key.
    key: `${run_id}/${node_id}/${attempt - item.returned}`,
    opTime: run.facts.op_time,
    params: run.facts.params,
    parents,
    checkpoint,
    get signal() {
      return signal();
    },
    log: (text, level = "info") => deps.output.line({ ...held, attempt, level, line: mask.text(text) }),
    progress: (share, note) =>
      deps.output.progress({
        ...held,
        progress: Math.min(1, Math.max(0, share)),
        note: note === undefined ? null : mask.text(note),
      }),
    saveCheckpoint: (value) => deps.saveCheckpoint(item, mask.json(kept(value, "checkpoint"))),
  };
}

function outcomeOf({ artifact, checkpoint, subRun }: NodeResult, mask: Mask): Outcome {
  if (subRun) return { kind: "sub-run", subRun: withoutSecrets(copyOf(subRun, "run").copy, mask) as SubRun };
  return {
    kind: "succeeded",
    artifact: artifact === undefined ? null : mask.json(kept(artifact, "artifact")),
    ...(checkpoint === undefined ? {} : { checkpoint: mask.json(kept(checkpoint, "checkpoint")) }),
  };
}

/** With the secret cut out of its params the run would only do the wrong thing. */
function withoutSecrets(subRun: unknown, mask: Mask): unknown {
  if (mask === NO_MASK || isDeepStrictEqual(mask.json(subRun), subRun)) return subRun;
  throw new FinalFailure("it starts a run with a secret in it, which would be stored");
}

/** A copy that can be stored, and that later changes do not reach. */
function copyOf(value: unknown, what: string): { copy: unknown; bytes: number } {
  const json = storableJson(value);
  if ("reason" in json) throw new FinalFailure(`its ${what} cannot be kept: it is ${json.reason}`);
  return json;
}

function kept(value: unknown, what: string): unknown {
  const { copy, bytes } = copyOf(value, what);
  if (bytes <= ARTIFACT_BYTES_MAX) return copy;
  throw new FinalFailure(
    `its ${what} has ${bytes} bytes, more than the ${ARTIFACT_BYTES_MAX} that are kept; keep large results elsewhere and bring their address`,
  );
}

function failureOf(error: unknown, mask: Mask): Outcome {
  const message = mask.text(messageOf(error));
  // A condition or template that cannot be evaluated will not be the next time: what it looks at has ended.
  const final = !mayRetry(error) || (error instanceof ExpressionError && !isUnavailable(error));
  return {
    kind: "failed",
    error: storableText(message || "it failed without a message", ERROR_LENGTH_MAX),
    final,
  };
}
