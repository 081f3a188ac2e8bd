/**
 * Gets from a cluster on disk to a running server whose lock this process holds. There may be no server, one that is starting,
 * one left by a killed Millrace, one that does not answer, or one that another Millrace uses; and other processes may
 * attach concurrently. So this observes the state, takes one step, and observes again. Only the lock decides who owns the server.
 *
 *     absent ────launch──▶ starting ──▶ locked            this process owns it
 *     malformed ─discard─▶ absent       held              another Millrace owns it: not touched
 *     unusable ───stop───▶ absent       locked, but with other settings ──stop──▶ absent
 */

import { setTimeout as sleep } from "node:timers/promises";
import { OperatorError } from "../errors.ts";
import { messageOf } from "../text/message-of.ts";
import { type Cluster, readPassword } from "./cluster.ts";
import { type Endpoint, isSame, newEndpoint, removeEndpoint, restoreEndpoint } from "./endpoint.ts";
import { postgresTrouble } from "./failure.ts";
import { ensureDatabase, type Lock, tryLock } from "./lock.ts";
import { livingOwner, writeOwner } from "./owner.ts";
import {
  discardMalformedPidFile,
  findPostmaster,
  type Launch,
  launchPostmaster,
  stopPostmaster,
} from "./postmaster.ts";
import { isAlive, waitUntilGone } from "./processes.ts";

export interface Attachment {
  lock: Lock;
  pid: number;
  endpoint: Endpoint;
  origin: "started" | "adopted" | "recovered";
}

/** Another Millrace uses the data directory; `holder` is its pid. */
export interface Refusal {
  holder: number | undefined;
}

interface AttachOptions {
  /** Identifies this supervisor in the owner file. */
  token: string;
  /** At a restart: the endpoint that clients already use. */
  endpoint?: Endpoint;
  signal: AbortSignal;
  onProgress: (line: string) => void;
}

/** Short, because a warm start takes only 60 ms in all. */
const POLL_MS = 10;
/** The connection of a killed process closes within milliseconds, but a restart can be as fast. */
const LIVING_HOLDER_MS_MAX = 300;
const DEAD_HOLDER_MS_MAX = 5_000;
const MALFORMED_MS_MAX = 500;
const UNUSABLE_MS_MAX = 1_000;
const LAUNCH_MS_MAX = 30_000;
/** While backends of a killed server are still alive, Postgres refuses to start another server. */
const LINGERING_MS_MAX = 30_000;
const LINGERING_PAUSE_MS = 200;
const LINGERING = /pre-existing shared memory block|lock file ".*" already exists/;
/** Crash recovery replays at most `max_wal_size` of WAL. */
const STARTING_MS_MAX = 600_000;
const STARTING_SILENTLY_MS_MAX = 2_000;
const RECOVERY = /was not properly shut down|database system was interrupted/;

type Launched = Launch & { endpoint: Endpoint };

type Observed =
  | { kind: "absent"; endpoint?: Endpoint; reusedPid?: number }
  | { kind: "malformed" | "starting" }
  | { kind: "unusable"; pid: number; endpoint: Endpoint | undefined; certain: boolean; reason: string }
  | { kind: "held"; pid: number; holder: number | undefined }
  | { kind: "locked"; pid: number; endpoint: Endpoint; lock: Lock; fingerprint: string | null };

export async function attach(cluster: Cluster, options: AttachOptions): Promise<Attachment | Refusal> {
  const { signal, token, onProgress } = options;
  const password = await readPassword(cluster);
  const waitedFor = stopwatch();
  const startedAt = performance.now();
  let hasReportedWait = false;
  let launch: Launched | undefined;

  async function refuse(holder: number | undefined, serverPid: number): Promise<Refusal> {
    if (launch !== undefined && launch.pid !== serverPid) await abandon(cluster, launch, options.endpoint);
    return { holder };
  }

  try {
    for (;;) {
      signal.throwIfAborted();
      const seen = await observe(cluster, password, launch?.pid);
      const waitedMs = waitedFor(seen.kind);
      switch (seen.kind) {
        case "absent":
          if (launch === undefined) {
            onProgress("starting Postgres");
            if (seen.endpoint !== undefined) await removeEndpoint(seen.endpoint, cluster.runAs);
            launch = await launchAt(cluster, options.endpoint, seen.reusedPid);
          } else if (launch.hasExited()) {
            const output = await launch.output();
            if (!LINGERING.test(output) || performance.now() - startedAt > LINGERING_MS_MAX) {
              throw await postgresTrouble("Postgres did not start.", output, cluster.dataDir);
            }
            await abandon(cluster, launch, options.endpoint);
            launch = undefined;
            await sleep(LINGERING_PAUSE_MS);
          } else if (waitedMs > LAUNCH_MS_MAX) {
            throw await postgresTrouble("Postgres does not become ready.", await launch.output(), cluster.dataDir);
          }
          break;

        case "malformed":
          if (waitedMs > MALFORMED_MS_MAX) await discardMalformedPidFile(cluster);
          break;

        case "starting":
          if (waitedMs > STARTING_SILENTLY_MS_MAX && !hasReportedWait) {
            onProgress("waiting for Postgres, which replays its log after a crash");
            hasReportedWait = true;
          }
          if (waitedMs > STARTING_MS_MAX) {
            throw await postgresTrouble(
              "Postgres does not become ready.",
              (await launch?.output()) ?? "",
              cluster.dataDir,
            );
          }
          break;

        case "unusable": {
          if (waitedMs < UNUSABLE_MS_MAX) break;
          const owner = await livingOwner(cluster.dataDir, token);
          if (owner !== undefined) return await refuse(owner, seen.pid);
          if (!seen.certain) throw unsure(cluster, seen);
          if (seen.pid === launch?.pid) {
            throw await postgresTrouble(
              `Postgres has started but ${seen.reason}.`,
              await launch.output(),
              cluster.dataDir,
            );
          }
          await stopLeftover(cluster, seen, onProgress);
          break;
        }

        case "held": {
          const living = seen.holder !== undefined && isAlive(seen.holder);
          if (waitedMs < (living ? LIVING_HOLDER_MS_MAX : DEAD_HOLDER_MS_MAX)) break;
          return await refuse(seen.holder, seen.pid);
        }

        case "locked": {
          const { lock, pid, endpoint } = seen;
          // At a restart, another Millrace may have launched this server in the meantime, and ended.
          const elsewhere = options.endpoint !== undefined && !isSame(options.endpoint, endpoint);
          if (seen.fingerprint !== cluster.fingerprint || elsewhere) {
            await stopLeftover(cluster, { pid, endpoint, reason: "it has other settings" }, onProgress);
            break;
          }
          await takeOver(cluster, lock, token);
          if (launch?.pid === pid) return { lock, pid, endpoint, origin: await originOf(launch) };
          if (launch !== undefined) await abandon(cluster, launch, options.endpoint);
          return { lock, pid, endpoint, origin: "adopted" };
        }
      }
      await sleep(POLL_MS);
    }
  } catch (error) {
    if (launch !== undefined && (await livingOwner(cluster.dataDir, token)) === undefined) {
      if (!launch.hasExited()) await stopPostmaster(cluster, launch.pid);
      await abandon(cluster, launch, options.endpoint);
    }
    throw error;
  }
}

/** The present state, including an attempt to take the lock. */
async function observe(cluster: Cluster, password: string | undefined, ownPid: number | undefined): Promise<Observed> {
  const found = await findPostmaster(cluster, ownPid);
  if (found.state === "malformed") return { kind: "malformed" };
  if (found.state === "absent") {
    const { state: kind, ...last } = found;
    return { kind, ...last };
  }
  const { pid, certain, endpoint, status } = found;
  if (status === "stopping") return { kind: "unusable", pid, endpoint, certain, reason: "it is shutting down" };
  if (status !== "ready" || endpoint === undefined) return { kind: "starting" };
  const attempt = await tryLock(endpoint, password);
  if (attempt.outcome === "locked") {
    return { kind: "locked", pid, endpoint, lock: attempt.lock, fingerprint: attempt.fingerprint };
  }
  if (attempt.outcome === "held") return { kind: "held", pid, holder: attempt.holder };
  if (attempt.outcome === "busy") return { kind: "starting" };
  return { kind: "unusable", pid, endpoint, certain, reason: `it does not answer (${attempt.reason})` };
}

/** Launches a server at the endpoint that clients already use, or at a new one, which is removed if that fails. */
async function launchAt(
  cluster: Cluster,
  known: Endpoint | undefined,
  reusedPid: number | undefined,
): Promise<Launched> {
  if (known !== undefined) {
    await restoreEndpoint(known, cluster.runAs);
    return { endpoint: known, ...(await launchPostmaster(cluster, known, reusedPid)) };
  }
  const endpoint = await newEndpoint(cluster.transport, cluster.runAs);
  try {
    return { endpoint, ...(await launchPostmaster(cluster, endpoint, reusedPid)) };
  } catch (error) {
    await removeEndpoint(endpoint, cluster.runAs);
    throw error;
  }
}

/** Stops an unusable server of an earlier run. */
async function stopLeftover(
  cluster: Cluster,
  server: { pid: number; endpoint: Endpoint | undefined; reason: string },
  onProgress: (line: string) => void,
): Promise<void> {
  onProgress(`stopping a Postgres (pid ${server.pid}) left by an earlier run: ${server.reason}`);
  await stopPostmaster(cluster, server.pid);
  if (server.endpoint !== undefined) await removeEndpoint(server.endpoint, cluster.runAs);
}

/** Cleans up after a launch that failed, for example because another process launched first. */
async function abandon(cluster: Cluster, launch: Launched, known: Endpoint | undefined): Promise<void> {
  await waitUntilGone(launch.pid, LAUNCH_MS_MAX);
  if (known === undefined) await removeEndpoint(launch.endpoint, cluster.runAs);
}

/** The first steps after taking the lock. */
async function takeOver(cluster: Cluster, lock: Lock, token: string): Promise<void> {
  try {
    await writeOwner(cluster.dataDir, token);
    await ensureDatabase(lock);
  } catch (error) {
    await lock.client.end();
    throw await postgresTrouble("The database could not be prepared.", messageOf(error), cluster.dataDir);
  }
}

async function originOf(launch: Launch): Promise<"started" | "recovered"> {
  return RECOVERY.test(await launch.output()) ? "recovered" : "started";
}

function unsure(cluster: Cluster, { pid, reason }: { pid: number; reason: string }): OperatorError {
  return new OperatorError(
    `Process ${pid} seems to be the Postgres of ${cluster.dir}, but ${reason}. End that process, then start Millrace again.`,
  );
}

/** How long the state has been the same. */
function stopwatch(): (kind: string) => number {
  let current: string | undefined;
  let since = 0;
  return (kind) => {
    if (kind !== current) {
      current = kind;
      since = performance.now();
    }
    return performance.now() - since;
  };
}
