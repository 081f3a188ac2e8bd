/**
 * The settings of the kernel; modules have theirs in their catalogues. Parsing, `--help` and the table in docs/operating.md are
 * derived from these tables.
 */
import { parseSecretKey } from "../secrets/encryption-key.ts";
import { type Kind, matching, networks, oneOf, path, someOf, url, wholeNumber } from "./kinds.ts";

export interface Setting {
  readonly env: string;
  /** Secrets have none: every user of a machine can see the command lines of its processes. */
  readonly flag?: string;
  readonly kind: Kind<unknown>;
  /** As it would be written in the environment. */
  readonly default?: string;
  /** Its value is never shown in a message. */
  readonly secret?: true;
  readonly description: string;
}

/** By the names of their values in code. */
export type SettingTable = Readonly<Record<string, Setting>>;

const ROLES = ["api", "scheduler", "worker"] as const;
export type Role = (typeof ROLES)[number];
const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace"] as const;

const httpUrl = (example: string) => url(["http:", "https:"], example);

/** The settings of `serve` and `migrate`. The scopes are passed in, because modules define them. */
export const serverSettings = (scopes: readonly string[]) =>
  ({
    databaseUrl: {
      env: "DATABASE_URL",
      kind: url(["postgres:", "postgresql:"], "postgres://user:password@host:5432/database"),
      secret: true,
      description: "The Postgres (15 or later) to use; without it Millrace runs its own in the data directory.",
    },
    host: {
      env: "MILLRACE_HOST",
      flag: "host",
      kind: matching("a host name or an IP address", "host", /^\S{1,255}$/),
      default: "127.0.0.1",
      description: "The address to listen on; `0.0.0.0` or `::` opens the server to the network.",
    },
    port: {
      env: "MILLRACE_PORT",
      flag: "port",
      kind: wholeNumber({ min: 0, max: 65_535 }),
      default: "7400",
      description: "The port to listen on; 0 takes any free one.",
    },
    dataDir: {
      env: "MILLRACE_DATA_DIR",
      flag: "data-dir",
      kind: path,
      description: "Where the embedded Postgres keeps its files; without it `.millrace` in the working directory.",
    },
    adminKey: {
      env: "MILLRACE_ADMIN_KEY",
      // Sent as an HTTP header, which allows neither surrounding spaces nor characters beyond ASCII.
      kind: matching("32 to 512 visible ASCII characters without spaces", "key", /^[!-~]{32,512}$/),
      secret: true,
      description: "The admin key, for automation; without it the first start creates one and prints it.",
    },
    secretKey: {
      env: "MILLRACE_SECRET_KEY",
      kind: { accepts: "32 bytes as 64 hex digits or as base64", placeholder: "key", parse: parseSecretKey },
      secret: true,
      description: "The key that stored secrets are encrypted under, the same in every process on one database.",
    },
    roles: {
      env: "MILLRACE_ROLES",
      flag: "roles",
      kind: someOf(ROLES, { none: false }),
      default: ROLES.join(","),
      description: "What this process does: answer requests, schedule work, do the work.",
    },
    anonymousScopes: {
      env: "MILLRACE_ANONYMOUS_SCOPES",
      flag: "anonymous-scopes",
      kind: someOf(scopes, { none: true }),
      default: "",
      description: "Scopes granted to callers without a key; only for a trusted network.",
    },
    trustedProxies: {
      env: "MILLRACE_TRUSTED_PROXIES",
      flag: "trusted-proxies",
      kind: networks,
      default: "",
      description: "Addresses and networks of reverse proxies; `X-Forwarded-For` and the like count only from these.",
    },
    configFile: {
      env: "MILLRACE_CONFIG",
      flag: "config",
      kind: path,
      description:
        "The file with structured settings; without it `millrace.yaml` in the working directory, if there is one.",
    },
    logLevel: {
      env: "MILLRACE_LOG_LEVEL",
      flag: "log-level",
      kind: oneOf(LOG_LEVELS),
      default: "info",
      description: "The least serious level that is logged.",
    },
    auditKeepDays: {
      env: "MILLRACE_AUDIT_KEEP_DAYS",
      kind: wholeNumber({ min: 1, max: 36_500 }),
      default: "365",
      description: "How long rows of the audit log are kept.",
    },
    outboxKeepDays: {
      env: "MILLRACE_OUTBOX_KEEP_DAYS",
      kind: wholeNumber({ min: 1, max: 36_500 }),
      default: "30",
      description: "How long events are kept that could not be delivered after all attempts.",
    },
    dbPoolSize: {
      env: "MILLRACE_DB_POOL_SIZE",
      flag: "db-pool-size",
      kind: wholeNumber({ min: 2, max: 100 }),
      default: "10",
      description: "Connections to Postgres that this process may hold for its work.",
    },
    bodyLimitBytes: {
      env: "MILLRACE_BODY_LIMIT_BYTES",
      flag: "body-limit-bytes",
      kind: wholeNumber({ min: 1_024, max: 1_073_741_824 }),
      default: "1048576",
      description: "The largest request body that is read; a larger one is answered with 413.",
    },
    rateLimitPerMinute: {
      env: "MILLRACE_RATE_LIMIT_PER_MINUTE",
      flag: "rate-limit-per-minute",
      kind: wholeNumber({ min: 0, max: 1_000_000_000 }),
      default: "600000",
      description: "Requests that one key may make of this process in a minute; 0 sets no limit.",
    },
    shutdownGraceSeconds: {
      env: "MILLRACE_SHUTDOWN_GRACE_SECONDS",
      flag: "shutdown-grace-seconds",
      kind: wholeNumber({ min: 0, max: 3_600 }),
      default: "20",
      description: "How long a stopping process waits for requests and work in flight.",
    },
    otlpEndpoint: {
      env: "OTEL_EXPORTER_OTLP_ENDPOINT",
      kind: httpUrl("http://127.0.0.1:4318"),
      description: "The OpenTelemetry collector that receives traces; without it there is no tracing.",
    },
    serviceName: {
      env: "OTEL_SERVICE_NAME",
      kind: matching("a name of at most 255 characters", "name", /^.{1,255}$/),
      default: "millrace",
      description: "The name under which this process appears in traces.",
    },
  }) as const satisfies SettingTable;

/** What the commands that call a running server read. */
export const CLIENT_SETTINGS = {
  url: {
    env: "MILLRACE_URL",
    flag: "url",
    kind: httpUrl("http://127.0.0.1:7400"),
    default: "http://127.0.0.1:7400",
    description: "The server that commands call.",
  },
  key: {
    env: "MILLRACE_KEY",
    kind: matching("a key without spaces", "key", /^[!-~]{1,512}$/),
    secret: true,
    description: "The key that commands send to the server.",
  },
} as const satisfies SettingTable;

/** The values of a table's settings, by their names in it. */
export type SettingValues<Table extends SettingTable> = { readonly [Name in keyof Table]: ValueOf<Table[Name]> };
type ValueOf<S extends Setting> =
  S["kind"] extends Kind<infer Value> ? (S extends { default: string } ? Value : Value | undefined) : never;

export type ServerSettings = SettingValues<ReturnType<typeof serverSettings>>;
export type ClientSettings = SettingValues<typeof CLIENT_SETTINGS>;
