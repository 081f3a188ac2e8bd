/**
 * A model of a run that the engine is compared with, written from the rules alone. It keeps no counters and no queue: whether a
 * node may run is computed from its parents each time.
 */
import type { NodeDef } from "../src/chains/definitions/dag.ts";
import type { NodeStatus, RunStatus } from "../src/chains/engine/states.ts";

/** A node that a worker holds. */
export interface Lease {
  nodeId: string;
  fence: string;
  session: string;
}

interface ModelNode {
  def: NodeDef;
  status: NodeStatus;
  attempt: number;
  /** Failures, and lost workers in a row, since its last reset. */
  tries: number;
  lost: number;
  delayed: boolean;
  lease: Lease | null;
  /** The run that it is parked for. */
  child: string | null;
  missing: Set<string>;
}

export type Outcome = "succeeded" | "failed" | "failed for good" | "skipped" | "released" | "parked";
export type ChildOutcome = Extract<Outcome, "succeeded" | "failed" | "failed for good">;
type Refusal = "RUN_WRONG_STATE" | "NODE_WRONG_STATE";
type Asked = { nodeId: string | undefined; downstream: boolean };

const ENDED: readonly NodeStatus[] = ["SUCCESS", "FAILED", "SKIPPED", "STOPPED"];

/** `defs` has parents before their children. */
export function createModel(defs: readonly NodeDef[], options: { lostLimit: number; pools: Record<string, number> }) {
  const nodes = defs.map(newNode);
  const arrived = new Set<string>();
  const dead = new Set<string>();
  const lostLeases: Lease[] = [];
  const run: { status: RunStatus; timedOut: boolean } = { status: "PENDING", timedOut: false };

  const get = (id: string) => nodes.find(({ def }) => def.id === id) as ModelNode;
  const parentsOf = ({ def }: ModelNode) => (def.dependsOn ?? []).map(get);
  const has = (status: NodeStatus) => nodes.some((node) => node.status === status);
  const isWaiting = ({ status }: ModelNode) => status === "PENDING" || status === "RETRYING";

  function mayRun(node: ModelNode): "yes" | "never" | "not yet" {
    const parents = parentsOf(node).map(({ status }) => status);
    const allEnded =
      parents.every((status) => ENDED.includes(status) && status !== "STOPPED") && node.missing.size === 0;
    if (node.def.runWhen === "all_done") return allEnded ? "yes" : "not yet";
    const failed = parents.includes("FAILED");
    if (node.def.runWhen === "one_failed") return failed ? "yes" : allEnded ? "never" : "not yet";
    return failed || parents.includes("SKIPPED") ? "never" : allEnded ? "yes" : "not yet";
  }

  function release(node: ModelNode): void {
    if (node.lease) lostLeases.push(node.lease);
    Object.assign(node, { lease: null, child: null });
  }

  function end(node: ModelNode, status: NodeStatus): void {
    if (node.status === "RETRYING") node.attempt -= 1; // That attempt never started.
    release(node);
    Object.assign(node, { status, delayed: false });
  }

  function reset(node: ModelNode, status: "PENDING" | "RETRYING"): void {
    const attempt = node.attempt + Number(status === "RETRYING");
    const missing = new Set(node.def.waitsFor?.filter((table) => !arrived.has(table)));
    Object.assign(node, { status, attempt, missing, tries: 0, lost: 0 });
  }

  function tryAgain(node: ModelNode, delayed: boolean): void {
    release(node);
    Object.assign(node, { status: "RETRYING", attempt: node.attempt + 1, delayed });
  }

  function fail(node: ModelNode, final: boolean): void {
    const { maxAttempts = 1, backoffMs = 0 } = node.def.retry ?? {};
    node.tries += 1;
    node.lost = 0;
    if (run.status === "STOPPING") end(node, "STOPPED");
    else if (final || node.tries >= maxAttempts) end(node, "FAILED");
    else tryAgain(node, backoffMs > 0);
  }

  function childEnded(nodeId: string, child: string, outcome: ChildOutcome): boolean {
    const node = get(nodeId);
    if (node.child !== child) return false;
    if (outcome === "succeeded") end(node, "SUCCESS");
    else fail(node, outcome === "failed for good");
    propagate();
    return true;
  }

  /** The effects on the other nodes and on the run. */
  function propagate(): void {
    for (const node of nodes.filter(isWaiting)) {
      if (mayRun(node) === "never") end(node, "SKIPPED");
      if (mayRun(node) === "not yet") node.delayed = false;
    }
    if (nodes.some(({ status }) => !ENDED.includes(status))) return;
    if (run.status !== "RUNNING" && run.status !== "STOPPING") return;
    if (run.timedOut) run.status = "FAILED";
    else if (run.status === "STOPPING" && has("STOPPED")) run.status = "STOPPED";
    else run.status = has("FAILED") ? "FAILED" : has("STOPPED") ? "STOPPED" : "SUCCESS";
  }

  function stopWhatWaits(): void {
    for (const node of nodes.filter(isWaiting)) end(node, "STOPPED");
    run.status = run.status === "PENDING" ? "STOPPED" : "STOPPING";
  }

  function continueRun(): void {
    Object.assign(run, { status: "RUNNING", timedOut: false });
    propagate();
  }

  /** All descendants of these nodes, without the nodes themselves. */
  function descendants(from: ReadonlySet<ModelNode>): ModelNode[] {
    const reached = new Set(from);
    for (const node of nodes) if (parentsOf(node).some((parent) => reached.has(parent))) reached.add(node);
    return nodes.filter((node) => reached.has(node) && !from.has(node));
  }

  /** Resets skipped and stopped descendants, except those that wait for a STOPPED node. */
  function resetDescendants(from: ReadonlySet<ModelNode>, downstream: boolean): void {
    for (const node of descendants(from)) {
      const isSkippedOrStopped = node.status === "SKIPPED" || node.status === "STOPPED";
      if (!isSkippedOrStopped && !(downstream && ENDED.includes(node.status))) continue;
      if (!parentsOf(node).some(({ status }) => status === "STOPPED")) reset(node, "PENDING");
      else if (node.status === "SKIPPED") node.status = "STOPPED";
    }
  }

  /** Returns a function that restores the present state. */
  function snapshot(): () => void {
    const before = nodes.map((node) => ({ ...node, missing: new Set(node.missing) }));
    const { status, timedOut } = run;
    return () => {
      for (const [index, node] of nodes.entries()) Object.assign(node, before[index]);
      Object.assign(run, { status, timedOut });
    };
  }

  function rowOf(node: ModelNode): string {
    const { def, status, attempt, lease, delayed } = node;
    const waiting = delayed ? "delayed" : mayRun(node) === "yes" ? "ready" : "waiting";
    const state = status === "RUNNING" ? (lease ? "leased" : "parked") : waiting;
    const live = run.status !== "PENDING" && !ENDED.includes(status);
    return [def.id, status, attempt, ...(live ? [state] : [])].join(" ");
  }

  function retry({ nodeId, downstream }: Asked): Refusal | undefined {
    const refusal = nodeId === undefined ? "RUN_WRONG_STATE" : "NODE_WRONG_STATE";
    const backingOff = nodes.find(({ def, delayed }) => delayed && def.id === nodeId);
    if (backingOff && run.status !== "STOPPING") {
      Object.assign(backingOff, { delayed: false, tries: 0 });
      return undefined;
    }
    const asked = nodes.filter(({ def, status }) => {
      return (nodeId === undefined || def.id === nodeId) && (status === "FAILED" || status === "STOPPED");
    });
    const timedOutWhenDone = nodeId === undefined && run.status === "FAILED";
    if (run.status === "STOPPING" || (asked.length === 0 && !timedOutWhenDone)) return refusal;
    const again = new Set(asked);
    for (const node of nodes.toReversed()) {
      if (!again.has(node)) continue;
      for (const parent of parentsOf(node)) if (parent.status === "STOPPED") again.add(parent);
    }
    for (const node of again) reset(node, asked.includes(node) || node.attempt > 0 ? "RETRYING" : "PENDING");
    resetDescendants(again, downstream);
    continueRun();
    return nodeId !== undefined && asked[0]?.status === "SKIPPED" ? refusal : undefined;
  }

  return {
    run,
    nodes,
    /** Sessions that have ended. */
    dead,
    /** Leases that have ended, which their workers may still report for. */
    lostLeases,
    /** As in the tables: id, status, attempt and, for a live node, its state. */
    rows: () => ({ run: run.status, nodes: nodes.map(rowOf) }),
    /** Nodes that wait for others. */
    waiting: () => nodes.filter((node) => isWaiting(node) && mayRun(node) === "not yet").map(({ def }) => def.id),
    held: () => nodes.flatMap(({ lease }) => lease ?? []),
    delayed: () => nodes.filter(({ delayed }) => delayed),
    parked: () => nodes.filter(({ child }) => child !== null),

    /** Returns whether this admits the run. */
    admit(): boolean {
      if (run.status !== "PENDING") return false;
      for (const node of nodes) reset(node, "PENDING");
      continueRun();
      return true;
    },

    /** The nodes that a claim gets. */
    ready(kind: "free" | "pooled", limit: number): string[] {
      const ready = nodes.filter((node) => rowOf(node).endsWith(" ready"));
      const inPool = ([pool, size]: [string, number]) => {
        const taken = nodes.filter(({ def, lease }) => def.pool === pool && lease).length;
        return ready.filter(({ def }) => def.pool === pool).slice(0, Math.max(0, size - taken));
      };
      const free = ready.filter(({ def }) => def.pool === undefined);
      const wanted = kind === "free" ? free : Object.entries(options.pools).flatMap(inPool);
      return wanted.slice(0, limit).map(({ def }) => def.id);
    },

    claimed(lease: Lease): number {
      const node = get(lease.nodeId);
      if (node.status === "PENDING") node.attempt += 1;
      Object.assign(node, { status: "RUNNING", lease });
      return node.attempt;
    },

    /** Returns whether it counts. */
    report(lease: Lease, outcome: Outcome, child: string): boolean {
      const node = get(lease.nodeId);
      if (node.lease !== lease) return false;
      if (outcome === "skipped") node.attempt -= 1;
      if (outcome === "succeeded" || outcome === "skipped") end(node, outcome === "skipped" ? "SKIPPED" : "SUCCESS");
      else if (run.status === "STOPPING") end(node, "STOPPED");
      else if (outcome === "released") tryAgain(node, false);
      else if (outcome !== "parked") fail(node, outcome === "failed for good");
      else {
        release(node);
        node.child = child;
      }
      propagate();
      return true;
    },

    childEnded,

    reclaim(): void {
      const lost = nodes.filter(({ lease }) => lease && dead.has(lease.session));
      for (const node of lost) {
        node.lost += 1;
        if (run.status === "STOPPING") end(node, "STOPPED");
        else if (node.lost >= options.lostLimit) end(node, "FAILED");
        else tryAgain(node, false);
      }
      if (lost.length > 0) propagate();
    },

    /** The table has arrived; `reported` says whether its waits were satisfied. Returns how many nodes waited for it. */
    arrive(table: string, reported: boolean): number {
      arrived.add(table);
      const waiting = nodes.filter((node) => reported && !ENDED.includes(node.status) && node.missing.delete(table));
      return run.status === "PENDING" ? 0 : waiting.length;
    },

    /** A delayed attempt is due, or a child run times out. */
    due(node: ModelNode): void {
      node.delayed = false;
      if (node.child !== null) childEnded(node.def.id, node.child, "failed");
    },

    stop(): RunStatus | Refusal {
      if (run.status === "SUCCESS" || run.status === "FAILED") return "RUN_WRONG_STATE";
      if (run.status === "PENDING" || run.status === "RUNNING") stopWhatWaits();
      return run.status;
    },

    timeOut(): void {
      if (run.status !== "RUNNING") return;
      run.timedOut = true;
      stopWhatWaits();
      propagate();
    },

    /** A stopping run does not wait for what its nodes are parked for. (In the model that is never a run, which would be stopped.) */
    stopWaits(): void {
      const parked = nodes.filter(({ child }) => run.status === "STOPPING" && child !== null);
      for (const node of parked) end(node, "STOPPED");
      if (parked.length > 0) propagate();
    },

    expireGrace(): void {
      if (run.status !== "STOPPING") return;
      for (const node of nodes) if (node.status === "RUNNING") end(node, "STOPPED");
      propagate();
    },

    endRunIfDone: propagate,

    /** A refusal and a dry run change nothing. Returns the run's status after the retry. */
    retry(asked: Asked, dryRun: boolean): RunStatus | Refusal {
      const undo = snapshot();
      const answer = retry(asked) ?? run.status;
      if (dryRun || answer.endsWith("WRONG_STATE")) undo();
      return answer;
    },

    resume(): RunStatus | Refusal {
      if (run.status !== "STOPPED") return "RUN_WRONG_STATE";
      for (const node of nodes.filter(({ status }) => status === "STOPPED")) {
        reset(node, node.attempt > 0 ? "RETRYING" : "PENDING");
      }
      continueRun();
      return run.status;
    },

    complete(nodeId: string): NodeStatus | Refusal {
      const node = get(nodeId);
      if (node.status === "SUCCESS") return node.status;
      if (!["FAILED", "STOPPED", "RUNNING", "RETRYING"].includes(node.status)) return "NODE_WRONG_STATE";
      end(node, "SUCCESS");
      if (run.status !== "STOPPING") {
        resetDescendants(new Set([node]), false);
        continueRun();
        return node.status;
      }
      // Nodes that were skipped because of it are stopped like the rest, so that a resume runs them.
      for (const other of descendants(new Set([node]))) if (other.status === "SKIPPED") other.status = "STOPPED";
      propagate();
      return node.status;
    },
  };
}

export type Model = ReturnType<typeof createModel>;

function newNode(def: NodeDef): ModelNode {
  const fresh = { tries: 0, lost: 0, delayed: false, lease: null, child: null, missing: new Set<string>() };
  return { def, status: "PENDING", attempt: 0, ...fresh };
}
