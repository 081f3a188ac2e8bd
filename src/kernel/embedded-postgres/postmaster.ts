/**
 * Finds the server process through its pid file, launches it and stops it. It runs in a separate session, so that Ctrl-C in the
 * terminal reaches only Millrace, which then shuts it down cleanly.
 */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { OperatorError } from "../errors.ts";
import { writeAccess } from "./access.ts";
import { type Cluster, toolOptions, unrunnable } from "./cluster.ts";
import { type Endpoint, endpointSettings } from "./endpoint.ts";
import { absentIsUndefined, errorCode, explained } from "./failure.ts";
import { readLog } from "./log-file.ts";
import { isAlive, runsPostgres, waitUntilGone } from "./processes.ts";
import { FINGERPRINT_SETTING, toArguments } from "./settings.ts";

const PID_FILE = "postmaster.pid";

export type Found =
  /** No server runs. `endpoint` is where the last one listened; `reusedPid` now belongs to another program. */
  | { state: "absent"; endpoint?: Endpoint; reusedPid?: number }
  /** The pid file is empty or malformed: it is being written, or a crash left it so. */
  | { state: "malformed" }
  /** `endpoint` and `status` are set during startup. `certain`: its command line names this cluster. */
  | { state: "running"; pid: number; certain: boolean; endpoint: Endpoint | undefined; status: string | undefined };

/** Looks for the server of this cluster. `ownPid` is our own child, which needs no check of its command line. */
export async function findPostmaster(cluster: Cluster, ownPid: number | undefined): Promise<Found> {
  const content = await readFile(join(cluster.dir, PID_FILE), "utf8").catch(absentIsUndefined);
  if (content === undefined) return { state: "absent" };
  const [first = "", , , port = "", socketDir = "", address = "", , status] = content.split("\n");
  if (!isPid(first)) return { state: "malformed" };
  const pid = Math.abs(Number(first));

  const endpoint = parseEndpoint(port, socketDir, address);
  if (!isAlive(pid)) return { state: "absent", ...(endpoint && { endpoint }) };
  const runs = pid === ownPid ? "yes" : runsPostgres(pid, cluster.dir);
  if (runs === "no") return { state: "absent", ...(endpoint && { endpoint }), reusedPid: pid };
  if (first.startsWith("-")) {
    throw new OperatorError(
      `A single-user Postgres (pid ${pid}) uses ${cluster.dir}. Wait until it ends, then start Millrace again.`,
    );
  }
  return { state: "running", pid, certain: runs === "yes", endpoint, status: status?.trim() || undefined };
}

/** A negative id is a single-user backend. `kill` with zero would signal our own process group. */
function isPid(line: string): boolean {
  return /^-?[1-9]\d{0,9}$/.test(line);
}

function parseEndpoint(port: string, socketDir: string, address: string): Endpoint | undefined {
  if (!/^\d+$/.test(port)) return undefined;
  if (socketDir !== "") return { transport: "socket", host: socketDir, port: Number(port) };
  return address === "" ? undefined : { transport: "loopback", host: address, port: Number(port) };
}

/**
 * Postgres refuses to start with a malformed pid file, so it is removed. It is renamed and read again before it is
 * deleted: if a server wrote a valid one in between, it is restored.
 */
export async function discardMalformedPidFile(cluster: Cluster): Promise<void> {
  const path = join(cluster.dir, PID_FILE);
  const aside = `${path}.malformed`;
  await rename(path, aside);
  const [first = ""] = (await readFile(aside, "utf8")).split("\n");
  if (isPid(first)) await rename(aside, path);
  else await rm(aside);
}

/** A server that this process launched. It exits if another process launched one first. */
export interface Launch {
  pid: number;
  hasExited(): boolean;
  /** What it has written to the log. */
  output(): Promise<string>;
}

export async function launchPostmaster(
  cluster: Cluster,
  endpoint: Endpoint,
  reusedPid: number | undefined,
): Promise<Launch> {
  await writeAccess(cluster);
  const log = await explained(cluster.dataDir, () => open(cluster.logFile, "a", 0o600));
  try {
    const { size: offset } = await log.stat();
    const settings = {
      ...cluster.settings,
      ...endpointSettings(endpoint),
      [FINGERPRINT_SETTING]: cluster.fingerprint,
    };
    const options = toolOptions(cluster);
    const child = spawn(join(cluster.binaries.dir, "postgres"), ["-D", cluster.dir, ...toArguments(settings)], {
      ...options,
      // Postgres takes the pid file of a dead server for a live one if the same user reused the pid. This variable tells it
      // that the pid is not a server (miscinit.c, CreateLockFile).
      env: reusedPid === undefined ? options.env : { ...options.env, PG_GRANDPARENT_PID: String(reusedPid) },
      detached: true,
      stdio: ["ignore", log.fd, log.fd],
    });
    let exited = false;
    child.once("exit", () => {
      exited = true;
    });
    await once(child, "spawn").catch((error: unknown) => {
      throw unrunnable(error, cluster);
    });
    child.unref();
    if (child.pid === undefined) throw new Error("a spawned process has a pid");
    return { pid: child.pid, hasExited: () => exited, output: () => readLog(cluster.logFile, offset) };
  } finally {
    await log.close();
  }
}

/** A fast shutdown writes a checkpoint, which can take this long on a slow disk. */
const FAST_MS_MAX = 30_000;
/** In an immediate shutdown, Postgres kills children that are still alive after 5 s. */
const IMMEDIATE_MS_MAX = 10_000;

/**
 * Stops the server: first with a fast shutdown, then with an immediate one (no acknowledged write is lost; the next start
 * recovers), then with SIGKILL. Returns which one ended it.
 */
export async function stopPostmaster(cluster: Cluster, pid: number): Promise<"fast" | "immediate" | "killed"> {
  await signal(cluster, pid, "INT");
  if (await waitUntilGone(pid, FAST_MS_MAX)) return "fast";
  await signal(cluster, pid, "QUIT");
  if (await waitUntilGone(pid, IMMEDIATE_MS_MAX)) return "immediate";
  await signal(cluster, pid, "KILL");
  await waitUntilGone(pid, IMMEDIATE_MS_MAX);
  return "killed";
}

async function signal(cluster: Cluster, pid: number, name: "INT" | "QUIT" | "KILL"): Promise<void> {
  if (process.platform === "win32") {
    // Windows has no signals; pg_ctl sends them through a pipe of Postgres.
    const pgCtl = join(cluster.binaries.dir, "pg_ctl");
    await promisify(execFile)(pgCtl, ["kill", name, String(pid)]).catch(() => undefined);
    return;
  }
  try {
    process.kill(pid, `SIG${name}`);
    // A suspended process (SIGSTOP, Ctrl-Z) handles a signal only after SIGCONT.
    process.kill(pid, "SIGCONT");
  } catch (error) {
    if (errorCode(error) !== "ESRCH") throw error;
  }
}
