/**
 * Supervises the embedded server from one Millrace process.
 *
 *     supervise() ──▶ running ──lock lost──▶ repairing ──▶ running ...
 *                        └──────stop()──────────┴──▶ stopped
 *
 * Running means holding the lock. When its connection ends, for whatever reason, the supervisor attaches again, launches a
 * new server if necessary, and retries until it succeeds or `stop()` is called. If Millrace is killed, the server keeps
 * running and the next start adopts it.
 */

import { randomUUID } from "node:crypto";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { OperatorError } from "../errors.ts";
import { accessSettings } from "./access.ts";
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
import { isSocketMissing, removeEndpoint } from "./endpoint.ts";
import { explained, lastLines } from "./failure.ts";
import { DATABASE } from "./lock.ts";
import { readLog, rotateLog } from "./log-file.ts";
import { livingOwner, removeOwner } from "./owner.ts";
import { findPostmaster, stopPostmaster } from "./postmaster.ts";
import { fingerprint, serverSettings } from "./settings.ts";
import { chooseUser } from "./system-user.ts";

export interface EmbeddedPostgresOptions {
  /** The data directory of Millrace; the cluster is in `<dataDir>/postgres`. */
  dataDir: string;
  /** Extra server settings, e.g. `{ fsync: "off" }` for tests. */
  settings?: Record<string, string>;
  /** Called with a line of progress, such as "creating the database cluster". */
  onProgress?: (line: string) => void;
  log?: { info(details: object, message: string): void; warn(details: object, message: string): void };
}

export interface EmbeddedPostgres {
  /** The configuration for node-postgres. It does not change when the server is restarted. */
  connection: { host: string; port: number; user: string; database: string; password?: string };
  /** How the server was obtained: a new cluster, a normal start, a running server, or a start with crash recovery. */
  origin: "created" | "started" | "adopted" | "recovered";
  /** Process id of the server, which changes when it is restarted. */
  pid(): number;
  stop(): Promise<void>;
}

interface Host {
  transport: Transport;
  /** How often the size of the log and the socket are checked. */
  maintenanceMs?: number;
}

const MAINTENANCE_MS = 10_000;
const REPAIR_PAUSE_MS_MIN = 50;
const REPAIR_PAUSE_MS_MAX = 5_000;
/** After running this long, a server counts as healthy and the retry delay is reset. */
const HEALTHY_MS_MIN = 10_000;

export async function supervise(options: EmbeddedPostgresOptions, host: Host): Promise<EmbeddedPostgres> {
  const { log } = options;
  const onProgress = options.onProgress ?? (() => undefined);
  const cluster = await describeCluster(options, host.transport, onProgress);
  const created = await ensureCluster(cluster, onProgress);
  await explained(cluster.dataDir, () => rotateLog(cluster.logFile));

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

  async function maintainUntilStopped(): Promise<void> {
    while (!signal.aborted) {
      try {
        await sleep(host.maintenanceMs ?? MAINTENANCE_MS, undefined, { signal, ref: false });
        await rotateLog(cluster.logFile);
        // A cleaner of /tmp may remove the socket. Open connections then keep working, but new ones fail.
        if (repair === undefined && (await isSocketMissing(endpoint))) {
          log?.warn({ socket: endpoint.host }, "the socket of Postgres was removed; restarting it");
          await stopPostmaster(cluster, current.pid);
        }
      } catch (error) {
        if (!signal.aborted) log?.warn({ err: error }, "the maintenance of Postgres failed");
      }
    }
  }

  async function stopServer(): Promise<void> {
    stopping.abort();
    await Promise.all([repair, maintenance]);
    // Without the lock, another Millrace may own the server by now; the owner file says so.
    if ((await livingOwner(cluster.dataDir, token)) === undefined) {
      // Removed first, so that a concurrent start waits for the shutdown instead of being refused.
      await removeOwner(cluster.dataDir, token);
      const found = await findPostmaster(cluster, undefined);
      if (found.state === "running") {
        const shutdown = await stopPostmaster(cluster, found.pid);
        if (shutdown !== "fast")
          log?.warn({ postmaster: found.pid, shutdown }, "Postgres did not stop in time and was forced to");
      }
      await removeEndpoint(endpoint, cluster.runAs);
    }
    await current.lock.client.end();
  }

  void watch(first);
  const maintenance = maintainUntilStopped();
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
  const configured = resolve(options.dataDir);
  const runAs = await explained(configured, () => chooseUser(join(configured, CLUSTER_NAME)));
  const dataDir = await prepareDataDir(configured, runAs);
  const binaries = await locateBinaries(dataDir, runAs, () => onProgress("copying the Postgres programs"));
  const settings = { ...serverSettings(options.settings ?? {}), ...accessSettings(dataDir, transport) };
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

/** True if this process created the cluster. */
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
