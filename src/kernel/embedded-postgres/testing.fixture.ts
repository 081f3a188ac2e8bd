/**
 * Shared by the tests of this folder: temporary data directories, Millraces in separate processes that can be killed, and queries.
 * Everything is ended and removed after the test.
 */

import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { inject, onTestFinished } from "vitest";
import { programOf } from "../../../test/program.ts";
import { BINARIES_PREFIX } from "./binaries.ts";
import type { Reply } from "./child.fixture.ts";
import { type EmbeddedPostgres, type EmbeddedPostgresOptions, startEmbeddedPostgres } from "./index.ts";
import { waitUntilGone } from "./processes.ts";

export const isRoot = process.getuid?.() === 0;

/** A folder that is removed after the test, together with any server that still runs in it. Every user can traverse it. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-test-"));
  await chmod(folder, 0o755);
  onTestFinished(async () => {
    await endPostmastersBelow(folder);
    await rm(folder, { recursive: true, force: true });
  });
  return folder;
}

/** A data directory with a stopped cluster. Copying a cluster takes a tenth of the time of creating one. */
export async function stoppedDataDir(): Promise<string> {
  const folder = await temporaryFolder();
  execFileSync("cp", ["-a", join(inject("stoppedDataDir"), "postgres"), folder]);
  return folder;
}

/** A small disk, for tests of a full or read-only one. */
export async function smallDisk(megabytes: number): Promise<{ path: string; remountReadOnly: () => void }> {
  const path = await mkdtemp(join(tmpdir(), "millrace-test-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=755`, "tmpfs", path]);
  onTestFinished(async () => {
    await endPostmastersBelow(path);
    execFileSync("umount", [path]);
    await rm(path, { recursive: true });
  });
  return { path, remountReadOnly: () => void execFileSync("mount", ["-o", "remount,ro", path]) };
}

/** Why the tests that mount a disk cannot run here, if so. */
export function whyNoMount(): string | undefined {
  if (!isRoot || process.platform !== "linux") return "only root on Linux can mount a small disk";
  const path = mkdtempSync(join(tmpdir(), "millrace-test-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", path], { stdio: "ignore" });
    execFileSync("umount", [path]);
    return undefined;
  } catch {
    return "mounting is not permitted here";
  } finally {
    rmSync(path, { recursive: true });
  }
}

/** Prints why some tests are skipped. */
export function skipped(reason: string | undefined, what: string): boolean {
  if (reason !== undefined) console.log(`skipped: ${what}, because ${reason}`);
  return reason !== undefined;
}

/** Starts Postgres in this process and stops it after the test. */
export async function start(dataDir: string, more: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> {
  const postgres = await startEmbeddedPostgres({ dataDir, ...more });
  onTestFinished(() => postgres.stop());
  return postgres;
}

export interface Millrace {
  process: ChildProcess;
  /** Its first report: that it is ready, or why it is not. */
  reply: Promise<Reply>;
}

export interface SpawnOptions {
  /** Another copy of `child.fixture.ts`. */
  program?: string;
  uid?: number;
  gid?: number;
}

const CHILD = await programOf(fileURLToPath(new URL("child.fixture.ts", import.meta.url)));

/** Another Millrace, in a separate process. */
export function spawnMillrace(dataDir: string, { program = CHILD, ...identity }: SpawnOptions = {}): Millrace {
  const child = fork(program, [dataDir], {
    ...identity,
    cwd: dirname(program),
    execArgv: program.endsWith(".ts") ? ["--import", import.meta.resolve("tsx")] : [],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  onTestFinished(() => kill(child));
  const reply = Promise.race([
    once(child, "message").then(([message]: Reply[]) => message),
    once(child, "exit").then(() => undefined),
  ]).then((message) => message ?? { failed: "it exited without a word" });
  return { process: child, reply };
}

/** A Millrace that is up, or a failed test. */
export async function readyMillrace(
  dataDir: string,
  options: SpawnOptions = {},
): Promise<{ process: ChildProcess } & Extract<Reply, { pid: number }>> {
  const { process, reply } = spawnMillrace(dataDir, options);
  const answer = await reply;
  if (!("pid" in answer)) throw new Error(answer.failed);
  return { process, ...answer };
}

/** kill -9, and not back before the kernel has buried it. */
export async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** kill -9 for a process that is not our child. */
export async function end(pid: number): Promise<void> {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    return;
  }
  if (!(await waitUntilGone(pid, 10_000))) throw new Error(`process ${pid} does not die`);
}

export async function query<Row extends object>(
  connection: EmbeddedPostgres["connection"],
  sql: string,
): Promise<Row[]> {
  const client = new Client(connection);
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Suspends a backend, so that it outlives its server and keeps the shared memory in use. */
export async function freezeBackend(connection: EmbeddedPostgres["connection"]): Promise<number> {
  const client = new Client(connection);
  client.on("error", () => undefined);
  await client.connect();
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const pid = rows[0]?.pid ?? 0;
  onTestFinished(async () => {
    await end(pid);
    await client.end();
  });
  process.kill(pid, "SIGSTOP");
  return pid;
}

export function postmasterPidFile(dataDir: string): string {
  return join(dataDir, "postgres", "postmaster.pid");
}

/** The server that the pid file names. */
export function postmasterPid(dataDir: string): number {
  return Number(readFileSync(postmasterPidFile(dataDir), "utf8").split("\n")[0]);
}

async function endPostmastersBelow(folder: string): Promise<void> {
  const processes = execFileSync("ps", ["-A", "-ww", "-o", "pid=,command="], { encoding: "utf8" }).split("\n");
  for (const line of processes.filter((process) => process.includes(`postgres -D ${folder}/`))) {
    await end(Number.parseInt(line, 10));
    const socketDir = /unix_socket_directories="([^"]+)"/.exec(line)?.[1];
    if (socketDir !== undefined) await rm(socketDir, { recursive: true, force: true });
  }
}

/** The names in a folder, without the copy of the Postgres programs, which only root in a private checkout needs. */
export function namesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => !name.startsWith(BINARIES_PREFIX))
    .sort();
}
