/** Puts the parts of the module together for one process: what people and programs use, the worker, the timers. */

import type { Engines } from "../engines/index.ts";
import type { Db, Queryable, Tx } from "../kernel/data/db.ts";
import { createGroupCommit } from "../kernel/data/group-commit.ts";
import { systemIds } from "../kernel/ids.ts";
import { systemClock } from "../kernel/time/clock.ts";
import type { Outbox } from "../kernel/work/outbox.ts";
import type { OnRun, Service, ServiceLog } from "../kernel/work/service.ts";
import { PROCESS_NAME, type Session } from "../kernel/work/session.ts";
import type { Wake } from "../kernel/work/wake.ts";
import { type Announced, type Announcement, announce } from "./announce.ts";
import type { ArrivalsMetrics } from "./catalogue.ts";
import { createEvents, type TellEnded } from "./events.ts";
import { createIndicators, type Indicators } from "./kpis/indicators.ts";
import { createModels, type Models } from "./models/models.ts";
import { createRequests, type Requests } from "./models/requests.ts";
import type { ChainPort } from "./runs/chain-port.ts";
import { keyOf } from "./runs/judge.ts";
import { createTimers } from "./runs/timers.ts";
import { createWaitingRoom, type WaitingRoom } from "./runs/waiting-room.ts";
import { createWorker } from "./runs/worker.ts";
import type { ArrivalsSettings } from "./settings.ts";
import { findArrivals, type ListArrivals, listArrivals } from "./store/arrivals.ts";
import { setChainRun } from "./store/tasks.ts";
import { READY_TOPIC, TIMER_TOPIC } from "./topics.ts";

export interface Arrivals {
  models: Models;
  indicators: Indicators;
  requests: Requests;
  waitingRoom: WaitingRoom;
  /** Start it in a process with the role `worker`. */
  worker: ReturnType<typeof createWorker>;
  /** Start it in a process with the role `scheduler`. */
  timers: Service;
  /** A table has arrived. Resolves after COMMIT. */
  announce(announcement: Announcement): Promise<Announced>;
  /** The same for many, in the transaction of whoever knows of them. */
  announceIn(tx: Tx, announcements: readonly Announcement[]): Promise<Announced[]>;
  /** Tables that have arrived, the newest first. */
  list(query: ListArrivals): ReturnType<typeof listArrivals>;
  /** The name under which a table is kept. */
  tableName(given: string): string;
  /** Which of the tables have arrived for the opTime. */
  hasArrived(db: Queryable, tables: readonly string[], opTime: string): Promise<Set<string>>;
  /** Tells another module, in the transaction, what a model's run read and brought. Ask for it before anything is started. */
  onEnded(listener: TellEnded): void;
  /** Waits for the announcements that are being committed. */
  drain(): Promise<void>;
}

export interface ArrivalsDeps {
  db: Db;
  wake: Wake;
  session: Session;
  metrics: ArrivalsMetrics;
  log: ServiceLog;
  onRun: OnRun;
  settings: ArrivalsSettings;
  engines: Engines;
  outbox: Pick<Outbox, "emit">;
  chains: ChainPort;
  /** Tells those who wait for tables by themselves. */
  onArrived: (arrivals: readonly { table: string; opTime: string }[]) => void;
}

const ANNOUNCEMENTS_AT_ONCE = 200;

export function createArrivals(deps: ArrivalsDeps): Arrivals {
  const { db, wake, engines, settings, metrics, onArrived } = deps;
  const tableName = tableNaming(settings);
  const events = createEvents({ ...deps, ids: systemIds, clock: systemClock });

  function announced(announcements: readonly Announcement[], results: readonly Announced[]): void {
    const verdicts = new Set(results.flatMap(({ considered }) => considered.map(({ verdict }) => verdict.kind)));
    if (verdicts.has("ready")) wake.hint(READY_TOPIC);
    if (verdicts.has("quiet")) wake.hint(TIMER_TOPIC);
    onArrived(announcements.filter((_, index) => results[index]?.isNews));
    const used = results.filter(({ isUsed }) => isUsed).length;
    metrics.count("millrace_arrivals_total", { outcome: "used" }, used);
    metrics.count("millrace_arrivals_total", { outcome: "ignored" }, results.length - used);
  }

  async function announceAll(tx: Tx, announcements: readonly Announcement[]): Promise<Announced[]> {
    const results = await announce(tx, announcements);
    tx.afterCommit(() => announced(announcements, results));
    return results;
  }

  const named = (one: Announcement): Announcement => ({ ...one, table: tableName(one.table) });

  const announcements = createGroupCommit<Announcement, Announced>({
    identity: keyOf,
    itemsMax: ANNOUNCEMENTS_AT_ONCE,
    write: (batch) => db.tx((tx) => announceAll(tx, batch)),
  });

  return {
    models: createModels({
      db,
      wake,
      clock: systemClock,
      engineNames: engines.names,
      tableName,
      timeoutSeconds: settings.timeoutSeconds,
    }),
    indicators: createIndicators({ db }),
    requests: createRequests({ db, wake }),
    waitingRoom: createWaitingRoom({ db, wake }),
    worker: createWorker({
      ...deps,
      events,
      arrived: onArrived,
      rowsMax: settings.rowsMax,
      onChainRun: (run, chainRunId) => setChainRun(db, run.taskId, chainRunId),
      name: PROCESS_NAME,
    }),
    timers: createTimers({ ...deps, events }),
    announce: (announcement) => announcements.add(named(announcement)),
    announceIn: (tx, given) => announceAll(tx, given.map(named)),
    list: ({ table, ...query }) => listArrivals(db, { ...query, table: table === null ? null : tableName(table) }),
    tableName,
    async hasArrived(reader, tables, opTime) {
      const given = new Map(tables.map((table) => [tableName(table), table]));
      const keys = [...given.keys()].map((table_name) => ({ table_name, op_time: opTime }));
      const found = await findArrivals(reader, keys);
      return new Set(found.flatMap(({ table_name }) => given.get(table_name) ?? []));
    },
    onEnded: events.onEnded,
    drain: () => announcements.drain(),
  };
}

/** How the names of tables are kept and compared. A letter whose capital is two letters stays as it is, so no name grows. */
function tableNaming({ tableCase }: Pick<ArrivalsSettings, "tableCase">): (given: string) => string {
  return tableCase === "ignore" ? (given) => given.replaceAll(/./gsu, capitalOf) : (given) => given;
}

function capitalOf(letter: string): string {
  const capital = letter.toUpperCase();
  return capital.length === letter.length ? capital : letter;
}
