/**
 * Queries of the operating system about a process id. Ids are reused, so an id from a file must be confirmed by the command line
 * or the start time of the process.
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { errorCode } from "./failure.ts";

const POLL_MS = 10;

/** A zombie does not count as alive: it holds no resources, and an init that does not reap would keep it for ever. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it is alive, under another user.
    return errorCode(error) === "EPERM";
  }
  return process.platform !== "linux" || readStat(pid)?.state !== "Z";
}

/** True once the process has ended, false if it is still alive after `limitMs`. */
export async function waitUntilGone(pid: number, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (isAlive(pid)) {
    if (performance.now() > deadline) return false;
    await sleep(POLL_MS);
  }
  return true;
}

/** Differs between two processes with the same id. Undefined if the system does not provide it. */
export function startTime(pid: number): string | undefined {
  return process.platform === "linux" ? readStat(pid)?.startTicks : ps(pid, "lstart=");
}

/** Whether the process is a Postgres that runs on `clusterDir`. */
export function runsPostgres(pid: number, clusterDir: string): "yes" | "no" | "unknown" {
  if (process.platform === "linux") {
    const [program, ...rest] = readProc(pid, "cmdline")?.split("\0") ?? [];
    if (program === undefined) return "unknown";
    return basename(program) === "postgres" && rest.includes(clusterDir) ? "yes" : "no";
  }
  const command = ps(pid, "command=");
  if (command === undefined) return "unknown";
  return /^\S*postgres /.test(command) && `${command} `.includes(` ${clusterDir} `) ? "yes" : "no";
}

function readStat(pid: number): { state: string | undefined; startTicks: string | undefined } | undefined {
  // The second field is the program name in parentheses, which may contain any character.
  const fields = readProc(pid, "stat")?.split(") ").at(-1)?.split(" ");
  return fields && { state: fields[0], startTicks: fields[19] };
}

function readProc(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return undefined;
  }
}

function ps(pid: number, column: string): string | undefined {
  if (process.platform === "win32") return undefined;
  try {
    const output = execFileSync("ps", ["-ww", "-p", String(pid), "-o", column], { encoding: "utf8" }).trim();
    return output === "" ? undefined : output;
  } catch {
    return undefined;
  }
}
