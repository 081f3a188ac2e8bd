/**
 * Every setting there is, in one table. Reading, `--help` and the table in docs/operating.md all come from it, so a
 * setting cannot exist without its description, or be described without existing.
 */
import { SCOPES } from "../auth/scopes.ts";
import { parseSecretKey } from "../secrets/key.ts";
import { type Kind, matching, oneOf, someOf, trueOrFalse, url, wholeNumber } from "./kinds.ts";

/** Who reads a setting: the processes of `serve` and `migrate`, or the commands that call a running server. */
export type Reader = "server" | "client";

export interface Setting {
  readonly env: string;
  /** Secrets have none: every user of a machine can read the command lines of its processes. */
  readonly flag?: string;
  readonly kind: Kind<unknown>;
  /** As it would be written in the environment. */
  readonly default?: string;
  /** Its value appears in no message. */
  readonly secret?: true;
  readonly readBy: Reader;
  readonly description: string;
}

const ROLES = ["api", "scheduler", "worker"] as const;
const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace"] as const;

const path = matching("a path", "path", /^.{1,4096}$/);
const httpUrl = (example: string) => url(["http:", "https:"], example);

export const SETTINGS = {
  databaseUrl: {
    env: "DATABASE_URL",
    kind: url(["postgres:", "postgresql:"], "postgres://user:password@host:5432/database"),
    secret: true,
    readBy: "server",
    description: "The Postgres (15 or later) to use; without it Millrace runs one of its own in the data directory.",
  },
  host: {
    env: "MILLRACE_HOST",
    flag: "host",
    kind: matching("a host name or an IP address", "host", /^\S{1,255}$/),
    default: "127.0.0.1",
    readBy: "server",
    description: "The address to listen on; `0.0.0.0` or `::` opens the server to the network.",
  },
  port: {
    env: "MILLRACE_PORT",
    flag: "port",
    kind: wholeNumber({ min: 0, max: 65_535 }),
    default: "7400",
    readBy: "server",
    description: "The port to listen on; 0 takes any free one.",
  },
  dataDir: {
    env: "MILLRACE_DATA_DIR",
    flag: "data-dir",
    kind: path,
    readBy: "server",
    description: "Where the embedded Postgres keeps its files; without it `.millrace` in the working directory.",
  },
  adminKey: {
    env: "MILLRACE_ADMIN_KEY",
    // It travels in an HTTP header, which carries neither spaces at its ends nor letters beyond ASCII.
    kind: matching("32 to 512 visible ASCII characters without spaces", "key", /^[!-~]{32,512}$/),
    secret: true,
    readBy: "server",
    description: "The admin key, for automation; without it the first start makes one and prints it.",
  },
  secretKey: {
    env: "MILLRACE_SECRET_KEY",
    kind: { accepts: "32 bytes as 64 hex digits or as base64", placeholder: "key", parse: parseSecretKey },
    secret: true,
    readBy: "server",
    description: "The key that stored secrets are encrypted under, the same in every process on one database.",
  },
  roles: {
    env: "MILLRACE_ROLES",
    flag: "roles",
    kind: someOf(ROLES, { none: false }),
    default: ROLES.join(","),
    readBy: "server",
    description: "What this process does: answer requests, plan work, do the work.",
  },
  anonymousScopes: {
    env: "MILLRACE_ANONYMOUS_SCOPES",
    flag: "anonymous-scopes",
    kind: someOf(SCOPES, { none: true }),
    default: "",
    readBy: "server",
    description: "Scopes granted to callers without a key; only for a network whose every member is trusted.",
  },
  configFile: {
    env: "MILLRACE_CONFIG",
    flag: "config",
    kind: path,
    readBy: "server",
    description:
      "The file with structured settings; without it `millrace.yaml` in the working directory, if there is one.",
  },
  logLevel: {
    env: "MILLRACE_LOG_LEVEL",
    flag: "log-level",
    kind: oneOf(LOG_LEVELS),
    default: "info",
    readBy: "server",
    description: "The least serious level that is logged.",
  },
  dbPoolSize: {
    env: "MILLRACE_DB_POOL_SIZE",
    flag: "db-pool-size",
    kind: wholeNumber({ min: 2, max: 100 }),
    default: "10",
    readBy: "server",
    description: "Connections to Postgres that this process may hold for its work.",
  },
  bodyLimitBytes: {
    env: "MILLRACE_BODY_LIMIT_BYTES",
    flag: "body-limit-bytes",
    kind: wholeNumber({ min: 1_024, max: 1_073_741_824 }),
    default: "1048576",
    readBy: "server",
    description: "The largest request body that is read; a larger one is answered with 413.",
  },
  rateLimitPerMinute: {
    env: "MILLRACE_RATE_LIMIT_PER_MINUTE",
    flag: "rate-limit-per-minute",
    kind: wholeNumber({ min: 0, max: 1_000_000_000 }),
    default: "600000",
    readBy: "server",
    description: "Requests that one key may make of this process in a minute; 0 sets no limit.",
  },
  shutdownGraceSeconds: {
    env: "MILLRACE_SHUTDOWN_GRACE_SECONDS",
    flag: "shutdown-grace-seconds",
    kind: wholeNumber({ min: 0, max: 3_600 }),
    default: "20",
    readBy: "server",
    description: "How long a stopping process waits for what is in flight.",
  },
  webhooksAllowPrivate: {
    env: "MILLRACE_WEBHOOKS_ALLOW_PRIVATE",
    flag: "webhooks-allow-private",
    kind: trueOrFalse,
    default: "false",
    readBy: "server",
    description:
      "Whether webhooks and chain nodes of type `http` may call loopback, private and other addresses that are not public.",
  },
  allowShell: {
    env: "MILLRACE_ALLOW_SHELL",
    flag: "allow-shell",
    kind: trueOrFalse,
    default: "false",
    readBy: "server",
    description: "Whether chain nodes of type `shell` may run commands on the workers.",
  },
  otlpEndpoint: {
    env: "OTEL_EXPORTER_OTLP_ENDPOINT",
    kind: httpUrl("http://127.0.0.1:4318"),
    readBy: "server",
    description: "The OpenTelemetry collector that traces go to; without it there is no tracing.",
  },
  serviceName: {
    env: "OTEL_SERVICE_NAME",
    kind: matching("a name of at most 255 characters", "name", /^.{1,255}$/),
    default: "millrace",
    readBy: "server",
    description: "The name under which this process appears in traces.",
  },
  url: {
    env: "MILLRACE_URL",
    flag: "url",
    kind: httpUrl("http://127.0.0.1:7400"),
    default: "http://127.0.0.1:7400",
    readBy: "client",
    description: "The server that commands talk to.",
  },
  key: {
    env: "MILLRACE_KEY",
    kind: matching("a key without spaces", "key", /^[!-~]{1,512}$/),
    secret: true,
    readBy: "client",
    description: "The key that commands present to the server.",
  },
} as const satisfies Record<string, Setting>;

type Table = typeof SETTINGS;
type ValueOf<S extends Setting> =
  S["kind"] extends Kind<infer Value> ? (S extends { default: string } ? Value : Value | undefined) : never;

/** The values of all settings that `R` reads, by their names in the table. */
export type Settings<R extends Reader> = {
  readonly [Name in keyof Table as Table[Name]["readBy"] extends R ? Name : never]: ValueOf<Table[Name]>;
};

export function settingsFor(reader: Reader): [name: string, setting: Setting][] {
  return Object.entries(SETTINGS).filter(([, setting]) => setting.readBy === reader);
}
