/** Puts the parts of the module together for one process: what people use, the worker, the timers. */
import { systemClock } from "../kernel/clock.ts";
import type { Db } from "../kernel/db.ts";
import { systemIds } from "../kernel/ids.ts";
import type { OnRun, Service, ServiceLog } from "../kernel/service.ts";
import { PROCESS_NAME, type Session } from "../kernel/session.ts";
import type { Metrics } from "../kernel/telemetry/metrics.ts";
import type { Wake } from "../kernel/wake.ts";
import { createDefinitions, type Definitions } from "./definitions.ts";
import { createEngine } from "./engine.ts";
import type { HasArrived } from "./open-books.ts";
import { createProgress } from "./progress.ts";
import { createRunCache } from "./run-cache.ts";
import { createRuns, type Runs } from "./runs.ts";
import { createSchedules, type Schedules } from "./schedules.ts";
import type { ChainsSettings } from "./settings.ts";
import { findWaiting } from "./store/waits.ts";
import { createSubRuns } from "./sub-runs.ts";
import { createTimers } from "./timers.ts";
import { chain } from "./types/chain.ts";
import { map } from "./types/map.ts";
import type { NodeType } from "./types/node-type.ts";
import { noop } from "./types/noop.ts";
import { createRegistry } from "./types/registry.ts";
import { sleep } from "./types/sleep.ts";
import { createWorker, type Worker } from "./worker.ts";

export interface Chains {
  definitions: Definitions;
  runs: Runs;
  schedules: Schedules;
  /** Start it in a process with the role `worker`. */
  worker: Worker;
  /** Start it in a process with the role `scheduler`. */
  timers: Service;
  /** A table has arrived for an opTime: lets the nodes go on that wait for it. Answers how many did. */
  arrived(table: string, opTime: string): Promise<number>;
}

export interface ChainsDeps {
  db: Db;
  wake: Wake;
  session: Session;
  metrics: Metrics;
  log: ServiceLog;
  onRun: OnRun;
  settings: ChainsSettings;
  /** Beside those that need nothing from outside. */
  types: readonly NodeType[];
  /** Types that are known but not to be used here, with what to do about it. */
  switchedOff?: Readonly<Record<string, string>>;
  /** Which tables have arrived before a run begins to wait for them. */
  hasArrived: HasArrived;
}

export function createChains(deps: ChainsDeps): Chains {
  const { db, wake, metrics, settings, log } = deps;
  const registry = createRegistry([noop, sleep, chain, map, ...deps.types], deps.switchedOff);
  const known = createRunCache();
  const ids = systemIds;
  const progress = createProgress(wake);
  const engine = createEngine({
    db,
    wake,
    progress,
    metrics,
    runs: known,
    hasArrived: deps.hasArrived,
    random: Math.random,
  });
  const definitions = createDefinitions({ db, registry, ids });
  const stopGraceMs = settings.stopGraceSeconds * 1000;
  const runs = createRuns({ db, wake, engine, definitions, ids, stopGraceMs });
  const schedules = createSchedules({ db, wake, clock: systemClock, ids, definitions, log });
  const subRuns = createSubRuns({ db, engine, runs, ids, log });
  engine.onEnded((run, status) => void subRuns.ended(run, status));
  return {
    definitions,
    runs,
    schedules,
    worker: createWorker({ ...deps, progress, engine, runs: known, registry, subRuns, name: PROCESS_NAME }),
    timers: createTimers({ ...deps, engine, runs, known, schedules, subRuns }),
    async arrived(table, opTime) {
      const waiting = await findWaiting(db, table, opTime);
      const counted = await Promise.all(
        waiting.map(({ run_id: runId, node_id: nodeId }) =>
          engine.report({ runId, event: { kind: "arrived", nodeId, table } }),
        ),
      );
      return counted.filter(Boolean).length;
    },
  };
}
