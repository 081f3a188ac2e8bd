/**
 * The planner: a trigger becomes a plan, its slices and their tasks, in one transaction. It makes no requests; a slice that
 * turns out too large is split by the process that executes it.
 *
 * Where the queue of an endpoint is full, a plan stays PARTIAL, and `continuePlans` slices the rest once the queue is half empty.
 */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import { type Db, isUnavailable, type Queryable, sqlState, type Tx } from "../../kernel/data/db.ts";
import { type ApiError, invalid } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Outbox } from "../../kernel/work/outbox.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type HarvestHints, type HarvestMetrics, harvestError } from "../catalogue.ts";
import type { Landing } from "../landing/landing.ts";
import { PRIORITIES, type Snapshot } from "../spec/snapshot.ts";
import { firstWindow, readWatermark } from "../store/cursors/cursors.ts";
import { cancelPlan, lockTasksOf, planStatus } from "../store/plans/plan-ends.ts";
import * as store from "../store/plans/plans.ts";
import { closeDecided } from "../store/records/quarantine-signals.ts";
import { NODES_TOPIC, PLANS_TOPIC, TASKS_TOPIC } from "../topics.ts";
import { chooseBackfill } from "./backfill.ts";
import { planRefused } from "./events.ts";
import { previewOf } from "./preview.ts";
import { chooseRange, nothingIn } from "./range.ts";
import {
  type Choice,
  credentialOf,
  type Draft,
  endpointOf,
  instanceOf,
  isCallersMistake,
  isRefusal,
  landingNotes,
  type Nothing,
  namespaceOf,
  nothingToPlan,
  type Outcome,
  type PlanMade,
  type PlanRequest,
  partitionKeyOf,
  type Resolved,
  type Sources,
  type Trigger,
  widestOf,
} from "./request.ts";
import { countEnded, type Settle } from "./settle.ts";
import { type Sizes, sizesOf } from "./sizes.ts";
import { firstOf, refuseTooMany, restOf, sliceBatches, windowsOf } from "./slices.ts";
import { chooseUpdate, type IdPart, slicePartsIn } from "./update.ts";
import type { Range } from "./window.ts";

export interface Planner {
  /** Throws what is wrong with the request, and HARVEST_NOTHING_TO_PLAN. */
  create(request: PlanRequest, actor: Actor): Promise<PlanMade>;
  preview(request: PlanRequest): Promise<Draft>;
  cancel(planId: string, actor: Actor): Promise<void>;
  /** Cancels it in a transaction of its own, unless `isWanted` says otherwise or the plan has ended. */
  cancelUnless(isWanted: (tx: Tx) => Promise<boolean>, planId: string, reason: string): Promise<void>;
  /** Slices the rest of plans that waited for room in the queue. Answers how many slices, and whether plans still wait. */
  continuePlans(): Promise<{ sliced: number; waiting: number }>;
  resolve(request: PlanRequest): Promise<Resolved>;
  planIn(tx: Tx, resolved: Resolved, trigger: Trigger): Promise<Outcome>;
  /** Keeps why a trigger made no plan, and sends an alert where the definition is at fault. */
  refuseIn(tx: Tx, request: PlanRequest, trigger: Trigger, error: ApiError): Promise<void>;
}

/** Slices in one transaction. The planner goes on with the rest at once. */
const SLICES_AT_ONCE = 10_000;
/** Plans that are looked at for one run of the service. */
const PARTIAL_AT_ONCE = 1_000;
const REASON_LENGTH_MAX = 2_000;
export interface PlannerDeps {
  db: Db;
  wake: Wake;
  hints: HarvestHints;
  clock: Clock;
  ids: Ids;
  outbox: Outbox;
  sources: Sources;
  settle: Settle;
  landing: Pick<Landing, "wantCancelled">;
  metrics: HarvestMetrics;
  log: ServiceLog;
}

export function createPlanner(deps: PlannerDeps): Planner {
  const { db, wake, hints, clock, ids, outbox, sources, settle, landing, metrics, log } = deps;
  const hintTasks = () => wake.hint(TASKS_TOPIC);
  const hintPlans = () => wake.hint(PLANS_TOPIC);

  async function resolve(request: PlanRequest): Promise<Resolved> {
    const { operation, params = {} } = request;
    const signal = request.ids ? "ids" : request.quarantined ? "quarantined" : undefined;
    if (signal && operation !== "UPDATE") throw invalid(`The field \`${signal}\` is for UPDATE, not for ${operation}`);
    const source = await sources.get(request.source);
    const endpoint = endpointOf(source, request.endpoint);
    const compiled = await sources.compile(source, endpoint, operation, { params });
    const endpointId = source.endpointIds.get(endpoint);
    if (endpointId === undefined) throw new Error(`the endpoint ${endpoint} of ${source.source} has no id`);
    return { ...compiled, request, endpoint, endpointId };
  }

  async function choose(reader: Queryable, resolved: Resolved, now: Date): Promise<Choice | Nothing> {
    const { request, snapshot } = resolved;
    const { window } = snapshot.spec;
    const namespace = namespaceOf(resolved);
    if (request.operation === "UPDATE") return chooseUpdate(reader, resolved, now);
    if (window && request.operation === "BACKFILL") return chooseBackfill(reader, resolved, window, now);
    if (!window) {
      if (request.window) throw invalid("The endpoint knows no time: leave out `window`");
      const open = await store.openPlan(reader, namespace);
      if (open !== undefined) return { nothing: `The plan ${open} is harvesting this endpoint`, closesAt: null };
      return { window: null, ranges: [], strategy: "WHOLE", notes: [] };
    }
    // Before the first watermark, what earlier plans left open is still missing.
    const watermark = request.window
      ? undefined
      : ((await readWatermark(reader, {
          provenance_code: request.source,
          operation_code: request.operation,
          cursor_key: window.watermarkKey,
          namespace_scope_code: namespace.scope,
          namespace_key: namespace.key,
        })) ?? (await firstWindow(reader, namespace)));
    const chosen = chooseRange(window, request.window, { now, watermark });
    if ("nothing" in chosen) return chosen;
    const { range } = chosen;
    const notes = [...chosen.notes, ...landingNotes(resolved)];
    const ranges = request.window
      ? [range]
      : await store.missingRanges(reader, namespace, { ...range, widestMs: widestOf(snapshot) }, store.NO_PLAN);
    refuseTooMany(snapshot, ranges);
    if (request.window) return { window: range, ranges, strategy: "TIME", notes };
    const [first, last] = [ranges[0], ranges.at(-1)];
    if (!first || !last) return nothingIn(window, range.to);
    return { window: { from: first.from, to: last.to }, ranges, strategy: "MISSING", notes };
  }

  async function planIn(tx: Tx, resolved: Resolved, trigger: Trigger): Promise<Outcome> {
    const { request, endpoint, snapshot } = resolved;
    const partitionKey = partitionKeyOf(resolved);
    await store.lockPartition(tx, partitionKey);
    const plannedAt = new Date(clock.now());
    const scheduleInstanceId = ids.uuid();
    const planId = ids.uuid();
    if (request.operation === "UPDATE") await closeDecided(tx, resolved.endpointId, resolved.exprProtoHash);
    const choice = await choose(tx, resolved, plannedAt);
    const isNew = await store.insertInstance(tx, {
      ...instanceOf(request, endpoint, trigger),
      schedule_instance_id: scheduleInstanceId,
      expr_proto_hash: resolved.exprProtoHash,
      record_remarks: "nothing" in choice ? { nothing: `${choice.nothing}.` } : { planId },
    });
    if (!isNew) return { repeated: true };
    if ("nothing" in choice) return choice;
    const { window, ranges, parts, strategy, notes } = choice;
    const { source, operation, priority = PRIORITIES[operation] } = request;
    const { warnings } = resolved;
    const namespace = namespaceOf(resolved);
    const sizes = await sizesOf(tx, snapshot, namespace, ranges);
    const { estimate = null } = sizes;
    await store.insertPlan(tx, {
      ...namespace,
      planId,
      scheduleInstanceId,
      source,
      endpoint,
      operation,
      window,
      strategy,
      specFingerprint: resolved.specFingerprint,
      exprProtoHash: resolved.exprProtoHash,
      snapshot,
      origins: resolved.origins,
      partitionKey,
      priority,
      plannedAt,
      remarks: {
        ...(notes.length > 0 ? { notes } : {}),
        ...(warnings.length > 0 ? { warnings } : {}),
        ...(estimate ? { estimate } : {}),
      },
    });
    const sliced = await sliceIn(tx, {
      ...resolved,
      planId,
      scheduleInstanceId,
      partitionKey,
      ranges,
      parts,
      sizes,
      lastNo: 0,
    });
    const status = sliced.unslicedFrom === null ? "READY" : "PARTIAL";
    return {
      plan: {
        planId,
        scheduleInstanceId,
        status,
        source,
        endpoint,
        operation,
        window,
        priority,
        plannedAt,
        estimate,
        notes,
        warnings,
        ...sliced,
      },
    };
  }

  interface Slicing {
    planId: string;
    scheduleInstanceId: string;
    snapshot: Snapshot;
    exprProtoHash: string;
    partitionKey: string;
    ranges: readonly Range[];
    /** For UPDATE, instead of windows. */
    parts?: readonly IdPart[] | undefined;
    sizes: Sizes;
    lastNo: number;
  }

  /** Slices as much as the queue has room for. The partition is locked. */
  async function sliceIn(tx: Tx, plan: Slicing): Promise<{ slices: number; unslicedFrom: Date | null }> {
    const { planId, snapshot, partitionKey } = plan;
    const { queuedTasksMax } = snapshot.spec.budget;
    if (!(await store.beginSlicing(tx, planId))) throw new Error(`plan ${planId} is locked but cannot be sliced`);
    const task = { partitionKey, credential: credentialOf(snapshot), params: snapshot.params };
    if (plan.parts) {
      const made = await slicePartsIn(tx, { ...plan, parts: plan.parts }, task);
      if (!(await store.endSlicing(tx, planId, null))) throw new Error(`plan ${planId} is locked but not SLICING`);
      hints.changed(tx, "plan", planId);
      tx.afterCommit(hintTasks);
      return { slices: made, unslicedFrom: null };
    }
    const queued = await store.queuedTasks(tx, partitionKey, queuedTasksMax);
    // Without a window there is no time to go on from, so all slices are made at once; a definition has no more ids than that.
    const limit = snapshot.spec.window ? Math.min(queuedTasksMax - queued, SLICES_AT_ONCE) : SLICES_AT_ONCE;
    const windows = windowsOf(snapshot, plan.ranges, plan.sizes.widthMs);
    let slices = 0;
    for (const batch of sliceBatches(plan, firstOf(windows, limit), plan.lastNo)) {
      await store.insertSlices(tx, planId, task, batch);
      slices += batch.length;
    }
    const next = windows.next();
    const isBackwards = snapshot.operation === "BACKFILL";
    const left = next.done || !next.value || "part" in next.value ? null : next.value;
    const unslicedFrom = (isBackwards ? left?.to : left?.from) ?? null;
    if (!(await store.endSlicing(tx, planId, unslicedFrom)))
      throw new Error(`plan ${planId} is locked but not SLICING`);
    hints.changed(tx, "plan", planId);
    if (slices > 0) tx.afterCommit(hintTasks);
    if (unslicedFrom !== null) tx.afterCommit(hintPlans);
    return { slices, unslicedFrom };
  }

  async function refuseIn(tx: Tx, request: PlanRequest, trigger: Trigger, error: ApiError): Promise<void> {
    const scheduleInstanceId = ids.uuid();
    const { problems } = error.details;
    const isNew = await store.insertInstance(tx, {
      ...instanceOf(request, request.endpoint ?? "", trigger),
      schedule_instance_id: scheduleInstanceId,
      expr_proto_hash: null,
      record_remarks: { refused: error.message, code: error.code, ...(problems === undefined ? {} : { problems }) },
    });
    if (!isNew || isCallersMistake(trigger, error)) return;
    const { source, endpoint = null, operation } = request;
    const fields = { source, endpoint, operation, reason: error.message, scheduleInstanceId };
    await outbox.emit(tx, [planRefused(ids.uuid(), fields, clock.now())]);
  }

  return {
    resolve,
    planIn,
    refuseIn,

    async create(request, actor) {
      const trigger: Trigger = { type: "MANUAL", scheduleId: null, firedAt: null, by: actor.caller.name };
      const resolved = await resolve(request).catch(async (error: unknown) => {
        if (isRefusal(error)) await db.tx((tx) => refuseIn(tx, request, trigger, error));
        throw error;
      });
      return db.tx(async (tx) => {
        const outcome = await planIn(tx, resolved, trigger);
        if ("nothing" in outcome) throw nothingToPlan(outcome);
        if ("repeated" in outcome) throw new Error("a trigger without a schedule was repeated");
        const { planId, source, endpoint, operation, slices } = outcome.plan;
        await audit(tx, actor, "plan.create", planId, { source, endpoint, operation, slices });
        return outcome.plan;
      });
    },

    async preview(request) {
      const resolved = await resolve(request);
      const plannedAt = new Date(clock.now());
      const choice = await choose(db, resolved, plannedAt);
      if ("nothing" in choice) throw nothingToPlan(choice);
      return previewOf(db, resolved, choice, plannedAt);
    },

    async cancel(planId, actor) {
      const { changed } = await db.tx(async (tx) => {
        const cancelled = await cancelIn(tx, planId, `cancelled by ${actor.caller.name}`);
        if (!cancelled) throw await notOpen(tx, planId);
        await audit(tx, actor, "plan.cancel", planId, { tasks: cancelled.tasks });
        return cancelled;
      });
      await landing.wantCancelled(planId, changed);
    },

    async cancelUnless(isWanted, planId, reason) {
      const cancelled = await db.tx(async (tx) => ((await isWanted(tx)) ? undefined : cancelIn(tx, planId, reason)));
      if (cancelled) await landing.wantCancelled(planId, cancelled.changed);
    },

    async continuePlans() {
      let sliced = 0;
      let waiting = 0;
      for (const { plan_id, partition_key } of await store.partialPlans(db, PARTIAL_AT_ONCE)) {
        const outcome = await continueOne(plan_id, partition_key);
        sliced += outcome.slices;
        if (outcome.isOpen) waiting += 1;
      }
      return { sliced, waiting };
    },
  };

  async function cancelIn(tx: Tx, planId: string, reason: string) {
    const cancelled = await cancelPlan(tx, planId, reason);
    if (!cancelled) return undefined;
    tx.afterCommit(() => countEnded(metrics, cancelled.plan));
    tx.afterCommit(hintTasks); // Places in the partition are free.
    tx.afterCommit(hintPlans);
    tx.afterCommit(() => wake.hint(NODES_TOPIC));
    hints.changed(tx, "plan", planId);
    return cancelled;
  }

  /** A plan that cannot be sliced does not keep others waiting. What the database refused is tried again later. */
  async function continueOne(planId: string, partitionKey: string): Promise<Continued> {
    try {
      return await db.tx((tx) => continueIn(tx, planId, partitionKey));
    } catch (error) {
      if (isUnavailable(error)) throw error;
      const isLasting = sqlState(error) === undefined;
      log.error({ err: error, planId }, isLasting ? "the rest of a plan cannot be sliced" : "a plan was not sliced");
      if (!isLasting) return { slices: 0, isOpen: true };
      await db.tx(async (tx) => {
        await store.giveUpSlicing(tx, planId, messageOf(error).slice(0, REASON_LENGTH_MAX));
        await settle(tx, [planId]);
      });
      return { slices: 0, isOpen: false };
    }
  }

  async function continueIn(tx: Tx, planId: string, partitionKey: string): Promise<Continued> {
    await store.lockPartition(tx, partitionKey);
    await lockTasksOf(tx, planId);
    const plan = await store.lockPartial(tx, planId);
    if (!plan) return { slices: 0, isOpen: false };
    const { snapshot, unsliced_from, window_from, window_to } = plan;
    // Not at every task that leaves the queue, since a transaction for one slice costs as much as one for many.
    const half = Math.floor(snapshot.spec.budget.queuedTasksMax / 2);
    if ((await store.queuedTasks(tx, partitionKey, half + 1)) > half) return { slices: 0, isOpen: true };
    const rest = restOf(snapshot.operation, { from: window_from, to: window_to }, unsliced_from);
    const ranges =
      plan.plan_strategy === "MISSING"
        ? await store.missingRanges(tx, plan, { ...rest, widestMs: widestOf(snapshot) }, planId)
        : [rest];
    const { slices, unslicedFrom } = await sliceIn(tx, {
      planId,
      scheduleInstanceId: plan.schedule_instance_id,
      snapshot,
      exprProtoHash: plan.expr_proto_hash,
      partitionKey,
      ranges,
      sizes: await sizesOf(tx, snapshot, plan, ranges),
      lastNo: await store.lastSliceNo(tx, planId),
    });
    await settle(tx, [planId]); // Others may have completed all that was left.
    return { slices, isOpen: unslicedFrom !== null };
  }
}

type Continued = { slices: number; isOpen: boolean };

async function notOpen(tx: Queryable, planId: string): Promise<ApiError> {
  const status = await planStatus(tx, planId);
  if (status === undefined) return harvestError("PLAN_NOT_FOUND", { id: planId });
  return harvestError("PLAN_ENDED", { id: planId, status });
}
