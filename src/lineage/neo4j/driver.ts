/** The part of the official Neo4j driver that the projection uses, and the meaning of its errors. */
import { isUnavailable } from "../../kernel/data/db.ts";
import { OperatorError } from "../../kernel/errors.ts";
import { type Environment, withEnvironment } from "../../kernel/secrets/environment-references.ts";
import type { Neo4jSettings } from "./settings.ts";

export interface GraphTransaction {
  run(cypher: string, parameters: object): PromiseLike<{ records: readonly { get(column: string): unknown }[] }>;
}
export interface GraphSession {
  /** Runs `work` again, for some seconds, after a deadlock, a change of leader or a lost connection. */
  executeWrite<T>(work: (tx: GraphTransaction) => Promise<T>, config: { timeout: number }): Promise<T>;
  close(): Promise<void>;
}
export interface GraphDriver {
  session(config: { database?: string }): GraphSession;
  getServerInfo(config: { database?: string }): Promise<{ agent?: string }>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 5_000;
const ACQUIRE_TIMEOUT_MS = 15_000;
/** The driver's own retries. After them the outbox retries, for as long as it takes. */
const RETRY_MS = 10_000;
/** Few, because whatever concerns one tenant is written one after the other. */
const POOL_SIZE = 8;

export async function openDriver(settings: Neo4jSettings, env: Environment): Promise<GraphDriver> {
  const place = "lineage.neo4j";
  const url = withEnvironment(settings.url, `${place}.url`, env, encodeURIComponent);
  const user = withEnvironment(settings.user, `${place}.user`, env);
  const password = withEnvironment(settings.password, `${place}.password`, env);
  // Loaded here, because it takes a quarter of a second that only those with a Neo4j should wait for.
  const { auth, driver } = await import("neo4j-driver");
  try {
    return driver(url, auth.basic(user, password), {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      connectionAcquisitionTimeout: ACQUIRE_TIMEOUT_MS,
      maxTransactionRetryTime: RETRY_MS,
      maxConnectionPoolSize: POOL_SIZE,
      telemetryDisabled: true,
      userAgent: "millrace",
    });
  } catch (error) {
    throw new OperatorError(`${place}.url is not an address of a Neo4j server: ${(error as Error).message}`);
  }
}

const OUTAGE =
  /^(ServiceUnavailable$|SessionExpired$|ProtocolError$|Neo\.TransientError\.|Neo\.ClientError\.(Cluster|Database)\.|Neo\.ClientError\.Security\.(?!Forbidden))/;
/** The driver gives no code to this one. */
const NO_CONNECTION = /^Connection acquisition timed out/;

/**
 * Whether everything would fail in the same way now: no server or database, wrong credentials, an overload, or no Postgres to
 * read from. `Forbidden` is about one statement.
 */
export function isOutage(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (typeof code === "string" && OUTAGE.test(code)) return true;
  return (typeof message === "string" && NO_CONNECTION.test(message)) || isUnavailable(error);
}

/** Whether the server has understood the statement and takes it for invalid: the same again would be refused again. */
export function isRefusal(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^Neo\.ClientError\.(Statement\.(?!AccessMode)|Schema\.|Procedure\.)/.test(code);
}
