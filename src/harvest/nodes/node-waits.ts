/**
 * Nodes of chains that harvest a window and wait for its plan. The node is parked: it holds no slot. The plan and the wait are
 * one transaction, so an attempt that is repeated after a crash finds both. Later attempts make a plan of their own, or take
 * an equal one that is under way, whoever made it. A plan that nodes have made is cancelled when none of them is left.
 */
import { FinalFailure } from "../../chains/index.ts";
import type { Db, Queryable, Tx } from "../../kernel/data/db.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import { LOST_HINT_MS, type Wake } from "../../kernel/work/wake.ts";
import type { Planner } from "../plan/planner.ts";
import type { Reads } from "../plan/reads.ts";
import { planDetailReply } from "../plan/replies.ts";
import { namespaceOf, type PlanRequest, partitionKeyOf, type Resolved } from "../plan/request.ts";
import type { Range } from "../plan/window.ts";
import { instantOf } from "../plan/window.ts";
import * as store from "../store/plans/node-waits.ts";
import { lockPartition } from "../store/plans/plans.ts";
import { NODES_TOPIC } from "../topics.ts";
import { type NodeWindow, rangeOfOpTime, requireClosed } from "./asked-window.ts";

export interface NodeWaits {
  /** Plans the window, or finds the plan that the node waits for. The same key has the same wait. */
  begin(node: WaitingNode, request: NodeRequest): Promise<Begun>;
  /** The node is parked: its plan may have ended before that. */
  parked(): void;
  /** Start it in a process with the role `scheduler`. */
  service: Service;
}

export interface WaitingNode {
  key: string;
  runId: string;
  nodeId: string;
}

export interface NodeRequest extends Omit<PlanRequest, "window"> {
  window: NodeWindow | undefined;
  /** The window of nodes that name none. */
  opTime: string | null;
}

export type Begun =
  | { waitId: string; planId: string }
  /** There is nothing to harvest. */
  | { nothing: string };

/** The port to chains. */
export interface NodePort {
  /** Ends a node that is parked for a plan. `early`: it is not parked yet. `gone`: it no longer waits. */
  endWait(wait: Wait, outcome: WaitOutcome): Promise<"counted" | "early" | "gone">;
  /** Those whose node has not ended, in a run that is not being stopped. */
  openNodes(db: Queryable, waits: readonly Wait[]): Promise<Set<string>>;
}
type Wait = Pick<store.NodeWaitRow, "wait_id" | "key" | "run_id" | "node_id">;
type WaitOutcome = { status: "SUCCESS"; artifact: unknown } | { status: "FAILED"; error: string; final: boolean };

const AT_ONCE = 200;
/** Waits whose node is looked for. */
const OPEN_MAX = 10_000;

export interface NodeWaitsDeps {
  db: Db;
  wake: Wake;
  ids: Ids;
  clock: Clock;
  chains: NodePort;
  planner: Pick<Planner, "resolve" | "planIn" | "cancelUnless">;
  reads: Pick<Reads, "plan">;
  log: ServiceLog;
  onRun: OnRun;
}

export function createNodeWaits(deps: NodeWaitsDeps): NodeWaits {
  const { db, wake, ids, clock, chains, planner } = deps;

  /** The range that was asked for; undefined for what is new. */
  function rangeOf({ snapshot }: Resolved, { window, opTime, operation }: NodeRequest): Range | undefined {
    const spec = snapshot.spec.window;
    // An update takes no window, and the opTime of its run is none.
    const asked = window ?? (operation === "UPDATE" ? null : opTime);
    if (!spec) return undefined;
    if (typeof asked === "string") return rangeOfOpTime(asked, spec.timezone);
    if (asked === null || "last" in asked) return undefined;
    const [from, to] = [asked.from, asked.to].map((edge) => instantOf(edge, spec.timezone));
    return from && to ? { from, to } : undefined; // The planner says what is wrong with it.
  }

  async function beginIn(tx: Tx, node: WaitingNode, resolved: Resolved, range: Range | undefined): Promise<Begun> {
    await lockPartition(tx, partitionKeyOf(resolved));
    const known = await store.nodeWaitOf(tx, node.key);
    if (known) return { waitId: known.wait_id, planId: known.plan_id };
    const wait = (planId: string) => waitFor(tx, node, planId);
    const openEqual = (window?: Range) =>
      store.openEqualPlan(tx, namespaceOf(resolved), resolved.specFingerprint, window);
    const equal = range && (await openEqual(range));
    if (equal !== undefined) return wait(equal);
    const by = `run ${node.runId} node ${node.nodeId}`;
    const scheduleId = `${node.runId}/${node.nodeId}`;
    const outcome = await planner.planIn(tx, resolved, { type: "CHAIN", scheduleId, firedAt: null, by });
    if ("plan" in outcome) return wait(outcome.plan.planId);
    if ("repeated" in outcome) throw new Error("the trigger of a node was repeated");
    // What is new may be what another plan is harvesting.
    const other = resolved.request.window === undefined ? await openEqual() : undefined;
    return other === undefined ? { nothing: `${outcome.nothing}.` } : wait(other);
  }

  async function waitFor(tx: Tx, { key, runId, nodeId }: WaitingNode, planId: string): Promise<Begun> {
    const waitId = ids.uuid();
    await store.insertNodeWait(tx, { wait_id: waitId, key, run_id: runId, node_id: nodeId, plan_id: planId });
    return { waitId, planId };
  }

  async function end(wait: store.EndedWait): Promise<boolean> {
    const reported = await chains.endWait(wait, await outcomeOf(wait));
    if (reported !== "early") await store.deleteNodeWaits(db, [wait.wait_id]);
    return reported === "counted";
  }

  async function outcomeOf(wait: store.EndedWait): Promise<WaitOutcome> {
    const { plan_id, status_code, reason, not_landed, source, endpoint } = wait;
    const failed = (why: string, final: boolean): WaitOutcome => ({
      status: "FAILED",
      error: `Plan ${plan_id} of ${source}/${endpoint} ${why}`,
      final,
    });
    // A person has ended it, and another attempt would make it again.
    if (status_code === "CANCELLED") return failed(`was cancelled: ${reason ?? "without a reason"}.`, true);
    if (status_code !== "COMPLETE") return failed(`is ${status_code}: ${reason ?? "without a reason"}`, false);
    if (not_landed !== null) return failed(`is COMPLETE, but could not land in ${not_landed}`, false);
    return { status: "SUCCESS", artifact: artifactOf(planDetailReply(await deps.reads.plan(plan_id))) };
  }

  /** Cancels the plans of nodes that were stopped or have ended otherwise, unless others wait for them. */
  async function cancelAbandoned(): Promise<number> {
    const waits = await store.openWaits(db, OPEN_MAX);
    const open = await chains.openNodes(db, waits);
    const abandoned = waits.filter(({ wait_id }) => !open.has(wait_id));
    for (const { plan_id } of abandoned) await cancelOrLeave(plan_id);
    return abandoned.length;
  }

  async function cancelOrLeave(planId: string): Promise<void> {
    const partitionKey = await store.partitionOfNodePlan(db, planId);
    const isWanted = async (tx: Tx) => {
      // Whoever takes this plan as an equal one does so under the same lock.
      if (partitionKey !== undefined) await lockPartition(tx, partitionKey);
      const waits = await store.waitsOfPlan(tx, planId);
      const open = await chains.openNodes(tx, waits);
      const gone = waits.filter(({ wait_id }) => !open.has(wait_id)).map(({ wait_id }) => wait_id);
      await store.deleteNodeWaits(tx, gone);
      return partitionKey === undefined || open.size > 0;
    };
    await planner.cancelUnless(isWanted, planId, "no node of a chain waits for it any more");
  }

  const service = createService({
    name: "harvest nodes",
    intervalMs: LOST_HINT_MS,
    log: deps.log,
    onRun: deps.onRun,
    async runOnce() {
      const ended = await store.endedWaits(db, AT_ONCE);
      let reported = 0;
      for (const wait of ended) if (await end(wait)) reported += 1;
      return { reported, abandoned: await cancelAbandoned() };
    },
    more: ({ reported = 0 }) => reported === AT_ONCE,
  });
  let unlisten: (() => void) | undefined;

  return {
    async begin(node, request) {
      const known = await store.nodeWaitOf(db, node.key);
      if (known) return { waitId: known.wait_id, planId: known.plan_id };
      try {
        const { window, opTime: _, ...plain } = request;
        const resolved = await planner.resolve(plain);
        const range = rangeOf(resolved, request);
        const spec = resolved.snapshot.spec.window;
        if (spec && range) requireClosed(spec, range, new Date(clock.now()));
        const isAsked = window !== undefined && typeof window !== "string";
        const asked = isAsked ? window : range && { from: range.from.toISOString(), to: range.to.toISOString() };
        const planned = { ...resolved, request: { ...plain, window: asked } };
        return await db.tx((tx) => beginIn(tx, node, planned, range));
      } catch (error) {
        // What is wrong with a request or a definition stays wrong.
        throw error instanceof ApiError && error.status < 500
          ? new FinalFailure(error.message, { cause: error })
          : error;
      }
    },

    parked: () => wake.hint(NODES_TOPIC),

    service: {
      ...service,
      start() {
        unlisten = wake.on(NODES_TOPIC, service.wake);
        service.start();
      },
      async stop() {
        unlisten?.();
        await service.stop();
      },
    },
  };
}

type Plan = ReturnType<typeof planDetailReply>;

function artifactOf({ planId, source, endpoint, operation, window, reconciliation, landings, remarks }: Plan) {
  const landed = landings.map(({ table, opTime, rows }) => ({ table, opTime, rows }));
  const { notes } = remarks as { notes?: string[] };
  return { planId, source, endpoint, operation, window, reconciliation, landed, ...(notes ? { notes } : {}) };
}
