/** Makes the modules of one process and connects them: what one tells another goes through here, by the other's door. */
import { dirname, join, resolve } from "node:path";
import type { Config, OpenProcess } from "./app.ts";
import { type Arrivals, arriveType, createArrivals, fileArrivals, modelType, tableNaming } from "./arrivals/index.ts";
import {
  type ArrivedTable,
  type Chains,
  createChains,
  type EndedRun,
  httpType,
  loadUserTypes,
  type NodeType,
  shell,
  sqlType,
} from "./chains/index.ts";
import { createEngines, type Engines } from "./engines/index.ts";
import type { Db } from "./kernel/data/db.ts";
import { systemIds } from "./kernel/ids.ts";
import { createOutbound, type Outbound } from "./kernel/net/outbound.ts";
import { createSecretBox } from "./kernel/secrets/box.ts";
import { loadSecretKey } from "./kernel/secrets/key.ts";
import { createNamedSecrets, type NamedSecrets } from "./kernel/secrets/named.ts";
import { systemClock } from "./kernel/time/clock.ts";
import { createOutbox, type Outbox, type OutboxEvent } from "./kernel/work/outbox.ts";
import type { OnRun, ServiceLog } from "./kernel/work/service.ts";
import type { Session } from "./kernel/work/session.ts";
import type { Wake } from "./kernel/work/wake.ts";
import { createLineage, type Lineage, type OwnLineage, openOwnLineage } from "./lineage/index.ts";
import { createTracking, type Tracking } from "./tracking/index.ts";
import { createWebhooks, type Webhooks } from "./webhooks/index.ts";

export interface Modules {
  tracking: Tracking;
  chains: Chains;
  arrivals: Arrivals;
  webhooks: Webhooks;
  lineage: Lineage;
  outbox: Outbox;
  engines: Engines;
  secrets: NamedSecrets;
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
  const box = createSecretBox(await loadSecretKey({ configured: config.secretKey, dataDir: database.dataDir }));
  const secrets = createNamedSecrets({ db, box });

  const shared = { ...deps, db, clock: systemClock, ids: systemIds };
  const webhooks = createWebhooks({
    ...shared,
    outbound,
    secrets: box,
    settings: sections.webhooks,
    env: process.env,
  });
  const lineage = await createLineage({
    ...shared,
    outbound,
    settings: sections.lineage,
    env: process.env,
    outbox: () => outbox,
  });
  cleanup.add("the graph's mirror", lineage.close);
  const own = sections.lineage.own && (await openOwnLineage(sections.lineage.own, { ...shared, lineage, engines }));
  const consumers = [webhooks.consumer, lineage.projection?.consumer, own?.consumer];
  const outbox = createOutbox(
    consumers.filter((consumer) => consumer !== undefined),
    deps.wake,
  );

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
    secrets,
    types: await nodeTypes(deps, { engines, outbound, arrivals: theArrivals }),
    switchedOff: config.allowShell ? {} : { shell: "it is switched off; MILLRACE_ALLOW_SHELL=true permits it" },
    hasArrived: (reader, tables, opTime) => theArrivals().hasArrived(reader, tables, opTime),
    tableName,
    tellEnded: {
      of: new Set(own ? (["SUCCESS", "FAILED", "STOPPED"] as const) : (["FAILED"] as const)),
      async tell(tx, ended) {
        const flows = own ? own.ofRuns(await chains.flowsOf(tx, ended)) : [];
        await outbox.emit(tx, [...ended.flatMap(runFailed), ...flows]);
      },
    },
  });
  arrivals = createArrivals({
    ...shared,
    settings: sections.arrivals,
    engines,
    outbox,
    chains: chains.called,
    ...(own ? { tellEnded: (tx, flow) => outbox.emit(tx, own.ofModel(flow)) } : {}),
    onArrived: (tables) => tellChains(chains, tables, log),
  });
  const tracking = trackingWithArrivals(db, deps, { arrivals, outbox, own });
  return { tracking, chains, arrivals, webhooks, lineage, outbox, engines, secrets };
}

/** Of a run that another one waits for, that one tells. */
function runFailed({ runId, chainId, name, opTime, status, reason, parentRunId }: EndedRun): OutboxEvent[] {
  if (status !== "FAILED" || parentRunId !== null) return [];
  const at = new Date(systemClock.now()).toISOString();
  return [{ eventId: systemIds.uuid(), topic: "run.failed", payload: { runId, chainId, name, opTime, reason, at } }];
}

/** Nobody waits for this: if it fails, the timers of chains notice what has arrived. */
function tellChains(chains: Chains, tables: readonly ArrivedTable[], log: ServiceLog): void {
  if (tables.length === 0) return;
  chains.arrived(tables).catch((err: unknown) => log.warn({ err }, "chains were not told of arrivals"));
}

interface Told {
  arrivals: Arrivals;
  outbox: Outbox;
  own: OwnLineage | undefined;
}

function trackingWithArrivals(
  db: Db,
  { wake, metrics, config }: ModulesDeps,
  { arrivals, outbox, own }: Told,
): Tracking {
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
        const files = found.map((file) => ({ ...file, table: tableName(file.table) }));
        const named = files.map(({ table, opTime }) => ({ table, opTime, idempotencyKey: null }));
        const announcements = [...new Map(named.map((one) => [`${one.table} ${one.opTime}`, one])).values()];
        await arrivals.announceIn(tx, announcements);
        if (own) await outbox.emit(tx, own.ofFiles(tx, files));
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

/** Relative paths in the configuration begin where its file lies. */
export function besideConfig({ configFile }: Config, cwd: string): string {
  return configFile === undefined ? cwd : dirname(resolve(cwd, configFile));
}

function lakeDir({ database, config, cwd }: OpenProcess): string | undefined {
  const dataDir = database.dataDir ?? (config.dataDir && resolve(cwd, config.dataDir));
  return dataDir && join(dataDir, "lake");
}
