/**
 * Several Millrace processes that run models, simulated inside the test's process: each has its own connections, session,
 * worker and timers. The SQL of a model is replaced by a function of the test.
 */
import { afterEach, beforeEach, expect } from "vitest";
import { type Arrivals, createArrivals } from "../src/arrivals/arrivals.ts";
import { CATALOGUE } from "../src/arrivals/catalogue.ts";
import type { ModelInput } from "../src/arrivals/models/models.ts";
import type { InstanceState, TaskStatus } from "../src/arrivals/runs/states.ts";
import type { ArrivalsSettings } from "../src/arrivals/settings.ts";
import { findViolations } from "../src/arrivals/store/invariants.ts";
import type { Engine, Engines, Row } from "../src/engines/engine.ts";
import { type Db, openDb } from "../src/kernel/data/db.ts";
import { createMetrics } from "../src/kernel/telemetry/metrics.ts";
import { createOutbox, type OutboxConsumer } from "../src/kernel/work/outbox.ts";
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

export interface ActCall {
  modelId: string;
  opTime: string;
  signal: AbortSignal;
}
/** Replaces the SQL of a model: answers its rows. */
export type Act = (calls: ActCall) => Promise<Row[]> | Row[];

export interface ArrivalProcess extends Arrivals {
  logged: LogLine[];
  /** The largest number of models that ran at the same time. */
  mostAtOnce: number;
  /** Expires its session, as after `kill -9`. */
  expireSession(): Promise<void>;
  stop(): Promise<void>;
}

type ArrivalsDeps = Parameters<typeof createArrivals>[0];
type ChainPort = ArrivalsDeps["chains"];

export interface ProcessOptions extends Partial<ArrivalsSettings> {
  /** The services that run in it. Without `scheduler` the test calls `timers.runOnce()`; without `worker` nothing is claimed. */
  roles?: readonly ("scheduler" | "worker")[];
  /** Wraps its database, for example to make statements fail. */
  through?: (db: Db) => Db;
  chains?: ChainPort;
  onRunEnded?: Parameters<Arrivals["onRunEnded"]>[0];
}

export interface SeenTask {
  id: string;
  model: string;
  opTime: string;
  status: TaskStatus;
  generation: number;
  message: string | null;
  chainRunId: string | null;
}

export interface ArrivalProcesses {
  open(options?: ProcessOptions): Promise<ArrivalProcess>;
  /** Replaces the SQL of models, by id; the default returns 1 for its indicator. */
  acts: Map<string, Act>;
  /** Every started run: `<model id> <opTime>`. */
  begun: string[];
  /** Defines and publishes a model that depends on these tables and feeds the indicator `<model id>.K`. */
  define(
    process: ArrivalProcess,
    modelId: string,
    tables: readonly string[],
    fields?: Partial<ModelInput>,
  ): Promise<void>;
  state(modelId: string, opTime: string): Promise<InstanceState | undefined>;
  tasks(): Promise<SeenTask[]>;
  /** Waits until this many runs have the status. */
  ended(status: Exclude<TaskStatus, "RUNNING">, count?: number): Promise<SeenTask[]>;
  /** The emitted events, as `topic model opTime generation`. */
  emitted(): Promise<string[]>;
  /** Values of indicators, as `kpi opTime value generation`. */
  values(): Promise<string[]>;
}

export const SETTINGS: ArrivalsSettings = {
  slots: 100,
  waitSeconds: 30,
  timeoutSeconds: 60,
  rowsMax: 1_000,
  resultBytesMax: 1_048_576,
  opTimePattern: ".",
  tableCase: "as-given",
  lostLimit: 5,
  keepDays: 1_095,
  runsKeepDays: 365,
  files: [],
};
/** Releases every held act after the test, so that no process waits for it when it stops. */
const gates: (() => void)[] = [];
const NO_CHAINS: ChainPort = {
  chains: { existing: async (names) => names, all: async () => [] },
  start: () => Promise.reject(new Error("there are no chains here")),
  outcome: () => Promise.reject(new Error("there are no chains here")),
  underWay: async () => new Set(),
  stop: async () => {},
  rootOf: async () => undefined,
  onChange: () => {},
  endWait: async () => "gone",
  stillWaiting: async () => new Set(),
};

/** A consumer that no relay serves, so that emitted events stay in the outbox where tests read them. */
export const TEST_CONSUMER: OutboxConsumer = {
  name: "test",
  topics: ["kpi.updated", "model.failed"],
  deliver: async () => {},
  timeoutMs: 1_000,
  retry: { maxAttempts: 1, baseMs: 1, factor: 1, capMs: 1, jitter: 0 },
};

export const kpiOf = (modelId: string) => `${modelId}.K`;

/** Call it at the top of a test file. After each test it checks the invariants and empties the tables. */
export function useArrivalProcesses(database: TestDatabase): ArrivalProcesses {
  const open: ArrivalProcess[] = [];
  const acts = new Map<string, Act>();
  const begun: string[] = [];

  beforeEach(() => {
    acts.clear();
    begun.length = 0;
  });
  afterEach(async () => {
    for (const release of gates.splice(0)) release();
    await Promise.all(open.splice(0).map((process) => process.stop()));
    const violations = await findViolations(database.db);
    await database.query(
      `truncate arrivals.metrics_model, arrivals.metrics_etl_log, arrivals.model_instance, arrivals.metrics_task_log, arrivals.node_wait,
         arrivals.metrics_kpi, arrivals.metrics_kpi_data, kernel.outbox cascade`,
    );
    expect(violations).toEqual([]);
  });

  /** The SQL of a model of these tests is its id. */
  function enginesOf(running: { now: number; most: number }): Engines {
    const engine: Engine = {
      name: "duckdb",
      kind: "duckdb",
      async *stream(modelId, { params, signal: aborted }) {
        const { op_time: opTime } = params as { op_time: string };
        begun.push(`${modelId} ${opTime}`);
        running.now += 1;
        running.most = Math.max(running.most, running.now);
        try {
          const act = acts.get(modelId) ?? (() => [{ kpi_id: kpiOf(modelId), value: 1 }]);
          yield await act({ modelId, opTime, signal: aborted });
        } finally {
          running.now -= 1;
        }
      },
      query: () => Promise.reject(new Error("models stream")),
      health: async () => {},
      close: async () => {},
    };
    const syntaxError = async () => undefined;
    return { get: () => engine, names: () => ["duckdb"], syntaxError, close: async () => {} };
  }

  const tasks = () =>
    database.query<SeenTask>(
      `select id::text as id, model_id as model, op_time as "opTime", status, generation, message, chain_run_id as "chainRunId"
       from arrivals.metrics_task_log order by metrics_task_log.id`,
    );

  return {
    acts,
    begun,
    tasks,

    async open(options = {}) {
      const { roles = ["scheduler", "worker"], through = (db: Db) => db, chains = NO_CHAINS, ...others } = options;
      const { onRunEnded, ...settings } = others;
      const log = recordingLog();
      const own = openDb({ connection: database.connection, poolSize: 6 });
      const db = through(own);
      const pulse = await openPulse({ db: own, log });
      const wake = createWake({ pulse, log });
      const session = await openSession({ pulse, log, version: "test", roles });
      const setExpiry = (seconds: number) =>
        database.query("update kernel.session set expires_at = now() + make_interval(secs => $2) where id = $1", [
          session.id(),
          seconds,
        ]);
      await setExpiry(3_600); // Instead of a heartbeat.
      const running = { now: 0, most: 0 };
      const arrivals = createArrivals({
        db,
        wake,
        hints: noHints,
        session,
        log,
        chains,
        metrics: createMetrics().define(CATALOGUE.metrics),
        onRun: () => {},
        settings: { ...SETTINGS, ...settings },
        engines: enginesOf(running),
        outbox: createOutbox([TEST_CONSUMER], wake),
        onArrived: () => {},
      });
      if (onRunEnded) arrivals.onRunEnded(onRunEnded);
      const process: ArrivalProcess = {
        ...arrivals,
        logged: log.lines,
        get mostAtOnce() {
          return running.most;
        },
        expireSession: async () => void (await setExpiry(-1)),
        async stop() {
          arrivals.runWaiters.stop();
          await arrivals.drain();
          await arrivals.timers.stop();
          await arrivals.worker.stop();
          await session.close();
          await wake.stop();
          await pulse.stop();
          await own.close();
        },
      };
      open.push(process);
      if (roles.includes("worker")) arrivals.worker.start();
      if (roles.includes("scheduler")) arrivals.timers.start();
      return process;
    },

    async define({ models }, modelId, tables, fields = {}) {
      const work = fields.chain === undefined ? { sql: modelId } : {};
      const dependencies = tables.map((table) => ({ table }));
      await models.put(modelId, { name: modelId, ...work, dependencies, kpis: [kpiOf(modelId)], ...fields }, ACTOR);
      await models.setPublished(modelId, true, ACTOR);
    },

    async state(modelId, opTime) {
      const [row] = await database.query<{ state: InstanceState }>(
        "select state from arrivals.model_instance where model_id = $1 and op_time = $2",
        [modelId, opTime],
      );
      return row?.state;
    },

    ended: (status, count = 1) =>
      until(async () => {
        const found = (await tasks()).filter((task) => task.status === status);
        return found.length >= count && found;
      }, `${count} runs to be ${status}`),

    async emitted() {
      const rows = await database.query<{ shown: string }>(
        `select concat_ws(' ', topic, payload ->> 'modelId', payload ->> 'opTime', payload ->> 'generation') as shown
         from kernel.outbox order by outbox.id`,
      );
      return rows.map(({ shown }) => shown);
    },

    async values() {
      const rows = await database.query<{ shown: string }>(
        `select concat_ws(' ', kpi_id, op_time, value, generation) as shown from arrivals.metrics_kpi_data order by 1`,
      );
      return rows.map(({ shown }) => shown);
    },
  };
}

/** The announcement of a table, by default without an idempotency key. */
export function arrival(table: string, opTime: string, idempotencyKey: string | null = null) {
  return { table, opTime, idempotencyKey };
}

/** An act that runs until the test releases it or, unless `ignoresAbort` is set, until it is aborted. */
export function held({ ignoresAbort = false } = {}) {
  const calls: ActCall[] = [];
  const gate = signal<number>();
  gates.push(() => gate.resolve(0));
  const act: Act = async (one) => {
    calls.push(one);
    const aborted = signal<never>();
    one.signal.addEventListener("abort", () => aborted.reject(one.signal.reason), { once: true });
    aborted.promise.catch(() => {});
    const value = await (ignoresAbort ? gate.promise : Promise.race([gate.promise, aborted.promise]));
    return [{ kpi_id: kpiOf(one.modelId), value }];
  };
  return {
    act,
    calls,
    /** The act then returns this value. */
    release: (value = 1) => gate.resolve(value),
    /** Waits until this many have started. */
    begun: (count = 1) => until(() => calls.length >= count && calls, `${count} held runs to begin`),
  };
}
