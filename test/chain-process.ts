/**
 * Chains processes inside the test's process: each has its own connections, session, worker and timers, like a server. Their
 * nodes of type `act` call functions of the test.
 */
import { Type } from "typebox";
import { afterEach, beforeEach, expect } from "vitest";
import { CATALOGUE } from "../src/chains/catalogue.ts";
import { type Chains, createChains } from "../src/chains/chains.ts";
import { ENDED_RUN, type NodeStatus, type RunStatus } from "../src/chains/engine/states.ts";
import type { ChainsSettings } from "../src/chains/settings.ts";
import { findViolations } from "../src/chains/store/invariants.ts";
import { type NodeContext, type NodeResult, nodeType } from "../src/chains/types/node-type.ts";
import { openDb } from "../src/kernel/data/db.ts";
import { createSecretBox } from "../src/kernel/secrets/cipher.ts";
import { createNamedSecrets } from "../src/kernel/secrets/named-secrets.ts";
import { createMetrics } from "../src/kernel/telemetry/metrics.ts";
import { createOutbox } from "../src/kernel/work/outbox.ts";
import { openPulse } from "../src/kernel/work/pulse.ts";
import { openSession } from "../src/kernel/work/session.ts";
import { createWake } from "../src/kernel/work/wake.ts";
import type { TestDatabase } from "./database.ts";
import { type LogLine, recordingLog } from "./log.ts";
import { noHints } from "./no-hints.ts";
import { signal, until } from "./until.ts";

export const ACTOR = {
  caller: { name: "test", keyId: null, scopes: [], tenantId: null, source: null, rateLimitPerMinute: null },
  address: "",
  requestId: "",
};

export type Act = (ctx: NodeContext, cfg: Record<string, unknown>) => Promise<NodeResult> | NodeResult;

export interface ChainProcess extends Chains {
  /** The names of the statements that it sent, in order. */
  statements: string[];
  logged: LogLine[];
  /** The largest number of acts that ran at the same time. */
  mostAtOnce: number;
  /** Other processes see it as dead, as after `kill -9`: its session has expired. */
  expireSession(): Promise<void>;
  stop(): Promise<void>;
}

export interface ProcessOptions extends Partial<ChainsSettings> {
  /** Without `scheduler` the test calls `timers.runOnce()`; without `worker` nothing is claimed. */
  roles?: readonly ("scheduler" | "worker")[];
  /** Called after `hasArrived` has read the arrivals, before it returns them. */
  meanwhile?: () => Promise<unknown>;
}

export interface Seen {
  status: RunStatus;
  reason: string | null;
  nodes: Record<string, { status: NodeStatus; attempt: number; error: string | null; artifact: unknown }>;
}

export interface ChainProcesses {
  open(options?: ProcessOptions): Promise<ChainProcess>;
  /** What nodes do, by node id; a node without an act succeeds at once. */
  acts: Map<string, Act>;
  /** Every act that started: `<run id>/<node id>/<attempt>`. */
  begun: string[];
  /** Tables that `hasArrived` returns, as `table opTime`. */
  arrivals: Set<string>;
  define(process: ChainProcess, nodes: readonly object[], options?: object): Promise<string>;
  look(runId: string): Promise<Seen>;
  /** Waits for the run's end. */
  ended(runId: string): Promise<Seen>;
  /** The ids of the nodes that started, in order. */
  begunNodes(): string[];
}

const SETTINGS = { slots: 100, stopGraceSeconds: 30, drainSeconds: 0, lostLimit: 5, keepDays: 365, nodeTypes: [] };

/** Call at the top of a test file. After each test it checks the invariants and truncates the tables. */
export function useChainProcesses(database: TestDatabase): ChainProcesses {
  const open: ChainProcess[] = [];
  const acts = new Map<string, Act>();
  const arrivals = new Set<string>();
  const begun: string[] = [];
  let chainsMade = 0;

  beforeEach(() => {
    acts.clear();
    arrivals.clear();
    begun.length = 0;
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((process) => process.stop()));
    const violations = await findViolations(database.db);
    await database.query(
      "truncate chains.live_node, chains.live_wait, chains.job_run_node, chains.pool, chains.job_chain_definition cascade",
    );
    expect(violations).toEqual([]);
  });

  async function look(runId: string): Promise<Seen> {
    const [run] = await database.query<Pick<Seen, "status" | "reason">>(
      "select status, reason from chains.job_run where run_id = $1",
      [runId],
    );
    if (!run) throw new Error(`run ${runId} does not exist`);
    const nodes = await database.query<Seen["nodes"][string] & { id: string }>(
      `select node_id as id, status, attempt, last_error as error, artifact_json as artifact
       from chains.job_run_node where run_id = $1 order by node_no`,
      [runId],
    );
    return { ...run, nodes: Object.fromEntries(nodes.map(({ id, ...node }) => [id, node])) };
  }

  return {
    acts,
    arrivals,
    begun,
    look,
    begunNodes: () => begun.map((key) => key.split("/")[1] ?? ""),

    async open({ roles = ["scheduler", "worker"], meanwhile, ...settings } = {}) {
      const statements: string[] = [];
      const log = recordingLog();
      const db = openDb({
        connection: database.connection,
        poolSize: 6,
        onStatement: (name) => void statements.push(name),
      });
      const pulse = await openPulse({ db, log });
      const wake = createWake({ pulse, log });
      const session = await openSession({ pulse, log, version: "test", roles });
      const setExpiry = (seconds: number) =>
        database.query("update kernel.session set expires_at = now() + make_interval(secs => $2) where id = $1", [
          session.id(),
          seconds,
        ]);
      await setExpiry(3_600); // Instead of a heartbeat, which would be recorded in `statements`.
      let running = 0;
      const act = nodeType({
        type: "act",
        summary: "Calls a function of the test.",
        cfg: Type.Object({}, { additionalProperties: true }),
        async execute(ctx, cfg) {
          begun.push(`${ctx.runId}/${ctx.nodeId}/${ctx.attempt}`);
          running += 1;
          process.mostAtOnce = Math.max(process.mostAtOnce, running);
          try {
            return (await acts.get(ctx.nodeId)?.(ctx, { ...cfg })) ?? {};
          } finally {
            running -= 1;
          }
        },
      });
      const chains = createChains({
        db,
        wake,
        hints: noHints,
        session,
        log,
        metrics: createMetrics().define(CATALOGUE.metrics),
        onRun: () => {},
        settings: { ...SETTINGS, ...settings },
        secrets: createNamedSecrets({ db, hints: noHints, box: createSecretBox(undefined) }),
        types: [act],
        outbox: createOutbox([], wake),
        async hasArrived(_tx, tables, opTime) {
          const here = new Set(tables.filter((table) => arrivals.has(`${table} ${opTime}`)));
          await meanwhile?.();
          return here;
        },
      });
      const process: ChainProcess = {
        ...chains,
        statements,
        logged: log.lines,
        mostAtOnce: 0,
        expireSession: async () => void (await setExpiry(-1)),
        async stop() {
          await chains.timers.stop();
          await chains.worker.stop();
          await session.close();
          await wake.stop();
          await pulse.stop();
          await db.close();
        },
      };
      open.push(process);
      if (roles.includes("worker")) chains.worker.start();
      if (roles.includes("scheduler")) chains.timers.start();
      return process;
    },

    async define(process, nodes, options = {}) {
      chainsMade += 1;
      const dagJson = { nodes: nodes.map((node) => ({ type: "act", ...node })) };
      const { chain_id } = await process.definitions.create(
        { name: `chain ${chainsMade}`, dagJson, ...options },
        ACTOR,
      );
      return chain_id;
    },

    ended: (runId) =>
      until(async () => {
        const seen = await look(runId);
        return ENDED_RUN.has(seen.status) && seen;
      }, `run ${runId} to end`),
  };
}

/** An act that runs until the test releases it or, unless it `ignoresAbort`, until it is aborted. */
export function held({ ignoresAbort = false } = {}) {
  const contexts: NodeContext[] = [];
  const gate = signal();
  const act: Act = async (ctx) => {
    contexts.push(ctx);
    const aborted = signal<never>();
    ctx.signal.addEventListener("abort", () => aborted.reject(ctx.signal.reason), { once: true });
    aborted.promise.catch(() => {});
    await (ignoresAbort ? gate.promise : Promise.race([gate.promise, aborted.promise]));
    return {};
  };
  return {
    act,
    contexts,
    release: gate.resolve,
    /** Resolves when this many have started. */
    begun: (count = 1) => until(() => contexts.length >= count && contexts, `${count} held acts to start`),
  };
}
