/** Wires the parts of the module for one process: use cases, worker, timers. */

import type { Db } from "../kernel/data/db.ts";
import { systemIds } from "../kernel/ids.ts";
import type { InUse } from "../kernel/in-use.ts";
import type { NamedSecrets } from "../kernel/secrets/named-secrets.ts";
import { systemClock } from "../kernel/time/clock.ts";
import type { Outbox } from "../kernel/work/outbox.ts";
import type { OnRun, Service, ServiceLog } from "../kernel/work/service.ts";
import { PROCESS_NAME, type Session } from "../kernel/work/session.ts";
import type { Wake } from "../kernel/work/wake.ts";
import type { ChainsHints, ChainsMetrics } from "./catalogue.ts";
import { createDefinitions, type Definitions } from "./definitions/definitions.ts";
import { createRunEndListeners } from "./engine/ended.ts";
import { createEngine } from "./engine/engine.ts";
import type { RunsEndedListener } from "./engine/notify.ts";
import type { HasArrived } from "./engine/open-books.ts";
import { createRunCache, type RunCache } from "./engine/run-cache.ts";
import { createTimers } from "./engine/timers.ts";
import { type CalledRuns, createCalledRuns } from "./runs/called-runs.ts";
import { createProgress } from "./runs/progress.ts";
import { createRetention } from "./runs/retention.ts";
import { createRunReads, type RunReads } from "./runs/run-reads.ts";
import { createRuns, type Runs } from "./runs/runs.ts";
import { createSubRuns } from "./runs/sub-runs.ts";
import { createPools, type Pools } from "./schedules/pools.ts";
import { createSchedules, type Schedules } from "./schedules/schedules.ts";
import type { ChainsSettings } from "./settings.ts";
import { readNodeEnds } from "./store/history.ts";
import { chainNames, existingChains } from "./store/runs.ts";
import { type ArrivedTable, awaitedTables, findWaiting } from "./store/waits.ts";
import { createTiming, type Timing } from "./timing/timing.ts";
import { chain } from "./types/chain.ts";
import { map } from "./types/map.ts";
import type { NodeType, Reference } from "./types/node-type.ts";
import { noop } from "./types/noop.ts";
import { createRegistry } from "./types/registry.ts";
import { sleep } from "./types/sleep.ts";
import { createWorker, type Worker } from "./worker/worker.ts";

export interface Chains {
  definitions: Definitions;
  runs: Runs;
  /** Reads of runs for the API. */
  reads: RunReads;
  /** How long runs and nodes took. */
  timing: Timing;
  schedules: Schedules;
  pools: Pools;
  /** Start it in a process with the role `worker`. */
  worker: Worker;
  /** Start it in a process with the role `scheduler`. */
  timers: Service;
  /** Start it in a process with the role `scheduler`. */
  retention: Service;
  /** Reports arrived tables to the nodes that wait for them. Returns how many waits it satisfied. */
  arrived(arrivals: readonly ArrivedTable[]): Promise<number>;
  /** Runs that another module starts and waits for, and nodes that wait for it. */
  called: CalledRuns;
  /** Adds node types of another module. Call it before anything is started. */
  addTypes(types: readonly NodeType[]): void;
  /** Adds a listener for runs that end, called in the transaction that ends them. Call it before anything is started. */
  onRunsEnded(listener: RunsEndedListener): void;
  history: History;
}

/** Reads about runs that have ended. */
export interface History {
  runs: RunCache["get"];
  nodeEnds: typeof readNodeEnds;
}

export interface ChainsDeps {
  db: Db;
  wake: Wake;
  hints: ChainsHints;
  session: Session;
  metrics: ChainsMetrics;
  log: ServiceLog;
  onRun: OnRun;
  settings: ChainsSettings;
  /** The values of `${secrets.NAME}` in nodes. */
  secrets: Pick<NamedSecrets, "open" | "list">;
  /** Node types in addition to `noop`, `sleep`, `chain` and `map`. */
  types: readonly NodeType[];
  /** By node type that is disabled here: how to enable it. */
  disabledTypes?: Readonly<Record<string, string>>;
  /** Which tables arrived before a run started to wait for them. */
  hasArrived: HasArrived;
  outbox: Pick<Outbox, "emit">;
  inUse?: InUse;
  /** The stored name of a table, where it differs from the given one. */
  tableName?: (given: string) => string;
}

const AWAITED_AT_ONCE = 5_000;

export function createChains(deps: ChainsDeps): Chains {
  const { db, wake, hints, metrics, settings, log, tableName = (given) => given } = deps;
  const chainNamed: Reference = {
    field: "name",
    what: "chain",
    existing: (names) => existingChains(db, names),
    all: () => chainNames(db),
  };
  const chainType = { ...chain, references: [chainNamed] };
  const registry = createRegistry([noop, sleep, chainType, map, ...deps.types], deps.disabledTypes);
  const runCache = createRunCache(tableName);
  const ids = systemIds;
  const progress = createProgress({ db, wake, hints });
  const runEndListeners = createRunEndListeners({ outbox: deps.outbox, clock: systemClock, ids });
  const engine = createEngine({
    db,
    wake,
    hints,
    progress,
    metrics,
    runCache,
    hasArrived: deps.hasArrived,
    runsEnded: runEndListeners,
    random: Math.random,
    log,
  });
  const definitions = createDefinitions({ ...deps, registry, ids });
  const stopGraceMs = settings.stopGraceSeconds * 1000;
  const runs = createRuns({ db, wake, hints, engine, definitions, ids, stopGraceMs });
  const schedules = createSchedules({ db, wake, hints, clock: systemClock, ids, definitions, log });
  const subRuns = createSubRuns({ db, engine, runs, ids, log });
  engine.onEndCommitted((run, status) => void subRuns.ended(run, status));

  async function arrived(arrivals: readonly ArrivedTable[]): Promise<number> {
    const waiting = await findWaiting(db, arrivals);
    const counted = await Promise.all(
      waiting.map(({ run_id: runId, node_id: nodeId, table_name: table }) =>
        engine.report({ runId, event: { kind: "arrived", nodeId, table } }),
      ),
    );
    return counted.filter(Boolean).length;
  }

  /** The process that recorded an arrival may have died before it reported it. */
  async function catchUpWithArrivals(): Promise<number> {
    const found: ArrivedTable[] = [];
    for (const { op_time: opTime, tables } of await awaitedTables(db, AWAITED_AT_ONCE)) {
      for (const table of await deps.hasArrived(db, tables, opTime)) found.push({ table, opTime });
    }
    return found.length > 0 ? arrived(found) : 0;
  }

  return {
    definitions,
    runs,
    reads: createRunReads({ db }),
    timing: createTiming({ db, runCache, definitions }),
    schedules,
    pools: createPools({ db, wake, hints }),
    worker: createWorker({ ...deps, progress, engine, runCache, registry, subRuns, name: PROCESS_NAME }),
    timers: createTimers({ ...deps, engine, runs, runCache, schedules, subRuns, catchUpWithArrivals }),
    retention: createRetention(deps),
    arrived,
    called: createCalledRuns({
      db,
      wake,
      hints,
      ids,
      runs,
      engine,
      runCache,
      chainNamed,
      onChange: runEndListeners.setCaller,
    }),
    addTypes: registry.add,
    onRunsEnded: runEndListeners.add,
    history: { runs: runCache.get, nodeEnds: readNodeEnds },
  };
}
