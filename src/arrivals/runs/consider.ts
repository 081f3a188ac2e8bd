/**
 * Applies `decide` to instances and writes their new states: under the lock of each instance, in one transaction with the
 * change. When several tables arrive concurrently, the last to get the lock sees all the others.
 */
import type { Queryable, Tx } from "../../kernel/data/db.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import {
  type Cause,
  type InstanceAgain,
  type InstanceKey,
  type InstanceMove,
  type InstanceRow,
  lockInstances,
  markAgain,
  moveInstances,
  withdrawInstances,
} from "../store/instances.ts";
import { READY_TOPIC } from "../topics.ts";
import { decide, type Verdict } from "./decide.ts";
import { type KnownModel, knownModels, readNeeds } from "./needs.ts";
import { assertMove, type InstanceState, isUnderWay, MODEL_STATES, type Trigger } from "./states.ts";

export interface Considered extends InstanceKey {
  /** While a run is under way: whether another run follows, which `rerun` decides. */
  verdict: Verdict | { kind: "running"; followUp: boolean };
  /** Of the run in flight, or of the next one. */
  generation: number;
}

export interface Why {
  /** Null keeps the trigger that the instance has. */
  trigger: Trigger | null;
  /** The arrival that each instance is considered for. */
  causeOf?: (key: InstanceKey) => Cause | null;
  /** An arrival was retracted: also those are judged that are ready, unless a person asked for them. */
  judgesReady?: true;
}

/** The models must be published. No key may occur twice. */
export async function consider(
  tx: Queryable,
  keys: readonly InstanceKey[],
  models: ReadonlyMap<string, KnownModel>,
  { trigger, causeOf = () => null, judgesReady }: Why,
): Promise<Considered[]> {
  if (keys.length === 0) return [];
  const instances = await lockInstances(tx, keys);
  const { needs, arrived } = await readNeeds(tx, instances, models);
  const moves: InstanceMove[] = [];
  const running: InstanceAgain[] = [];
  const considered = instances.map((instance): Considered => {
    const { model_id, op_time, state, generation } = instance;
    const model = models.get(model_id);
    if (!model) throw new Error(`model ${model_id} is considered but was not read`);
    if (isUnderWay(state)) {
      running.push({ model_id, op_time, trigger, caused_by: causeOf(instance) });
      const followUp = model.rerun === "auto";
      return { model_id, op_time, generation: generation + 1, verdict: { kind: "running", followUp } };
    }
    const verdict =
      state === "ready" && !(judgesReady && !BY_HAND.has(instance.trigger))
        ? READY
        : decide({
            needs: needs.get(instance) ?? [],
            arrived,
            consumed: instance.consumed,
            rerun: model.rerun,
            nowMs: instance.now_ms,
          });
    // Something live has come for a period of a backfill: it goes before the rest of that.
    if (state === "ready" && instance.trigger === "backfill" && trigger && trigger !== "backfill") {
      moves.push({ model_id, op_time, state: "ready", due_at: null, trigger, caused_by: causeOf(instance) });
      return { model_id, op_time, verdict, generation: generation + 1 };
    }
    const move = state === "retrying" ? moveForRetry(instance, verdict) : moveFor(instance, verdict);
    const isDue = verdict.kind === "ready" || verdict.kind === "quiet" || verdict.kind === "asking";
    const cause = isDue && state !== "ready" && trigger ? { trigger, caused_by: causeOf(instance) } : NO_CAUSE;
    if (move) moves.push({ model_id, op_time, ...move, ...cause });
    const isSameRun = state === "retrying" && move?.state !== "waiting";
    return { model_id, op_time, verdict, generation: isSameRun ? generation : generation + 1 };
  });
  await moveInstances(tx, moves);
  await markAgain(tx, running);
  return considered;
}

/** Considers instances again without a new arrival. Those of unpublished models become idle. */
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
  // A table may arrive while its model is being unpublished; without this its instance would stay due.
  const unpublished = new Set(keys.filter((key) => !isPublished(key)).map(({ model_id }) => model_id));
  for (const modelId of unpublished) await withdrawInstances(tx, modelId);
  const considered = await consider(tx, keys.filter(isPublished), models, { trigger });
  if (considered.some(({ verdict }) => verdict.kind === "ready")) tx.afterCommit(() => wake.hint(READY_TOPIC));
}

/** A ready instance stays ready: a person may have requested the run although a table is missing or nothing is new. */
const READY = { kind: "ready" } as const;
const BY_HAND: ReadonlySet<Trigger | null> = new Set<Trigger | null>(["run", "retry", "backfill"]);
const NO_CAUSE = { trigger: null, caused_by: null };

const STATE_OF = {
  waiting: "waiting",
  quiet: "quiet",
  asking: "asking",
  ready: "ready",
  ignored: "idle",
  "nothing new": "idle",
} as const satisfies Record<Verdict["kind"], InstanceState>;

/**
 * Something has changed since its last attempt failed: the next one begins at once, or after the quiet period. What a person
 * asked for is tried again whatever has arrived.
 */
function moveForRetry({ trigger }: InstanceRow, verdict: Verdict): Pick<InstanceMove, "state" | "due_at"> | undefined {
  switch (verdict.kind) {
    case "ready":
      return { state: "ready", due_at: null };
    case "quiet":
      return { state: "retrying", due_at: new Date(verdict.dueMs) };
    case "waiting":
      return BY_HAND.has(trigger) ? undefined : { state: "waiting", due_at: null };
    case "asking":
    case "ignored":
    case "nothing new":
      return undefined;
  }
}

/** The change to write, if any. */
function moveFor({ state, due_at }: InstanceRow, verdict: Verdict): Pick<InstanceMove, "state" | "due_at"> | undefined {
  const due = verdict.kind === "quiet" ? new Date(verdict.dueMs) : null;
  const next = STATE_OF[verdict.kind];
  if (next === state && due?.getTime() === due_at?.getTime()) return undefined;
  if (next !== state) assertMove(state, next);
  return { state: next, due_at: due };
}
