/** Makes the modules of one process and connects them: what one tells another goes through here, by the other's door. */
import { dirname, join, resolve } from "node:path";
import type { Config, OpenProcess } from "./app.ts";
import { type Arrivals, arriveType, createArrivals, fileArrivals, modelType, tableNaming } from "./arrivals/index.ts";
import {
  type ArrivedTable,
  type Chains,
  createChains,
  httpType,
  loadUserTypes,
  type NodeType,
  shell,
  sqlType,
} from "./chains/index.ts";
import { createEngines, type Engines } from "./engines/index.ts";
import { systemClock } from "./kernel/clock.ts";
import type { Db } from "./kernel/db.ts";
import { systemIds } from "./kernel/ids.ts";
import { createOutbound, type Outbound } from "./kernel/outbound.ts";
import { createOutbox, type Outbox } from "./kernel/outbox.ts";
import { loadSecretKey } from "./kernel/secret-key.ts";
import { createSecretBox } from "./kernel/secrets.ts";
import type { OnRun, ServiceLog } from "./kernel/service.ts";
import type { Session } from "./kernel/session.ts";
import type { Wake } from "./kernel/wake.ts";
import { createTracking, type Tracking } from "./tracking/index.ts";
import { createWebhooks, type Webhooks } from "./webhooks/index.ts";

export interface Modules {
  tracking: Tracking;
  chains: Chains;
  arrivals: Arrivals;
  webhooks: Webhooks;
  outbox: Outbox;
  engines: Engines;
}

export type ModulesDeps = OpenProcess & { wake: Wake; session: Session; onRun: OnRun };

export async function openModules(deps: ModulesDeps): Promise<Modules> {
  const { config, cleanup, database, log } = deps;
  const { db } = database;
  const { sections } = config;
  const engines = createEngines(sections.engines, { lakeDir: lakeDir(deps) });
  cleanup.add("engines", engines.close);
  const outbound = createOutbound({ allowPrivate: config.webhooksAllowPrivate });
  cleanup.add("outgoing requests", outbound.close);
  const secretKey = await loadSecretKey({ configured: config.secretKey, dataDir: database.dataDir });

  const shared = { ...deps, db, clock: systemClock, ids: systemIds };
  const webhooks = createWebhooks({
    ...shared,
    outbound,
    secrets: createSecretBox(secretKey),
    settings: sections.webhooks,
    env: process.env,
  });
  const outbox = createOutbox([webhooks.consumer]);

  const tableName = tableNaming(sections.arrivals);
  // Chains and arrivals know of each other; whichever is made first is told of the other by a function.
  let arrivals: Arrivals | undefined;
  const theArrivals = (): Arrivals => {
    if (!arrivals) throw new Error("arrivals are used before they are made");
    return arrivals;
  };
  const chains = createChains({
    ...shared,
    settings: sections.chains,
    types: await nodeTypes(deps, { engines, outbound, arrivals: theArrivals }),
    switchedOff: config.allowShell ? {} : { shell: "it is switched off; MILLRACE_ALLOW_SHELL=true permits it" },
    hasArrived: (reader, tables, opTime) => theArrivals().hasArrived(reader, tables, opTime),
    tableName,
    tellFailed: (tx, failed) =>
      outbox.emit(
        tx,
        failed.map((run) => ({
          eventId: systemIds.uuid(),
          topic: "run.failed",
          payload: { ...run, at: new Date(systemClock.now()).toISOString() },
        })),
      ),
  });
  arrivals = createArrivals({
    ...shared,
    settings: sections.arrivals,
    engines,
    outbox,
    chains: chains.called,
    onArrived: (tables) => tellChains(chains, tables, log),
  });
  const tracking = trackingWithArrivals(db, deps, arrivals);
  return { tracking, chains, arrivals, webhooks, outbox, engines };
}

/** Nobody waits for this: if it fails, the timers of chains notice what has arrived. */
function tellChains(chains: Chains, tables: readonly ArrivedTable[], log: ServiceLog): void {
  if (tables.length === 0) return;
  chains.arrived(tables).catch((err: unknown) => log.warn({ err }, "chains were not told of arrivals"));
}

function trackingWithArrivals(db: Db, { wake, metrics, config }: ModulesDeps, arrivals: Arrivals): Tracking {
  const { sections } = config;
  const arrivalOf = fileArrivals(sections.arrivals);
  const tableName = tableNaming(sections.arrivals);
  return createTracking({
    db,
    wake,
    metrics,
    settings: sections.tracking,
    completion: {
      concerns: (filename) => arrivalOf(filename) !== undefined,
      async complete(tx, filenames) {
        const found = filenames.flatMap((filename) => arrivalOf(filename) ?? []);
        const named = found.map(({ table, opTime }) => ({ table: tableName(table), opTime, idempotencyKey: null }));
        const announcements = [...new Map(named.map((one) => [`${one.table} ${one.opTime}`, one])).values()];
        const results = await arrivals.announceIn(tx, announcements);
        return () => arrivals.announced(announcements, results);
      },
    },
  });
}

async function nodeTypes(
  { config, cwd }: ModulesDeps,
  { engines, outbound, arrivals }: { engines: Engines; outbound: Outbound; arrivals: () => Arrivals },
): Promise<NodeType[]> {
  return [
    httpType(outbound),
    sqlType(engines),
    arriveType(arrivals),
    modelType(arrivals),
    ...(config.allowShell ? [shell] : []),
    ...(await loadUserTypes(config.sections.chains.nodeTypes, besideConfig(config, cwd))),
  ];
}

function besideConfig({ configFile }: Config, cwd: string): string {
  return configFile === undefined ? cwd : dirname(resolve(cwd, configFile));
}

function lakeDir({ database, config, cwd }: OpenProcess): string | undefined {
  const dataDir = database.dataDir ?? (config.dataDir && resolve(cwd, config.dataDir));
  return dataDir && join(dataDir, "lake");
}
