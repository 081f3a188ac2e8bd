/**
 * From "there is a cluster on disk" to "a server runs and this process holds its lock". What is found may be nothing, a
 * server that comes up, one left by a killed Millrace, one that does not answer, or one that another Millrace uses; and
 * other processes may be doing the same at this moment. So this looks, takes one step, and looks again, and only the
 * lock decides whose the server is.
 *
 *     absent ──launch──▶ starting ──▶ locked              this process owns it
 *     garbled ─discard─▶ absent       held                another Millrace owns it: left alone
 *     unusable ──stop──▶ absent       locked, but not as we would start it ──stop──▶ absent
 */

import { setTimeout as sleep } from "node:timers/promises";
import { OperatorError } from "../errors.ts";
import { messageOf } from "../text/message-of.ts";
import { type Cluster, readPassword } from "./cluster.ts";
import { type Endpoint, isSame, newEndpoint, removeEndpoint, restoreEndpoint } from "./endpoint.ts";
import { postgresTrouble } from "./failure.ts";
import { ensureDatabase, type Lock, tryLock } from "./lock.ts";
import { livingOwner, noteOwner } from "./owner.ts";
import { discardGarbledPidFile, findPostmaster, type Launch, launchPostmaster, stopPostmaster } from "./postmaster.ts";
import { isAlive, waitUntilGone } from "./processes.ts";

export interface Attachment {
  lock: Lock;
  pid: number;
  endpoint: Endpoint;
  origin: "started" | "adopted" | "recovered";
}

/** Another Millrace, with this pid, has the data directory. */
export interface Refusal {
  holder: number | undefined;
}

interface AttachOptions {
  /** Names this supervisor in the owner's note. */
  token: string;
  /** Where clients already look for the server, at a restart. */
  endpoint?: Endpoint;
  signal: AbortSignal;
  onProgress: (line: string) => void;
}

/** A warm start takes some 60 ms in all, so the gaps are kept short. */
const POLL_MS = 10;
/** The connection of a killed process closes within milliseconds, but its next start can be as quick. */
const LIVING_HOLDER_MS_MAX = 300;
const DEAD_HOLDER_MS_MAX = 5_000;
const GARBLED_MS_MAX = 500;
const UNUSABLE_MS_MAX = 1_000;
const LAUNCH_MS_MAX = 30_000;
/** Backends of a killed server need a moment to notice; until then Postgres refuses to start another beside them. */
const LINGERING_MS_MAX = 30_000;
const LINGERING_PAUSE_MS = 200;
const LINGERING = /pre-existing shared memory block|lock file ".*" already exists/;
/** Crash recovery replays at most `max_wal_size` of log. */
const STARTING_MS_MAX = 600_000;
const STARTING_SILENTLY_MS_MAX = 2_000;
const RECOVERY = /was not properly shut down|database system was interrupted/;

type Launched = Launch & { endpoint: Endpoint };

type Seen =
  | { kind: "absent"; endpoint?: Endpoint; reusedPid?: number }
  | { kind: "garbled" | "starting" }
  | { kind: "unusable"; pid: number; endpoint: Endpoint | undefined; certain: boolean; reason: string }
  | { kind: "held"; pid: number; holder: number | undefined }
  | { kind: "locked"; pid: number; endpoint: Endpoint; lock: Lock; fingerprint: string | null };

export async function attach(cluster: Cluster, options: AttachOptions): Promise<Attachment | Refusal> {
  const { signal, token, onProgress } = options;
  const password = await readPassword(cluster);
  const waitedFor = stopwatch();
  const begun = performance.now();
  let toldToWait = false;
  let launch: Launched | undefined;

  async function giveWay(holder: number | undefined, serverPid: number): Promise<Refusal> {
    if (launch !== undefined && launch.pid !== serverPid) await abandon(cluster, launch, options.endpoint);
    return { holder };
  }

  try {
    for (;;) {
      signal.throwIfAborted();
      const seen = await look(cluster, password, launch?.pid);
      const waitedMs = waitedFor(seen.kind);
      switch (seen.kind) {
        case "absent":
          if (launch === undefined) {
            onProgress("starting Postgres");
            if (seen.endpoint !== undefined) await removeEndpoint(seen.endpoint, cluster.runAs);
            launch = await launchAt(cluster, options.endpoint, seen.reusedPid);
          } else if (launch.hasExited()) {
            const words = await launch.words();
            if (!LINGERING.test(words) || performance.now() - begun > LINGERING_MS_MAX) {
              throw await postgresTrouble("Postgres did not start.", words, cluster.dataDir);
            }
            await abandon(cluster, launch, options.endpoint);
            launch = undefined;
            await sleep(LINGERING_PAUSE_MS);
          } else if (waitedMs > LAUNCH_MS_MAX) {
            throw await postgresTrouble("Postgres does not come up.", await launch.words(), cluster.dataDir);
          }
          break;

        case "garbled":
          if (waitedMs > GARBLED_MS_MAX) await discardGarbledPidFile(cluster);
          break;

        case "starting":
          if (waitedMs > STARTING_SILENTLY_MS_MAX && !toldToWait) {
            onProgress("waiting for Postgres; after a crash it replays its log first");
            toldToWait = true;
          }
          if (waitedMs > STARTING_MS_MAX) {
            throw await postgresTrouble("Postgres does not come up.", (await launch?.words()) ?? "", cluster.dataDir);
          }
          break;

        case "unusable": {
          if (waitedMs < UNUSABLE_MS_MAX) break;
          const owner = await livingOwner(cluster.dataDir, token);
          if (owner !== undefined) return await giveWay(owner, seen.pid);
          if (!seen.certain) throw unsure(cluster, seen);
          if (seen.pid === launch?.pid) {
            throw await postgresTrouble(`Postgres came up but ${seen.reason}.`, await launch.words(), cluster.dataDir);
          }
          await retire(cluster, seen, onProgress);
          break;
        }

        case "held": {
          const living = seen.holder !== undefined && isAlive(seen.holder);
          if (waitedMs < (living ? LIVING_HOLDER_MS_MAX : DEAD_HOLDER_MS_MAX)) break;
          return await giveWay(seen.holder, seen.pid);
        }

        case "locked": {
          const { lock, pid, endpoint } = seen;
          // At a restart it may be one that another Millrace launched, and left, in the meantime.
          const elsewhere = options.endpoint !== undefined && !isSame(options.endpoint, endpoint);
          if (seen.fingerprint !== cluster.fingerprint || elsewhere) {
            await retire(cluster, { pid, endpoint, reason: "it has other settings" }, onProgress);
            break;
          }
          await moveIn(cluster, lock, token);
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

/** What there is right now, including whether the lock could be had. */
async function look(cluster: Cluster, password: string | undefined, ownPid: number | undefined): Promise<Seen> {
  const found = await findPostmaster(cluster, ownPid);
  if (found.state === "garbled") return { kind: "garbled" };
  if (found.state === "absent") {
    const { state: kind, ...lastOne } = found;
    return { kind, ...lastOne };
  }
  const { pid, certain, endpoint, status } = found;
  if (status === "stopping") return { kind: "unusable", pid, endpoint, certain, reason: "it is shutting down" };
  if (status !== "ready" || endpoint === undefined) return { kind: "starting" };
  const attempt = await tryLock(endpoint, password);
  if (attempt.outcome === "locked") {
    return { kind: "locked", pid, endpoint, lock: attempt.lock, fingerprint: attempt.fingerprint };
  }
  if (attempt.outcome === "held") return { kind: "held", pid, holder: attempt.holder };
  if (attempt.outcome === "not-now") return { kind: "starting" };
  return { kind: "unusable", pid, endpoint, certain, reason: `it does not answer (${attempt.reason})` };
}

/** Launches a server where clients already look for it, or at a new place that goes again if that fails. */
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

/** Stops a server that an earlier run left behind and that is of no use. */
async function retire(
  cluster: Cluster,
  server: { pid: number; endpoint: Endpoint | undefined; reason: string },
  onProgress: (line: string) => void,
): Promise<void> {
  onProgress(`stopping a Postgres (pid ${server.pid}) left by an earlier run: ${server.reason}`);
  await stopPostmaster(cluster, server.pid);
  if (server.endpoint !== undefined) await removeEndpoint(server.endpoint, cluster.runAs);
}

/** Clears up after a launch that came to nothing, e.g. because another process launched first. */
async function abandon(cluster: Cluster, launch: Launched, known: Endpoint | undefined): Promise<void> {
  await waitUntilGone(launch.pid, LAUNCH_MS_MAX);
  if (known === undefined) await removeEndpoint(launch.endpoint, cluster.runAs);
}

/** The first things to do with the lock. */
async function moveIn(cluster: Cluster, lock: Lock, token: string): Promise<void> {
  try {
    await noteOwner(cluster.dataDir, token);
    await ensureDatabase(lock);
  } catch (error) {
    await lock.client.end();
    const words = messageOf(error);
    throw await postgresTrouble("The database could not be made ready.", words, cluster.dataDir);
  }
}

async function originOf(launch: Launch): Promise<"started" | "recovered"> {
  return RECOVERY.test(await launch.words()) ? "recovered" : "started";
}

function unsure(cluster: Cluster, { pid, reason }: { pid: number; reason: string }): OperatorError {
  return new OperatorError(
    `Process ${pid} seems to be the Postgres of ${cluster.dir}, but ${reason}. End that process, then start Millrace again.`,
  );
}

/** How long the same kind has been seen without a break. */
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
