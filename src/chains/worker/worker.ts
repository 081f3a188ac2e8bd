/**
 * The worker of a process: claims ready nodes up to its slots, runs them, reports their outcomes, and aborts those that are
 * stopped or whose lease is lost. The loop itself is the kernel's (lease-worker.ts).
 */

import { type Db, isTimedOut, isUnavailable } from "../../kernel/data/db.ts";
import type { NamedSecrets } from "../../kernel/secrets/named-secrets.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { createLeaseWorker } from "../../kernel/work/lease-worker.ts";
import { LeaseLost, type RunControl, ShuttingDown } from "../../kernel/work/run-control.ts";
import type { OnRun, ServiceLog } from "../../kernel/work/service.ts";
import type { Session } from "../../kernel/work/session.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { ChainsMetrics } from "../catalogue.ts";
import type { Engine, LocalWorker, Report } from "../engine/engine.ts";
import type { RunCache } from "../engine/run-cache.ts";
import type { Progress } from "../runs/progress.ts";
import type { SubRuns } from "../runs/sub-runs.ts";
import type { ChainsSettings } from "../settings.ts";
import { saveHeldCheckpoint } from "../store/history.ts";
import { type ClaimedNode, claimNodes, type HeldNode, heldNodes } from "../store/live.ts";
import { HELD_TOPIC, READY_IN_POOL_TOPIC, READY_TOPIC } from "../topics.ts";
import { mayRetry } from "../types/node-type.ts";
import type { Registry } from "../types/registry.ts";
import { type ExecuteDeps, execute, type Outcome } from "./execute.ts";
import { createNodeOutput } from "./node-output.ts";
import { type PreparedNode, prepare } from "./prepare.ts";

export interface WorkerDeps {
  db: Db;
  wake: Wake;
  progress: Progress;
  session: Session;
  engine: Engine;
  runCache: RunCache;
  registry: Registry;
  subRuns: SubRuns;
  secrets: Pick<NamedSecrets, "open">;
  settings: ChainsSettings;
  metrics: ChainsMetrics;
  log: ServiceLog;
  onRun: OnRun;
  /** This process, as people see it. */
  name: string;
}

export interface Worker {
  start(): void;
  /** Stops claiming, waits for running nodes, and releases those that do not end in time. */
  stop(): Promise<void>;
}

interface EndedNode {
  item: PreparedNode;
  outcome: Outcome;
}

type HeldKey = Pick<ClaimedNode, "run_id" | "node_id" | "fence">;

export function createWorker(deps: WorkerDeps): Worker {
  const { db, wake, session, engine, registry, settings, metrics, log } = deps;
  const output = createNodeOutput({ db, progress: deps.progress, log });
  const executeDeps: ExecuteDeps = {
    registry,
    output,
    async saveCheckpoint(item, value) {
      if (!(await saveHeldCheckpoint(db, item, value))) throw new Error("the node is no longer held by this attempt");
    },
  };

  async function claim(kind: "free" | "pooled", limit: number): Promise<ClaimedNode[]> {
    const claimed = await claimNodes(db, kind, { limit, session: session.id(), worker: deps.name });
    if (claimed.length > 0) deps.progress.changed(claimed.map(({ run_id }) => run_id));
    return claimed;
  }

  async function run(item: PreparedNode, control: RunControl): Promise<EndedNode> {
    const startedAt = performance.now();
    const outcome = await execute(executeDeps, item, control);
    const { reason } = control;
    const labels = { type: item.node.def.type, outcome: reason instanceof LeaseLost ? "taken away" : outcome.kind };
    // The engine observes a node that waits for a run, once that has ended.
    if (labels.outcome !== "wait" && labels.outcome !== "sub-run") {
      metrics.observe("millrace_chains_node_seconds", labels, (performance.now() - startedAt) / 1000);
    }
    // It may have failed only because of the shutdown.
    if (reason instanceof ShuttingDown && outcome.kind === "failed") throw reason;
    return { item, outcome };
  }

  async function settle({ item, outcome }: EndedNode): Promise<void> {
    await output.flush();
    const made = await reportOf(item, outcome);
    try {
      if ((await report(made)) && outcome.kind === "wait") outcome.wait.onParked();
    } catch (error) {
      if (isUnavailable(error) || isTimedOut(error)) throw error;
      // The database would reject the same values again, so the node fails.
      const reason = `its result could not be stored: ${messageOf(error)}`;
      await report({ runId: item.run_id, event: { ...failed(item, reason), final: true } });
    }
  }

  async function reportOf(item: PreparedNode, outcome: Outcome): Promise<Report> {
    const { run_id: runId, node_id: nodeId, fence } = item;
    switch (outcome.kind) {
      case "succeeded": {
        const { artifact, checkpoint } = outcome;
        const event = { kind: "succeeded", nodeId, fence, artifact } as const;
        return checkpoint === undefined ? { runId, event } : { runId, event, checkpoint };
      }
      case "skipped":
        return { runId, event: { kind: "skipped", nodeId, fence, reason: outcome.reason } };
      case "failed":
        return { runId, event: { ...failed(item, outcome.error), final: outcome.final } };
      case "wait":
        return { runId, event: { kind: "parked", nodeId, fence, childRunId: outcome.wait.id } };
      case "sub-run":
        try {
          return await deps.subRuns.begin(item, outcome.subRun);
        } catch (error) {
          if (isUnavailable(error)) throw error;
          const message = messageOf(error);
          return { runId, event: { ...failed(item, message), final: !mayRetry(error) } };
        }
    }
  }

  /** Whether it counted. */
  async function report(made: Report): Promise<boolean> {
    if (await engine.report(made)) return true;
    const { runId, event } = made;
    log.info({ runId, nodeId: event.nodeId, event: event.kind }, "the result of a node came too late and was dropped");
    return false;
  }

  function reportAll(nodes: readonly HeldKey[], event: { kind: "released" } | { kind: "lost"; lostLimit: number }) {
    return Promise.all(
      nodes.map(({ run_id: runId, node_id: nodeId, fence }) => report({ runId, event: { ...event, nodeId, fence } })),
    );
  }

  const queue = (kind: "free" | "pooled", name: string, topic: string) => ({
    name,
    topics: [topic],
    claim: (limit: number) => claim(kind, limit),
  });
  const worker = createLeaseWorker<ClaimedNode, PreparedNode, EndedNode, HeldNode>({
    name: "chains",
    session,
    wake,
    log,
    onRun: deps.onRun,
    slots: settings.slots,
    drainSeconds: settings.drainSeconds,
    abortGraceSeconds: settings.stopGraceSeconds,
    queues: [queue("free", "chains.claim", READY_TOPIC), queue("pooled", "chains.claim_in_pools", READY_IN_POOL_TOPIC)],
    prepare: (claimed) => prepare(deps, claimed),
    run,
    settleMax: 1, // The engine batches reports itself, over all runs.
    settle: async ([ended]) => ended && settle(ended),
    held: (holder) => heldNodes(db, holder),
    release: (nodes) => reportAll(nodes, { kind: "released" }),
    lose: (nodes) => reportAll(nodes, { kind: "lost", lostLimit: settings.lostLimit }),
    fields: ({ run_id: runId, node_id: nodeId }) => ({ runId, nodeId }),
  });
  const localWorker: LocalWorker = { ...worker, session: session.id, name: deps.name };
  let unlisten = () => {};

  metrics.gauge("millrace_chains_nodes_in_flight", () => [{ labels: {}, value: worker.inFlight() }]);
  return {
    start() {
      engine.setLocalWorker(localWorker);
      unlisten = wake.on(HELD_TOPIC, worker.checker.wake);
      worker.start();
    },
    async stop() {
      unlisten();
      await worker.stop();
      await engine.drain();
    },
  };
}

function failed({ node_id: nodeId, fence }: HeldKey, error: string) {
  return { kind: "failed", nodeId, fence, error } as const;
}
