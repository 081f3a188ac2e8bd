/** Wires the parts of the module for one process: its use cases, the worker and the timers. */

import type { Engines } from "../engines/index.ts";
import type { Actor } from "../kernel/auth/audit.ts";
import type { Db, Queryable, Tx } from "../kernel/data/db.ts";
import type { DryRun } from "../kernel/data/dry-run.ts";
import { createGroupCommit } from "../kernel/data/group-commit.ts";
import { systemIds } from "../kernel/ids.ts";
import type { InUse } from "../kernel/in-use.ts";
import { systemClock } from "../kernel/time/clock.ts";
import type { Outbox } from "../kernel/work/outbox.ts";
import type { OnRun, Service, ServiceLog } from "../kernel/work/service.ts";
import { PROCESS_NAME, type Session } from "../kernel/work/session.ts";
import type { Wake } from "../kernel/work/wake.ts";
import { type Announced, type Announcement, announce } from "./announce.ts";
import type { ArrivalsHints, ArrivalsMetrics } from "./catalogue.ts";
import { createEvents, type OnRunEnded } from "./events.ts";
import { arrivalId, instanceId } from "./hint-ids.ts";
import { createIndicators, type Indicators } from "./kpis/indicators.ts";
import { createModels, type Models } from "./models/models.ts";
import { createRequests, type Requests } from "./models/requests.ts";
import { type RetractedArrival, retract } from "./retract.ts";
import type { ChainPort, Names } from "./runs/chain-port.ts";
import { keyOf } from "./runs/decide.ts";
import { createNodeWaits, type NodeWaits } from "./runs/node-waits.ts";
import { createParking } from "./runs/parking.ts";
import { createRunWaiters, type RunWaiters } from "./runs/run-waiters.ts";
import { createTimers } from "./runs/timers.ts";
import { createWorker } from "./runs/worker.ts";
import type { ArrivalsSettings } from "./settings.ts";
import { findArrivals, type ListArrivals, listArrivals } from "./store/arrivals.ts";
import { allKpiIds, kpiTypes } from "./store/kpis.ts";
import { allModelIds, existingModels, modelOfChain } from "./store/models.ts";
import { READY_TOPIC, TIMER_TOPIC } from "./topics.ts";

export interface Arrivals {
  models: Models;
  indicators: Indicators;
  requests: Requests;
  runWaiters: RunWaiters;
  nodeWaits: NodeWaits;
  /** The models that nodes can name. */
  modelNames: Names;
  /** The indicators that subscriptions can name. */
  kpiNames: Names;
  /** Start it in a process with the role `worker`. */
  worker: ReturnType<typeof createWorker>;
  /** Start it in a process with the role `scheduler`. */
  timers: Service;
  /** A table has arrived. Resolves after COMMIT. */
  announce(announcement: Announcement): Promise<Announced>;
  /** The same for many, in the transaction of the caller. */
  announceIn(tx: Tx, announcements: readonly Announcement[]): Promise<Announced[]>;
  /** Tables that have arrived, the newest first. */
  list(query: ListArrivals): ReturnType<typeof listArrivals>;
  /** Takes an arrival back. */
  retract(arrival: { table: string; opTime: string }, actor: Actor, options: DryRun): Promise<RetractedArrival>;
  /** The name under which a table is stored. */
  tableName(given: string): string;
  /** Which of the tables have arrived for the opTime. */
  hasArrived(db: Queryable, tables: readonly string[], opTime: string): Promise<Set<string>>;
  /** Calls the listener in the transaction that ends a run, with what the run read and wrote. Register it before the start. */
  onRunEnded(listener: OnRunEnded): void;
  /** Waits for announcements whose commit is in flight. */
  drain(): Promise<void>;
}

export interface ArrivalsDeps {
  db: Db;
  wake: Wake;
  hints: ArrivalsHints;
  session: Session;
  metrics: ArrivalsMetrics;
  log: ServiceLog;
  onRun: OnRun;
  settings: ArrivalsSettings;
  engines: Engines;
  outbox: Pick<Outbox, "emit">;
  chains: ChainPort;
  inUse?: InUse;
  /** Called after the commit, for chains whose nodes wait for tables. */
  onArrived: (arrivals: readonly { table: string; opTime: string }[]) => void;
}

const ANNOUNCEMENTS_AT_ONCE = 200;

export function createArrivals(deps: ArrivalsDeps): Arrivals {
  const { db, wake, hints, engines, settings, metrics, onArrived } = deps;
  const tableName = tableNaming(settings);
  deps.inUse?.add(async (tx, what, name) => {
    const model = what === "chain" ? await modelOfChain(tx, name) : undefined;
    return model === undefined ? undefined : `model \`${model}\` runs it`;
  });
  const events = createEvents({ ...deps, ids: systemIds, clock: systemClock });
  const requests = createRequests({
    db,
    wake,
    hints,
    chains: deps.chains,
    onStopped: (instance) => nodeWaits.settleSoon({ instance }),
  });
  const parking = createParking(deps);
  const nodeWaits: NodeWaits = createNodeWaits({ ...deps, ids: systemIds, requests });

  function afterAnnounced(announcements: readonly Announcement[], results: readonly Announced[]): void {
    const verdicts = new Set(results.flatMap(({ considered }) => considered.map(({ verdict }) => verdict.kind)));
    if (verdicts.has("ready")) wake.hint(READY_TOPIC);
    if (verdicts.has("quiet")) wake.hint(TIMER_TOPIC);
    onArrived(announcements.filter((_, index) => results[index]?.isNew));
    const used = results.filter(({ isUsed }) => isUsed).length;
    metrics.count("millrace_arrivals_total", { outcome: "used" }, used);
    metrics.count("millrace_arrivals_total", { outcome: "ignored" }, results.length - used);
  }

  async function announceAll(tx: Tx, announcements: readonly Announcement[]): Promise<Announced[]> {
    const results = await announce(tx, announcements);
    tx.afterCommit(() => afterAnnounced(announcements, results));
    const isNew = (_: unknown, index: number) => results[index]?.isNew;
    hints.changed(tx, "arrival", announcements.filter(isNew).map(arrivalId));
    hints.changed(
      tx,
      "model",
      results.flatMap(({ considered }) => considered.map(instanceId)),
    );
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
      hints,
      clock: systemClock,
      engines,
      chains: deps.chains.chains,
      tableName,
      timeoutSeconds: settings.timeoutSeconds,
      userOf: deps.inUse?.by,
      onRemoved: (modelId) => nodeWaits.settleSoon({ modelId }),
    }),
    indicators: createIndicators({ db, hints, userOf: deps.inUse?.by }),
    requests,
    nodeWaits,
    modelNames: { existing: (names) => existingModels(db, names), all: () => allModelIds(db) },
    kpiNames: {
      existing: async (names) => (await kpiTypes(db, names)).map(({ kpi_id }) => kpi_id),
      all: () => allKpiIds(db),
    },
    runWaiters: createRunWaiters({ db, wake }),
    worker: createWorker({
      ...deps,
      events,
      parking,
      nodeWaits,
      rowsMax: settings.rowsMax,
      bytesMax: settings.resultBytesMax,
      name: PROCESS_NAME,
    }),
    timers: createTimers({ ...deps, events, parking, nodeWaits }),
    announce: (announcement) => announcements.add(named(announcement)),
    announceIn: (tx, given) => announceAll(tx, given.map(named)),
    list: ({ table, ...query }) => listArrivals(db, { ...query, table: table === null ? null : tableName(table) }),
    retract: ({ table, opTime }, actor, options) =>
      retract({ db, hints }, { table: tableName(table), opTime }, actor, options),
    tableName,
    async hasArrived(reader, tables, opTime) {
      const given = new Map(tables.map((table) => [tableName(table), table]));
      const keys = [...given.keys()].map((table_name) => ({ table_name, op_time: opTime }));
      const found = await findArrivals(reader, keys);
      return new Set(found.flatMap(({ table_name }) => given.get(table_name) ?? []));
    },
    onRunEnded: events.onRunEnded,
    drain: () => announcements.drain(),
  };
}

/** How table names are stored and compared. A letter whose upper case is two letters stays as it is, so no name gets longer. */
function tableNaming({ tableCase }: Pick<ArrivalsSettings, "tableCase">): (given: string) => string {
  return tableCase === "ignore" ? (given) => given.replaceAll(/./gsu, upperCaseOf) : (given) => given;
}

function upperCaseOf(letter: string): string {
  const upper = letter.toUpperCase();
  return upper.length === letter.length ? upper : letter;
}
