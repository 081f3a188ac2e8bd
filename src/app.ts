/** Wires the modules to one database and one HTTP server, starts them in order, and stops them in the reverse order. */
import type { AddressInfo } from "node:net";
import { ArrivalsSettings, arrivalsChecks, kpiRoutes, modelRoutes, openRoutes } from "./arrivals/index.ts";
import {
  ChainsSettings,
  chainRoutes,
  chainsChecks,
  createRunStreams,
  poolRoutes,
  runRoutes,
  scheduleRoutes,
} from "./chains/index.ts";
import { EnginesSettings, engineChecks } from "./engines/index.ts";
import { createKeys } from "./kernel/auth/keys.ts";
import type { ServerConfig } from "./kernel/config/index.ts";
import { type Connection, type Db, openDb } from "./kernel/data/db.ts";
import { migrate } from "./kernel/data/migrate.ts";
import { kernelChecks } from "./kernel/doctor.ts";
import { resolveDataDir, startEmbeddedPostgres } from "./kernel/embedded-postgres/index.ts";
import { OperatorError } from "./kernel/errors.ts";
import { adminSurfaces } from "./kernel/http/admin.ts";
import { createHttp, type Http } from "./kernel/http/server.ts";
import { publicSurfaces } from "./kernel/http/surfaces.ts";
import { systemIds } from "./kernel/ids.ts";
import { secretsCheck } from "./kernel/secrets/named.ts";
import { secretRoutes } from "./kernel/secrets/routes.ts";
import { createLog, type Log } from "./kernel/telemetry/log.ts";
import { createMetrics, type Metrics } from "./kernel/telemetry/metrics.ts";
import { recordStatement, startTracing } from "./kernel/telemetry/tracing.ts";
import { systemClock } from "./kernel/time/clock.ts";
import { openPulse } from "./kernel/work/pulse.ts";
import type { OnRun, Service } from "./kernel/work/service.ts";
import { openSession } from "./kernel/work/session.ts";
import { createWake } from "./kernel/work/wake.ts";
import { LineageSettings, lineageChecks, lineageRoutes, openGateway } from "./lineage/index.ts";
import { besideConfig, openModules } from "./modules.ts";
import { createLongPoll, createReclaimer, TrackingSettings, trackingChecks, trackingRoutes } from "./tracking/index.ts";
import { VERSION } from "./version.ts";
import { WebhooksSettings, webhookChecks, webhookRoutes } from "./webhooks/index.ts";

/** What each module accepts in `millrace.yaml`. */
export const SECTIONS = {
  tracking: TrackingSettings,
  chains: ChainsSettings,
  arrivals: ArrivalsSettings,
  webhooks: WebhooksSettings,
  lineage: LineageSettings,
  engines: EnginesSettings,
};
export type Config = ServerConfig<typeof SECTIONS>;

export interface Millrace {
  /** Where it listens. */
  url: string;
  /** Made by the first start, and told only now. */
  firstAdminKey: string | undefined;
  http: Http;
  /** Finishes what is in flight and stops everything that was started. */
  stop(): Promise<void>;
}

export interface StartOptions {
  config: Config;
  cwd: string;
  /** A line for the person at the terminal. */
  tell: (line: string) => void;
}

export async function start({ config, cwd, tell }: StartOptions): Promise<Millrace> {
  const log = createLog({ level: config.logLevel });
  const metrics = createMetrics();
  const cleanup = createCleanup(log);
  try {
    if (config.otlpEndpoint) {
      cleanup.add("tracing", await startTracing({ endpoint: config.otlpEndpoint, serviceName: config.serviceName }));
    }
    const database = await openDatabase({ config, cwd, tell, log, metrics });
    cleanup.add("database", database.close);
    await migrate(database.db);
    return await serve({ config, cwd, log, metrics, cleanup, database });
  } catch (error) {
    await cleanup.run();
    throw error;
  }
}

export interface Database {
  db: Db;
  /** For people: which Postgres this is. */
  description: string;
  /** Where the embedded one keeps its files. */
  dataDir: string | undefined;
  close(): Promise<void>;
}

export async function openDatabase(deps: StartOptions & { log: Log; metrics?: Metrics }): Promise<Database> {
  const { config, log, metrics } = deps;
  const open = (connection: Connection) =>
    openDb({
      connection,
      poolSize: config.dbPoolSize,
      onStatement(statement, seconds) {
        metrics?.observe("millrace_db_statement_seconds", { statement }, seconds);
        recordStatement(statement, seconds);
      },
      onIdleError: (error) => log.warn({ err: error }, "an idle database connection broke"),
      onAfterCommitError: (error) => log.error({ err: error }, "what follows a commit failed; the commit stands"),
    });
  if (config.databaseUrl) {
    const db = open({ connectionString: config.databaseUrl });
    return { db, description: "PostgreSQL at DATABASE_URL", dataDir: undefined, close: db.close };
  }
  const { dataDir, notice } = await resolveDataDir(config.dataDir, deps.cwd);
  if (notice) deps.tell(notice);
  const postgres = await startEmbeddedPostgres({ dataDir, onProgress: deps.tell, log });
  const db = open(postgres.connection);
  return {
    db,
    description: `embedded PostgreSQL in ${dataDir}`,
    dataDir,
    async close() {
      await db.close();
      await postgres.stop();
    },
  };
}

/** What a process has once its database is open. */
export interface OpenProcess {
  config: Config;
  cwd: string;
  log: Log;
  metrics: Metrics;
  cleanup: Cleanup;
  database: Database;
}

async function serve(deps: OpenProcess): Promise<Millrace> {
  const { config, log, metrics, cleanup } = deps;
  const { db, description, dataDir } = deps.database;
  let stopping = false;
  const isStopping = () => stopping;

  metrics.gauge("millrace_db_connections", () => {
    const { connections, idle, waiting } = db.stats();
    return [
      { labels: { state: "busy" }, value: connections - idle },
      { labels: { state: "idle" }, value: idle },
      { labels: { state: "waited_for" }, value: waiting },
    ];
  });

  const pulse = await openPulse({ db, log });
  cleanup.add("pulse", pulse.stop);
  const wake = createWake({ pulse, log });
  cleanup.add("wake-ups", wake.stop);
  const onRun: OnRun = (service, outcome, counts) => {
    metrics.count("millrace_service_runs_total", { service, outcome });
    for (const [kind, n] of Object.entries(counts)) metrics.count("millrace_service_items_total", { service, kind }, n);
  };
  const session = await openSession({ pulse, log, onRun, version: VERSION, roles: config.roles });
  session.service.start(); // Closing the session ends it, after the last node in flight was given back.
  cleanup.add("session", session.close);
  const keys = createKeys({ db, wake, clock: systemClock, adminKey: config.adminKey });

  const { tracking, chains, arrivals, webhooks, lineage, outbox, engines, secrets } = await openModules({
    ...deps,
    wake,
    session,
    onRun,
  });
  const ofSecrets = await secretsCheck(secrets).look(db);
  if (ofSecrets.verdict !== "ok") log.warn(`${ofSecrets.found} ${ofSecrets.advice}`);
  const longPoll = createLongPoll({ tracking, wake });
  cleanup.add("moves in flight", tracking.drain);
  cleanup.add("claims in flight", longPoll.stop);
  cleanup.add("announcements in flight", arrivals.drain);
  await lineage.prepare();
  cleanup.add("events in flight", lineage.ingest.drain);
  const runStreams = createRunStreams({ db, wake });
  const services: Service[] = [];
  if (config.roles.includes("worker")) {
    chains.worker.start();
    cleanup.add("nodes in flight", chains.worker.stop);
    arrivals.worker.start();
    cleanup.add("models in flight", arrivals.worker.stop);
    services.push(...outbox.relays({ db, session, wake, log, onRun }), ...webhooks.services, ...lineage.services);
  }
  if (config.roles.includes("scheduler")) {
    services.push(createReclaimer(tracking, { log, onRun }), chains.timers, chains.retention, arrivals.timers);
  }
  for (const service of services) {
    service.start();
    cleanup.add(service.name, service.stop);
  }

  const { gateway: asserted } = config.sections.lineage;
  const gateway =
    asserted &&
    (await openGateway({
      settings: asserted,
      env: process.env,
      directory: besideConfig(config, deps.cwd),
      clock: systemClock,
    }));
  const http = await createHttp({
    log,
    metrics,
    keys,
    isStopping,
    version: VERSION,
    anonymousScopes: config.anonymousScopes,
    bodyLimitBytes: config.bodyLimitBytes,
    rateLimitPerMinute: config.rateLimitPerMinute,
    ...(gateway ? { assertions: gateway } : {}),
  });
  const page = { version: VERSION, roles: config.roles, database: description, startedAt: new Date() };
  publicSurfaces(http, { db, metrics, page });
  if (config.roles.includes("api")) {
    const checks = [
      ...kernelChecks({ version: VERSION, dataDir }),
      secretsCheck(secrets),
      ...trackingChecks,
      ...chainsChecks,
      ...arrivalsChecks,
      ...webhookChecks,
      ...lineageChecks,
      ...engineChecks(engines),
    ];
    await http.register(
      async (scope) => {
        const api = scope as Http;
        adminSurfaces(api, { db, keys, checks });
        secretRoutes(api, { db, secrets });
        chainRoutes(api, { db, chains });
        scheduleRoutes(api, { chains });
        poolRoutes(api, { db, wake });
        runRoutes(api, { db, chains, streams: runStreams });
        webhookRoutes(api, { webhooks });
      },
      { prefix: "/api/v1" },
    );
    const settings = config.sections.arrivals;
    await http.register(async (scope) => openRoutes(scope as Http, { arrivals, settings }), {
      prefix: "/api/open/kpi",
    });
    await http.register(
      async (scope) => {
        const api = scope as Http;
        modelRoutes(api, { db, arrivals, settings });
        kpiRoutes(api, { db, arrivals });
      },
      { prefix: "/api/v1/kpi" },
    );
    await lineageRoutes(http, {
      db,
      clock: systemClock,
      ids: systemIds,
      metrics,
      lineage,
      settings: config.sections.lineage,
    });
    await http.register(async (scope) => trackingRoutes(scope as Http, { db, tracking, longPoll }), {
      prefix: "/api/v1/pipeline",
    });
  }
  cleanup.add("requests in flight", () => http.close());
  const url = await listen(http, config);
  // Not before the port is ours: the key is told only by a start that succeeds.
  const firstAdminKey = await keys.bootstrap();
  log.info({ url, roles: config.roles, database: description, version: VERSION }, "millrace is ready");

  return {
    url,
    firstAdminKey,
    http,
    async stop() {
      if (stopping) return;
      stopping = true;
      // First of all: a request that waits for work, or watches a run, would keep the server open.
      void longPoll.stop();
      runStreams.stop();
      arrivals.waitingRoom.stop();
      await cleanup.run();
      log.info({}, "millrace has stopped");
    },
  };
}

async function listen(http: Http, { host, port }: Config): Promise<string> {
  try {
    await http.listen({ host, port });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "EADDRINUSE") {
      throw new OperatorError(
        `Port ${port} on ${host} is taken. Stop what listens there, or choose another with --port.`,
      );
    }
    if (code === "EACCES" || code === "EADDRNOTAVAIL") {
      throw new OperatorError(
        `Cannot listen on ${host}, port ${port} (${code}). Choose others with --host and --port.`,
      );
    }
    throw error;
  }
  const address = http.server.address() as AddressInfo;
  const name = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return `http://${name}:${address.port}`;
}

export interface Cleanup {
  add(what: string, undo: () => unknown): void;
  /** Undoes in the reverse order. What fails is logged and does not keep the rest from being undone. */
  run(): Promise<void>;
}

function createCleanup(log: Log): Cleanup {
  const steps: { what: string; undo: () => unknown }[] = [];
  return {
    add: (what, undo) => void steps.push({ what, undo }),
    async run() {
      for (let step = steps.pop(); step; step = steps.pop()) {
        try {
          await step.undo();
        } catch (error) {
          log.error({ err: error, what: step.what }, "could not be stopped cleanly");
        }
      }
    },
  };
}
