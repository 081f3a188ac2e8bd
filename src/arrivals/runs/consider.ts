/**
 * Decides what becomes of models for their opTimes: under the lock of each instance, by `judge`, in one transaction with
 * what has changed. However many tables arrive at the same moment, the last of them to get the lock sees all the others.
 */
import type { Queryable, Tx } from "../../kernel/data/db.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import {
  type Cause,
  calmInstances,
  type InstanceAgain,
  type InstanceKey,
  type InstanceMove,
  type InstanceRow,
  lockInstances,
  markAgain,
  moveInstances,
} from "../store/instances.ts";
import { READY_TOPIC } from "../topics.ts";
import { judge, type Verdict } from "./judge.ts";
import { type KnownModel, knownModels, readNeeds } from "./needs.ts";
import { assertMove, type InstanceState, MODEL_STATES, type Trigger } from "./states.ts";

export interface Considered extends InstanceKey {
  /** While it runs: whether another run follows, which an owner may not want. */
  verdict: Verdict | { kind: "running"; followUp: boolean };
  /** Of the run that is under way, or is now wanted. */
  generation: number;
}

export interface Why {
  /** Null leaves the instance the one that it knows. */
  trigger: Trigger | null;
  /** The arrival that each instance is considered for. */
  causeOf?: (key: InstanceKey) => Cause | null;
}

/** The models must be published. A key may come only once. */
export async function consider(
  tx: Queryable,
  keys: readonly InstanceKey[],
  models: ReadonlyMap<string, KnownModel>,
  { trigger, causeOf = () => null }: Why,
): Promise<Considered[]> {
  if (keys.length === 0) return [];
  const instances = await lockInstances(tx, keys);
  const { needs, arrived } = await readNeeds(tx, instances, models);
  const moves: InstanceMove[] = [];
  const running: InstanceAgain[] = [];
  const considered = instances.map((instance): Considered => {
    const { model_id, op_time, state, generation } = instance;
    const model = models.get(model_id);
    if (!model) throw new Error(`model ${model_id} is considered but not known`);
    if (state === "running") {
      running.push({ model_id, op_time, trigger, caused_by: causeOf(instance) });
      const followUp = model.rerun === "auto";
      return { model_id, op_time, generation: generation + 1, verdict: { kind: "running", followUp } };
    }
    const verdict =
      state === "ready"
        ? READY
        : judge({
            needs: needs.get(instance) ?? [],
            arrived,
            consumed: instance.consumed,
            rerun: model.rerun,
            nowMs: instance.now_ms,
          });
    const move = moveFor(instance, verdict);
    const isOwed = verdict.kind === "ready" || verdict.kind === "quiet" || verdict.kind === "asking";
    const cause = isOwed && state !== "ready" && trigger ? { trigger, caused_by: causeOf(instance) } : NO_CAUSE;
    if (move) moves.push({ model_id, op_time, ...move, ...cause });
    return { model_id, op_time, verdict, generation: generation + 1 };
  });
  await moveInstances(tx, moves);
  await markAgain(tx, running);
  return considered;
}

/** Considers instances anew, for no new arrival. Those of models that are not published any more become idle. */
export async function reconsider(
  tx: Tx,
  keys: readonly InstanceKey[],
  trigger: Trigger | null,
  wake: Wake,
): Promise<void> {
  if (keys.length === 0) return;
  const models = await knownModels(
    tx,
    keys.map(({ model_id }) => model_id),
  );
  const isPublished = ({ model_id }: InstanceKey) => models.get(model_id)?.state === MODEL_STATES.published;
  // A table may have arrived in the moment in which a model was unpublished; its instance would be due for ever.
  const unpublished = new Set(keys.filter((key) => !isPublished(key)).map(({ model_id }) => model_id));
  for (const modelId of unpublished) await calmInstances(tx, modelId);
  const considered = await consider(tx, keys.filter(isPublished), models, { trigger });
  if (considered.some(({ verdict }) => verdict.kind === "ready")) tx.afterCommit(() => wake.hint(READY_TOPIC));
}

/** What is ready stays so: a person may have asked for it, with a table missing and nothing new. */
const READY = { kind: "ready" } as const;
const NO_CAUSE = { trigger: null, caused_by: null };

const STATE_OF = {
  waiting: "waiting",
  quiet: "quiet",
  asking: "asking",
  ready: "ready",
  ignored: "idle",
  "nothing new": "idle",
} as const satisfies Record<Verdict["kind"], InstanceState>;

/** What is to be written, if anything. */
function moveFor({ state, due_at }: InstanceRow, verdict: Verdict): Pick<InstanceMove, "state" | "due_at"> | undefined {
  const due = verdict.kind === "quiet" ? new Date(verdict.dueMs) : null;
  const next = STATE_OF[verdict.kind];
  if (next === state && due?.getTime() === due_at?.getTime()) return undefined;
  if (next !== state) assertMove(state, next);
  return { state: next, due_at: due };
}
