/**
 * The life of the embedded server under one Millrace process.
 *
 *     supervise() ──▶ running ──lock lost──▶ repairing ──▶ running ...
 *                        └──────stop()──────────┴──▶ stopped
 *
 * Running means that we hold the lock. When that connection ends, for whatever reason, we attach again, launching a new
 * server if need be, and keep trying until it works or `stop()` is called. If Millrace is killed, the server goes on
 * alone and the next start adopts it.
 */

import { randomUUID } from "node:crypto";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { OperatorError } from "../errors.ts";
import { type Attachment, attach, type Refusal } from "./attach.ts";
import { locateBinaries } from "./binaries.ts";
import {
  type Cluster,
  clusterExists,
  createCluster,
  readPassword,
  removeLeftovers,
  repairOwnership,
  SUPERUSER,
  type Transport,
} from "./cluster.ts";
import { CLUSTER_NAME, prepareDataDir } from "./data-directory.ts";
import { endpointVanished, removeEndpoint } from "./endpoint.ts";
import { explained, lastLines } from "./failure.ts";
import { DATABASE } from "./lock.ts";
import { boundLog, readLog } from "./log-file.ts";
import { forgetOwner, livingOwner } from "./owner.ts";
import { findPostmaster, stopPostmaster } from "./postmaster.ts";
import { fingerprint, serverSettings } from "./settings.ts";
import { chooseUser } from "./system-user.ts";

export interface EmbeddedPostgresOptions {
  /** The data directory of Millrace; the cluster lies in `<dataDir>/postgres`. */
  dataDir: string;
  /** Extra server settings, e.g. `{ fsync: "off" }` for tests. */
  settings?: Record<string, string>;
  /** One line of progress for a person, e.g. "creating the database cluster". */
  onProgress?: (line: string) => void;
  log?: { info(details: object, message: string): void; warn(details: object, message: string): void };
}

export interface EmbeddedPostgres {
  /** Where to connect, in the words of node-postgres. Stays the same when the server is restarted. */
  connection: { host: string; port: number; user: string; database: string; password?: string };
  /** What happened at the start: a new cluster, an ordinary start, a server found running, or a start with crash recovery. */
  origin: "created" | "started" | "adopted" | "recovered";
  /** Process id of the server, which changes when it is restarted. */
  pid(): number;
  stop(): Promise<void>;
}

interface Host {
  transport: Transport;
  /** How often the log and the socket are looked after. */
  housekeepingMs?: number;
}

const HOUSEKEEPING_MS = 10_000;
const REPAIR_PAUSE_MS_MIN = 50;
const REPAIR_PAUSE_MS_MAX = 5_000;
/** A server that lasted this long was healthy: its end starts a new series of attempts. */
const HEALTHY_MS_MIN = 10_000;

export async function supervise(options: EmbeddedPostgresOptions, host: Host): Promise<EmbeddedPostgres> {
  const { log } = options;
  const onProgress = options.onProgress ?? (() => undefined);
  const cluster = await describeCluster(options, host.transport, onProgress);
  const created = await ensureCluster(cluster, onProgress);
  await explained(cluster.dataDir, () => boundLog(cluster.logFile));

  const token = randomUUID();
  const stopping = new AbortController();
  const { signal } = stopping;
  const first = await attach(cluster, { token, signal, onProgress });
  if (!isAttachment(first)) throw refusal(cluster, first);
  await removeLeftovers(cluster);

  const { endpoint } = first;
  let current = first;
  let attachedAt = performance.now();
  let failures = 0;
  let repair: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;

  async function watch(attachment: Attachment): Promise<void> {
    current = attachment;
    attachedAt = performance.now();
    repair = undefined;
    await attachment.lock.lost;
    if (!signal.aborted) repair = repairUntilStopped();
  }

  async function repairUntilStopped(): Promise<void> {
    if (performance.now() - attachedAt > HEALTHY_MS_MIN) failures = 0;
    const lastWords = lastLines(await readLog(cluster.logFile, 0).catch(String));
    log?.warn({ postmaster: current.pid, lastWords }, "Postgres went away; bringing it back");
    while (!signal.aborted) {
      try {
        await sleep(Math.min(REPAIR_PAUSE_MS_MAX, REPAIR_PAUSE_MS_MIN * 2 ** failures), undefined, { signal });
        failures += 1;
        const next = await attach(cluster, { token, endpoint, signal, onProgress: () => undefined });
        if (isAttachment(next)) {
          log?.info({ postmaster: next.pid, origin: next.origin }, "Postgres is back");
          void watch(next);
          return;
        }
        log?.warn({ holder: next.holder }, "another Millrace took over the data directory; waiting for it to end");
      } catch (error) {
        if (!signal.aborted) log?.warn({ err: error }, "Postgres could not be brought back; trying again");
      }
    }
  }

  async function keepHouseUntilStopped(): Promise<void> {
    while (!signal.aborted) {
      try {
        await sleep(host.housekeepingMs ?? HOUSEKEEPING_MS, undefined, { signal, ref: false });
        await boundLog(cluster.logFile);
        // Cleaners of /tmp exist. Without the socket the open connections work on, but no new one can be made.
        if (repair === undefined && (await endpointVanished(endpoint))) {
          log?.warn({ socket: endpoint.host }, "the socket of Postgres was removed; restarting it");
          await stopPostmaster(cluster, current.pid);
        }
      } catch (error) {
        if (!signal.aborted) log?.warn({ err: error }, "looking after Postgres failed");
      }
    }
  }

  async function stopServer(): Promise<void> {
    stopping.abort();
    await Promise.all([repair, housekeeping]);
    // Without the lock the server may be another's by now; the owner's note tells.
    if ((await livingOwner(cluster.dataDir, token)) === undefined) {
      // Forgotten first, so that a start at this moment waits for the shutdown instead of being refused.
      await forgetOwner(cluster.dataDir, token);
      const found = await findPostmaster(cluster, undefined);
      if (found.state === "running") {
        const way = await stopPostmaster(cluster, found.pid);
        if (way !== "fast") log?.warn({ postmaster: found.pid, way }, "Postgres did not stop in time and was made to");
      }
      await removeEndpoint(endpoint, cluster.runAs);
    }
    await current.lock.client.end();
  }

  void watch(first);
  const housekeeping = keepHouseUntilStopped();
  const origin = created ? "created" : first.origin;
  log?.info({ postmaster: first.pid, origin, dataDir: cluster.dataDir }, "Postgres is ready");
  const password = await readPassword(cluster);
  return {
    connection: {
      host: endpoint.host,
      port: endpoint.port,
      user: SUPERUSER,
      database: DATABASE,
      ...(password !== undefined && { password }),
    },
    origin,
    pid: () => current.pid,
    stop: () => (stopped ??= stopServer()),
  };
}

async function describeCluster(
  options: EmbeddedPostgresOptions,
  transport: Transport,
  onProgress: (line: string) => void,
): Promise<Cluster> {
  const asked = resolve(options.dataDir);
  const runAs = await explained(asked, () => chooseUser(join(asked, CLUSTER_NAME)));
  const dataDir = await prepareDataDir(asked, runAs);
  const binaries = await locateBinaries(dataDir, runAs, () => onProgress("copying the Postgres programs"));
  const settings = serverSettings(options.settings ?? {});
  return {
    dataDir,
    dir: join(dataDir, CLUSTER_NAME),
    logFile: join(dataDir, "postgres.log"),
    binaries,
    runAs,
    transport,
    settings,
    fingerprint: fingerprint(binaries, settings),
  };
}

/** True when the cluster was made just now, by us. */
async function ensureCluster(cluster: Cluster, onProgress: (line: string) => void): Promise<boolean> {
  if (!(await clusterExists(cluster))) {
    onProgress("creating the database cluster");
    if (await createCluster(cluster)) return true;
  }
  await repairOwnership(cluster);
  return false;
}

function isAttachment(outcome: Attachment | Refusal): outcome is Attachment {
  return "lock" in outcome;
}

function refusal(cluster: Cluster, { holder }: Refusal): OperatorError {
  const who = holder === undefined ? "Another Millrace" : `Another Millrace (pid ${holder})`;
  return new OperatorError(
    `${who} already uses the data directory ${cluster.dataDir}. Stop it first, or set MILLRACE_DATA_DIR to another folder. ` +
      "To run several processes on one database, set DATABASE_URL.",
  );
}
