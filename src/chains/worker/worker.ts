/**
 * The part of a process that does the work: claims ready nodes up to its slots, runs them, reports what became of them,
 * and lets go of those that were stopped or taken away. A node's slot is free as soon as its work is done; that this is
 * written is waited for without holding up the next one.
 */
import { setTimeout as sleepFor } from "node:timers/promises";
import { type Db, isUnavailable } from "../../kernel/data/db.ts";
import type { NamedSecrets } from "../../kernel/secrets/named.ts";
import type { Metrics } from "../../kernel/telemetry/metrics.ts";
import { withRetry } from "../../kernel/work/retry.ts";
import { createService, type OnRun, type Service, type ServiceLog } from "../../kernel/work/service.ts";
import { OUTLAST_SESSION, type Session } from "../../kernel/work/session.ts";
import { LOST_HINT_MS, type Wake } from "../../kernel/work/wake.ts";
import type { Engine, Report, Taker } from "../engine/engine.ts";
import type { RunCache } from "../engine/run-cache.ts";
import type { Progress } from "../runs/progress.ts";
import type { SubRuns } from "../runs/sub-runs.ts";
import type { ChainsSettings } from "../settings.ts";
import { saveHeldCheckpoint } from "../store/history.ts";
import { type ClaimedNode, claimNodes, heldNodes } from "../store/live.ts";
import { LET_GO_TOPIC, READY_IN_POOL_TOPIC, READY_TOPIC } from "../topics.ts";
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
  runs: RunCache;
  registry: Registry;
  subRuns: SubRuns;
  secrets: Pick<NamedSecrets, "open">;
  settings: ChainsSettings;
  metrics: Metrics;
  log: ServiceLog;
  onRun: OnRun;
  /** This process, for people. */
  name: string;
}

export interface Worker {
  start(): void;
  /** Takes no more, waits for what runs, and gives back what does not end in time. */
  stop(): Promise<void>;
}

interface Running {
  item: PreparedNode;
  control: AbortController;
  /** Goes on without it. */
  leave(): void;
  /** Set when somebody else decides what becomes of the node. */
  takenAway: boolean;
}

type HeldNode = Pick<ClaimedNode, "run_id" | "node_id" | "fence">;

const KINDS = ["free", "pooled"] as const;
type Kind = (typeof KINDS)[number];

const CLAIM_MAX = 500;
const WATCH_INTERVAL_MS = 5_000;
/** How many times its slots a worker may hold, those included whose end is not yet written. */
const UNREPORTED_MAX = 4;
/** After a write whose outcome is unknown: longer than the database may take to come to its end. */
const UNSURE_MS = 60_000;
/** What is ours and does not run may be about to; after this time it is not. Two looks of the watch are further apart. */
const STRAY_MS = 3_000;

export function createWorker(deps: WorkerDeps): Worker {
  const { db, wake, session, engine, registry, settings, metrics, log, onRun } = deps;
  const running = new Map<string, Running>(); // By fence, which no two items share.
  const reporting = new Set<Promise<void>>();
  const backlog = new Set<Kind>();
  /** Nodes that are leased to us and do not run, by fence: since when. */
  const strays = new Map<string, number>();
  let unsureUntilMs = 0;
  let busySlots = 0;
  let stopping = false;
  const output = createNodeOutput({ db, progress: deps.progress, log });
  const executeDeps: ExecuteDeps = {
    registry,
    output,
    async saveCheckpoint(item, value) {
      if (!(await saveHeldCheckpoint(db, item, value))) throw new Error("the node is no longer held by this attempt");
    },
  };

  const claimers = Object.fromEntries(
    KINDS.map((kind) => [
      kind,
      createService({
        name: kind === "free" ? "chains.claim" : "chains.claim_in_pools",
        intervalMs: LOST_HINT_MS,
        log,
        onRun,
        runOnce: () => claim(kind),
      }),
    ]),
  ) as Record<Kind, Service>;
  const watcher = createService({ name: "chains.watch", intervalMs: WATCH_INTERVAL_MS, log, onRun, runOnce: watch });
  const unlisten: (() => void)[] = [];

  async function claim(kind: Kind): Promise<{ claimed: number }> {
    const limit = Math.min(room(), CLAIM_MAX);
    if (stopping || limit <= 0) {
      backlog.add(kind);
      return { claimed: 0 };
    }
    busySlots += limit; // Held while the claim is under way, for the other kind claims too.
    let claimed: ClaimedNode[] = [];
    try {
      claimed = await claimNodes(db, kind, { limit, session: session.id(), worker: deps.name });
    } catch (error) {
      beUnsure();
      throw error;
    } finally {
      if (claimed.length < limit) backlog.delete(kind);
      else backlog.add(kind);
      freeSlots(limit - claimed.length); // The other kind may have come while all of them were held.
    }
    if (claimed.length > 0) {
      deps.progress.changed(claimed.map(({ run_id }) => run_id));
      await begin(claimed);
    }
    return { claimed: claimed.length };
  }

  /** Free slots; fewer when what is done cannot be written as fast as it is done. */
  function room(): number {
    return Math.min(settings.slots - busySlots, UNREPORTED_MAX * settings.slots - running.size);
  }

  async function begin(claimed: readonly ClaimedNode[]): Promise<void> {
    let prepared: PreparedNode[];
    try {
      prepared = await prepare(deps, claimed);
    } catch (error) {
      freeSlots(claimed.length);
      beUnsure(); // Giving back may fail as well.
      await Promise.allSettled(claimed.map(giveBack));
      throw error;
    }
    for (const item of prepared) {
      const done = run(item);
      reporting.add(done);
      void done.finally(() => reporting.delete(done));
    }
  }

  function freeSlots(count: number): void {
    busySlots -= count;
    if (count !== 0) wakeBacklog();
  }

  function wakeBacklog(): void {
    for (const kind of backlog) claimers[kind].wake();
  }

  async function run(item: PreparedNode): Promise<void> {
    const control = new AbortController();
    const startedAt = performance.now();
    const work = execute(executeDeps, item, control);
    const current: Running = { item, control, leave: () => {}, takenAway: false };
    running.set(item.fence, current);
    const measured = ({ kind }: Outcome) => {
      const labels = { type: item.node.def.type, outcome: current.takenAway ? "taken away" : kind };
      metrics.observe("millrace_chains_node_seconds", labels, (performance.now() - startedAt) / 1000);
    };
    void work.then(measured);
    const outcome = await new Promise<Outcome | "deaf">((resolve) => {
      current.leave = () => resolve("deaf");
      void work.then(resolve);
    });
    freeSlots(1);
    if (outcome === "deaf") {
      current.takenAway = true; // Whenever it ends, it is only measured.
      running.delete(item.fence); // Should the database still take it for ours, the watch gives it back.
      return;
    }
    try {
      await output.flush();
      if (!current.takenAway)
        await report(await reportOf(item, outcome)).catch((error) => reportUnwritable(item, error));
    } catch (err) {
      beUnsure();
      log.error(
        { err, runId: item.run_id, nodeId: item.node_id },
        "a node's end could not be written; it will be taken back",
      );
    } finally {
      running.delete(item.fence);
      wakeBacklog(); // All slots may be free, and what was not yet written have been too much.
    }
  }

  /** Tells a node to stop. One that has not done so for as long as a run waits for it is left to itself. */
  function tellToStop(current: Running, reason: string): void {
    const { item, control } = current;
    control.abort(new Error(reason));
    const timer = setTimeout(() => {
      if (!running.has(item.fence)) return;
      beUnsure();
      log.warn({ runId: item.run_id, nodeId: item.node_id }, "a node does not heed its signal and was left to itself");
      current.leave();
    }, settings.stopGraceSeconds * 1000);
    timer.unref();
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
        return { runId, event: { kind: "failed", nodeId, fence, error: outcome.error, final: outcome.final } };
      case "sub-run":
        try {
          return await deps.subRuns.begin(item, outcome.subRun);
        } catch (error) {
          if (isUnavailable(error)) throw error;
          const message = error instanceof Error ? error.message : String(error);
          return { runId, event: { kind: "failed", nodeId, fence, error: message, final: !mayRetry(error) } };
        }
    }
  }

  /** What the database refuses to store it would refuse again: that is a failure of the node. */
  async function reportUnwritable(
    { run_id: runId, node_id: nodeId, fence }: PreparedNode,
    error: unknown,
  ): Promise<void> {
    if (isUnavailable(error)) throw error;
    const message = `its end could not be written: ${error instanceof Error ? error.message : String(error)}`;
    await report({ runId, event: { kind: "failed", nodeId, fence, error: message, final: true } });
  }

  async function report(said: Report): Promise<void> {
    const counted = await withRetry(() => engine.report(said), { policy: OUTLAST_SESSION, retryOn: isUnavailable });
    if (!counted) {
      const { runId, event } = said;
      log.info({ runId, nodeId: event.nodeId, event: event.kind }, "a node's end came too late and was dropped");
    }
  }

  function giveBack({ run_id: runId, node_id: nodeId, fence }: HeldNode): Promise<void> {
    return report({ runId, event: { kind: "released", nodeId, fence } });
  }

  /** Aborts what should stop, and what is no longer ours. */
  async function watch(): Promise<{ let_go: number }> {
    const mine = [...running.values()];
    const unsure = performance.now() < unsureUntilMs;
    if (mine.length === 0 && !unsure) return { let_go: 0 };
    const held = new Map((await heldNodes(db, session.id())).map((row) => [row.fence, row]));
    await giveBackStrays([...held.values()]);
    let letGo = 0;
    for (const current of mine) {
      const row = held.get(current.item.fence);
      if (row && !row.stopping) continue;
      if (!row && running.has(current.item.fence)) current.takenAway = true;
      if (current.control.signal.aborted) continue;
      tellToStop(current, row ? "the run was stopped" : "the node was taken away");
      letGo += 1;
    }
    return { let_go: letGo };
  }

  function beUnsure(): void {
    unsureUntilMs = performance.now() + UNSURE_MS;
    watcher.wake();
  }

  /** The answer to a claim may be lost after its commit. Nobody else takes back what is ours while we live. */
  async function giveBackStrays(held: readonly HeldNode[]): Promise<void> {
    const now = performance.now();
    const seenBefore = new Map(strays);
    strays.clear();
    const givenBack: Promise<void>[] = [];
    for (const node of held) {
      if (running.has(node.fence)) continue;
      const since = seenBefore.get(node.fence) ?? now;
      strays.set(node.fence, since);
      if (now - since >= STRAY_MS) givenBack.push(giveBack(node));
    }
    await Promise.all(givenBack);
  }

  async function stop(): Promise<void> {
    stopping = true;
    for (const end of unlisten) end();
    await Promise.all(KINDS.map((kind) => claimers[kind].stop()));
    await settled(settings.drainSeconds * 1000);
    const left = [...running.values()];
    for (const current of left) {
      current.takenAway = true; // What it says from now on does not count: we speak for it.
      current.control.abort(new Error("this process is shutting down"));
    }
    await Promise.allSettled(left.map(({ item }) => giveBack(item)));
    await watcher.stop();
    await engine.drain();
  }

  function settled(ms: number): Promise<void> {
    if (reporting.size === 0) return Promise.resolve();
    const enough = new AbortController();
    const all = Promise.allSettled(reporting).finally(() => enough.abort());
    const time = sleepFor(ms, undefined, { signal: enough.signal }).catch(() => undefined);
    return Promise.race([all, time]).then(() => undefined);
  }

  const taker: Taker = {
    session: session.id,
    name: deps.name,
    unsure: beUnsure,
    reserve(wanted) {
      // With a backlog, what is ready longer or matters more goes first, and the database knows which that is.
      const reserved = stopping || backlog.has("free") ? 0 : Math.max(0, Math.min(wanted, room()));
      busySlots += reserved;
      return reserved;
    },
    take(nodes, reserved) {
      freeSlots(reserved - nodes.length);
      if (nodes.length === 0) return;
      const begun = begin(nodes).catch((err: unknown) =>
        log.error({ err }, "nodes that were taken over could not be begun"),
      );
      reporting.add(begun);
      void begun.finally(() => reporting.delete(begun));
    },
  };

  metrics.gauge("millrace_chains_nodes_in_flight", () => [{ labels: {}, value: running.size }]);
  return {
    start() {
      engine.handOverTo(taker);
      unlisten.push(
        wake.on(READY_TOPIC, claimers.free.wake),
        wake.on(READY_IN_POOL_TOPIC, claimers.pooled.wake),
        wake.on(LET_GO_TOPIC, watcher.wake),
      );
      for (const kind of KINDS) claimers[kind].start();
      watcher.start();
    },
    stop,
  };
}
