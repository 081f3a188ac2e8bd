/** Opens a list of modules on one database and one HTTP server, starts them in order, and stops them in the reverse order. */
import type { AddressInfo } from "node:net";
import { dirname, join, resolve } from "node:path";
import { historyRetention } from "./kernel/auth/audit-retention.ts";
import { createConsoleAccess } from "./kernel/auth/console-access.ts";
import type { NewLink } from "./kernel/auth/console-links.ts";
import { createKeys } from "./kernel/auth/keys.ts";
import { mergeCatalogues } from "./kernel/catalogue.ts";
import type { SettingInForce } from "./kernel/config/in-force.ts";
import { loadConfig, type ServerConfig } from "./kernel/config/index.ts";
import type { Environment, Flags } from "./kernel/config/read-settings.ts";
import type { ServerSettings } from "./kernel/config/settings.ts";
import { type Connection, type Db, openDb } from "./kernel/data/db.ts";
import { migrate } from "./kernel/data/migrate.ts";
import { kernelChecks } from "./kernel/doctor.ts";
import { resolveDataDir, startEmbeddedPostgres } from "./kernel/embedded-postgres/index.ts";
import { OperatorError } from "./kernel/errors.ts";
import { gateRoutes } from "./kernel/gate/gate-routes.ts";
import { createGates } from "./kernel/gate/gates.ts";
import { openHints } from "./kernel/hints/hints.ts";
import { hintRoutes } from "./kernel/hints/routes.ts";
import { createHintStreams } from "./kernel/hints/stream.ts";
import { adminSurfaces } from "./kernel/http/admin.ts";
import { serveConsole } from "./kernel/http/console-files.ts";
import { createHttp, type Http, under } from "./kernel/http/server.ts";
import { sessionRoutes } from "./kernel/http/session-routes.ts";
import { frontPageRoutes, publicSurfaces } from "./kernel/http/surfaces.ts";
import { systemIds } from "./kernel/ids.ts";
import { createInUse } from "./kernel/in-use.ts";
import { type Loaded, loadModules, type Module, type ModuleContext, type Opened } from "./kernel/module.ts";
import { needChecks } from "./kernel/overview/doctor.ts";
import { overviewRoutes } from "./kernel/overview/routes.ts";
import { PACKAGE_ROOT } from "./kernel/package-root.ts";
import { createSecretBox } from "./kernel/secrets/cipher.ts";
import { loadSecretKey } from "./kernel/secrets/encryption-key.ts";
import { createNamedSecrets, secretsCheck } from "./kernel/secrets/named-secrets.ts";
import { secretRoutes } from "./kernel/secrets/secret-routes.ts";
import { createLog, type Log } from "./kernel/telemetry/log.ts";
import { KERNEL_METRICS } from "./kernel/telemetry/metric-table.ts";
import { createMetrics, type Metrics, type MetricsRegistry } from "./kernel/telemetry/metrics.ts";
import { recordStatement, startTracing } from "./kernel/telemetry/tracing.ts";
import { systemClock } from "./kernel/time/clock.ts";
import { createOutbox } from "./kernel/work/outbox.ts";
import { openPulse } from "./kernel/work/pulse.ts";
import type { OnRun } from "./kernel/work/service.ts";
import { openSession } from "./kernel/work/session.ts";
import { createWake } from "./kernel/work/wake.ts";
import { MODULES } from "./modules.ts";
import { VERSION } from "./version.ts";

type LoadedModules = Awaited<ReturnType<typeof loadModules<typeof MODULES>>>;
export type Config = ServerConfig<LoadedModules>;
/** The configuration of any list of modules, by name. */
type AnyConfig = ServerSettings & {
  readonly sections: Readonly<Record<string, unknown>>;
  readonly settings: Readonly<Record<string, object>>;
  readonly inForce: readonly SettingInForce[];
};
type KernelMetrics = Metrics<typeof KERNEL_METRICS>;

export interface Sources {
  env: Environment;
  flags: Flags;
  cwd: string;
}

export async function configure(sources: Sources): Promise<Config> {
  return loadConfig({ ...sources, modules: await loadModules(MODULES) });
}

export interface Millrace {
  /** Where it listens. */
  url: string;
  /** Without `api` it answers for its health and metrics only. */
  roles: readonly string[];
  /** Created by the first start, and shown only this once. */
  firstAdminKey: string | undefined;
  /** A new link for whoever reads the output of this process; undefined without the role `api`, or without an admin key. */
  newConsoleLink(): Promise<NewLink | undefined>;
  http: Http;
  registry: MetricsRegistry;
  /** Finishes what is in flight and stops everything that was started. */
  stop(): Promise<void>;
}

export interface StartOptions {
  config: AnyConfig;
  cwd: string;
  /** A line for the person at the terminal. */
  print: (line: string) => void;
  /** The modules that the configuration was read for. */
  modules?: readonly Module[];
  /** Where the built page of the console is. */
  consoleDir?: string;
}

const CONSOLE_DIR = join(PACKAGE_ROOT, "dist/console");

export async function start({ config, cwd, print, ...options }: StartOptions): Promise<Millrace> {
  const log = createLog({ level: config.logLevel });
  const registry = createMetrics();
  const metrics = registry.define(KERNEL_METRICS);
  const cleanup = createCleanup(log);
  try {
    if (config.otlpEndpoint) {
      cleanup.add("tracing", await startTracing({ endpoint: config.otlpEndpoint, serviceName: config.serviceName }));
    }
    const database = await openDatabase({ config, cwd, print, log, metrics });
    cleanup.add("database", database.close);
    await migrate(database.db);
    const modules = await loadModules(options.modules ?? MODULES);
    const consoleDir = options.consoleDir ?? CONSOLE_DIR;
    return await serve({ config, cwd, log, registry, metrics, cleanup, database, modules, consoleDir });
  } catch (error) {
    await cleanup.run();
    throw error;
  }
}

export interface Database {
  db: Db;
  /** Which Postgres this is, as text for people. */
  description: string;
  /** The data directory of the embedded Postgres. */
  dataDir: string | undefined;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  config: AnyConfig;
  cwd: string;
  print: (line: string) => void;
  log: Log;
  metrics?: KernelMetrics;
}

export async function openDatabase(deps: DatabaseOptions): Promise<Database> {
  const { config, log, metrics } = deps;
  const open = (connection: Connection) =>
    openDb({
      connection,
      poolSize: config.dbPoolSize,
      onStatement(statement, seconds) {
        metrics?.observe("millrace_db_statement_seconds", { statement }, seconds);
        metrics?.observe("millrace_db_module_seconds", { module: statement.slice(0, statement.indexOf(".")) }, seconds);
        recordStatement(statement, seconds);
      },
      onIdleError: (error) => log.warn({ err: error }, "an idle database connection broke"),
      onAfterCommitError: (error) =>
        log.error({ err: error }, "a function after a commit failed; the transaction is committed"),
    });
  if (config.databaseUrl) {
    const db = open({ connectionString: config.databaseUrl });
    return { db, description: "PostgreSQL at DATABASE_URL", dataDir: undefined, close: db.close };
  }
  const { dataDir, notice } = await resolveDataDir(config.dataDir, deps.cwd);
  if (notice) deps.print(notice);
  const postgres = await startEmbeddedPostgres({ dataDir, onProgress: deps.print, log });
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

/** The parts of a process whose database is open. */
interface OpenProcess {
  config: AnyConfig;
  cwd: string;
  log: Log;
  registry: MetricsRegistry;
  metrics: KernelMetrics;
  cleanup: Cleanup;
  database: Database;
  modules: readonly Loaded[];
  consoleDir: string;
}

async function serve(deps: OpenProcess): Promise<Millrace> {
  const { config, log, registry, metrics, cleanup, modules } = deps;
  const { db, description, dataDir } = deps.database;
  const catalogue = mergeCatalogues(modules);
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
  session.service.start(); // Stopped by closing the session, after the last item in flight was released.
  cleanup.add("session", session.close);
  const { hints, received, stop: stopHints } = await openHints({ pulse, session, log });
  cleanup.add("hints of changes", stopHints);
  const keys = createKeys({ db, wake, hints, clock: systemClock, adminKey: config.adminKey });
  const access = createConsoleAccess({ db, wake, clock: systemClock, adminKey: config.adminKey });
  const box = createSecretBox(await loadSecretKey({ configured: config.secretKey, dataDir }));
  const inUse = createInUse();
  const secrets = createNamedSecrets({ db, box, hints, inUse });
  const secretsFinding = await secretsCheck(secrets).look(db);
  if (secretsFinding.verdict !== "ok") log.warn(`${secretsFinding.found} ${secretsFinding.advice}`);
  const outbox = createOutbox([], wake);
  const gates = createGates({ db, session, wake, hints, log, metrics });

  const opened = await openModules(deps, { db, wake, hints, session, outbox, box, secrets, gates, inUse, onRun });
  for (const { name, drain } of opened) if (drain) cleanup.add(`writes in flight of ${name}`, drain);
  const relays = config.roles.includes("worker") ? outbox.relays({ db, session, wake, log, onRun }) : [];
  const services = opened.flatMap(({ services: byRole }) => config.roles.flatMap((role) => byRole?.[role] ?? []));
  const history = config.roles.includes("scheduler") ? historyRetention({ ...config, db, log, onRun }) : [];
  for (const service of [...services, ...relays, ...history]) {
    service.start();
    cleanup.add(service.name, service.stop);
  }

  const http = await createHttp({
    log,
    metrics,
    keys,
    sessions: access.sessions,
    isStopping,
    rev: received.rev,
    version: VERSION,
    roles: config.roles,
    scopes: catalogue.scopes,
    tags: catalogue.tags,
    anonymousScopes: config.anonymousScopes,
    trustedProxies: config.trustedProxies,
    bodyLimitBytes: config.bodyLimitBytes,
    rateLimitPerMinute: config.rateLimitPerMinute,
    assertions: opened.find(({ assertions }) => assertions)?.assertions,
  });
  const hintStreams = createHintStreams({ received, kinds: catalogue.hints, scopes: catalogue.scopes });
  publicSurfaces(http, { db, metrics: registry });
  const isApi = config.roles.includes("api");
  if (!(isApi && (await serveConsole(http, deps.consoleDir)))) {
    const page = { version: VERSION, roles: config.roles, database: description, startedAt: new Date() };
    frontPageRoutes(http, { ...page, lacksConsole: isApi });
  }
  if (isApi) {
    const moduleChecks = opened.flatMap(({ checks = [] }) => checks);
    const parts = opened.flatMap(({ overview = [] }) => overview);
    const ownChecks = [...kernelChecks({ version: VERSION, dataDir }), secretsCheck(secrets)];
    const checks = [...ownChecks, ...moduleChecks, ...needChecks(parts)];
    await under(http, "/api/v1", (api) => {
      adminSurfaces(api, { db, keys, checks, catalogue, settings: config.inForce });
      sessionRoutes(api, { db, keys, ...access });
      secretRoutes(api, { db, secrets });
      gateRoutes(api, { db, gates });
      hintRoutes(api, hintStreams);
      overviewRoutes(api, { db, clock: systemClock, scopes: catalogue.scopes, parts });
    });
    for (const { routes } of opened) await routes?.(http);
  }
  cleanup.add("requests in flight", () => http.close());
  const url = await listen(http, config);
  // After listening, so that only a start that succeeds creates and shows the key.
  const firstAdminKey = await keys.bootstrap();
  log.info({ url, roles: config.roles, database: description, version: VERSION }, "millrace is ready");

  return {
    url,
    roles: config.roles,
    firstAdminKey,
    newConsoleLink: async () => (isApi ? access.links.forOperator() : undefined),
    http,
    registry,
    async stop() {
      if (stopping) return;
      stopping = true;
      // First: a request that waits for work or watches a run would keep the server open.
      hintStreams.stop();
      for (const { endWaits } of opened) endWaits?.();
      await cleanup.run();
      log.info({}, "millrace has stopped");
    },
  };
}

type Kernel = Pick<
  ModuleContext<never, never>,
  "db" | "wake" | "hints" | "session" | "outbox" | "box" | "secrets" | "gates" | "inUse" | "onRun"
>;

/** Opens each module with the APIs of those before it. The compiler has checked the list (`moduleList`). */
async function openModules(deps: OpenProcess, kernel: Kernel): Promise<(Opened & { name: string })[]> {
  const { config, cwd, log, registry, cleanup, database } = deps;
  const { configFile, dataDir } = config;
  const opened: (Opened & { name: string })[] = [];
  const apis: Record<string, unknown> = {};
  for (const { name, metrics = {}, open } of deps.modules) {
    const context: ModuleContext<{ name: string }, unknown> = {
      ...kernel,
      section: config.sections[name],
      settings: config.settings[name] ?? {},
      metrics: registry.define(metrics),
      log,
      clock: systemClock,
      ids: systemIds,
      env: process.env,
      configDir: configFile === undefined ? cwd : dirname(resolve(cwd, configFile)),
      dataDir: database.dataDir ?? (dataDir && resolve(cwd, dataDir)),
      onClose: cleanup.add,
    };
    const module = await open(context as never, { ...apis } as never);
    apis[name] = module.api;
    opened.push({ ...module, name });
  }
  return opened;
}

async function listen(http: Http, { host, port }: AnyConfig): Promise<string> {
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

interface Cleanup {
  add(what: string, undo: () => unknown): void;
  /** Undoes in reverse order. A failure is logged and the rest is still undone. */
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
