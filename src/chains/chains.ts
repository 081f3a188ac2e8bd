/** Puts the parts of the module together for one process: what people use, the worker, the timers. */

import type { Db } from "../kernel/data/db.ts";
import { systemIds } from "../kernel/ids.ts";
import type { NamedSecrets } from "../kernel/secrets/named-secrets.ts";
import { systemClock } from "../kernel/time/clock.ts";
import type { Outbox } from "../kernel/work/outbox.ts";
import type { OnRun, Service, ServiceLog } from "../kernel/work/service.ts";
import { PROCESS_NAME, type Session } from "../kernel/work/session.ts";
import type { Wake } from "../kernel/work/wake.ts";
import type { ChainsMetrics } from "./catalogue.ts";
import { createDefinitions, type Definitions } from "./definitions/definitions.ts";
import { createEnded } from "./engine/ended.ts";
import { createEngine } from "./engine/engine.ts";
import type { HasArrived } from "./engine/open-books.ts";
import { createRunCache, type RunCache } from "./engine/run-cache.ts";
import type { TellEnded } from "./engine/tell.ts";
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
import { readNodeEnds, readReasons } from "./store/history.ts";
import { type ArrivedTable, awaitedTables, findWaiting } from "./store/waits.ts";
import { chain } from "./types/chain.ts";
import { map } from "./types/map.ts";
import type { NodeType } from "./types/node-type.ts";
import { noop } from "./types/noop.ts";
import { createRegistry } from "./types/registry.ts";
import { sleep } from "./types/sleep.ts";
import { createWorker, type Worker } from "./worker/worker.ts";

export interface Chains {
  definitions: Definitions;
  runs: Runs;
  /** What people read of runs. */
  reads: RunReads;
  schedules: Schedules;
  pools: Pools;
  /** Start it in a process with the role `worker`. */
  worker: Worker;
  /** Start it in a process with the role `scheduler`. */
  timers: Service;
  /** Start it in a process with the role `scheduler`. */
  retention: Service;
  /** Tables have arrived: lets the nodes go on that wait for them. Answers how many did. */
  arrived(arrivals: readonly ArrivedTable[]): Promise<number>;
  /** Runs that another module starts and waits for. */
  called: CalledRuns;
  /** Types of nodes that another module brings, before anything is started. */
  addTypes(types: readonly NodeType[]): void;
  /** Tells another module of runs that end, in their transaction. Ask for it before anything is started. */
  onEnded(listener: TellEnded): void;
  history: History;
}

/** What is left of runs that have ended. */
export interface History {
  runs: RunCache["get"];
  nodeEnds: typeof readNodeEnds;
  reasons: typeof readReasons;
}

export interface ChainsDeps {
  db: Db;
  wake: Wake;
  session: Session;
  metrics: ChainsMetrics;
  log: ServiceLog;
  onRun: OnRun;
  settings: ChainsSettings;
  /** What nodes name as `${secrets.NAME}`. */
  secrets: Pick<NamedSecrets, "open">;
  /** Beside those that need nothing from outside. */
  types: readonly NodeType[];
  /** Types that are known but not to be used here, with what to do about it. */
  switchedOff?: Readonly<Record<string, string>>;
  /** Which tables have arrived before a run begins to wait for them. */
  hasArrived: HasArrived;
  outbox: Pick<Outbox, "emit">;
  /** The name under which a table is kept, where that is not the one that was given. */
  tableName?: (given: string) => string;
}

const AWAITED_AT_ONCE = 5_000;

export function createChains(deps: ChainsDeps): Chains {
  const { db, wake, metrics, settings, log, tableName = (given) => given } = deps;
  const registry = createRegistry([noop, sleep, chain, map, ...deps.types], deps.switchedOff);
  const known = createRunCache(tableName);
  const ids = systemIds;
  const progress = createProgress(wake);
  const ended = createEnded({ outbox: deps.outbox, clock: systemClock, ids });
  const engine = createEngine({
    db,
    wake,
    progress,
    metrics,
    runs: known,
    hasArrived: deps.hasArrived,
    tellEnded: ended,
    random: Math.random,
  });
  const definitions = createDefinitions({ db, registry, ids });
  const stopGraceMs = settings.stopGraceSeconds * 1000;
  const runs = createRuns({ db, wake, engine, definitions, ids, stopGraceMs });
  const schedules = createSchedules({ db, wake, clock: systemClock, ids, definitions, log });
  const subRuns = createSubRuns({ db, engine, runs, ids, log });
  engine.onEnded((run, status) => void subRuns.ended(run, status));

  async function arrived(arrivals: readonly ArrivedTable[]): Promise<number> {
    const waiting = await findWaiting(db, arrivals);
    const counted = await Promise.all(
      waiting.map(({ run_id: runId, node_id: nodeId, table_name: table }) =>
        engine.report({ runId, event: { kind: "arrived", nodeId, table } }),
      ),
    );
    return counted.filter(Boolean).length;
  }

  /** Who was to tell of an arrival may have died after its commit. */
  async function catchUpWithArrivals(): Promise<number> {
    const here: ArrivedTable[] = [];
    for (const { op_time: opTime, tables } of await awaitedTables(db, AWAITED_AT_ONCE)) {
      for (const table of await deps.hasArrived(db, tables, opTime)) here.push({ table, opTime });
    }
    return here.length > 0 ? arrived(here) : 0;
  }

  return {
    definitions,
    runs,
    reads: createRunReads({ db }),
    schedules,
    pools: createPools({ db, wake }),
    worker: createWorker({ ...deps, progress, engine, runs: known, registry, subRuns, name: PROCESS_NAME }),
    timers: createTimers({ ...deps, engine, runs, known, schedules, subRuns, catchUpWithArrivals }),
    retention: createRetention(deps),
    arrived,
    called: createCalledRuns({ db, wake, runs, known }),
    addTypes: registry.add,
    onEnded: ended.listen,
    history: { runs: known.get, nodeEnds: readNodeEnds, reasons: readReasons },
  };
}
