/**
 * What the operating system knows about a process id. Ids get reused, so a number from a file is only a rumour until
 * the command line or the start time of the process confirms it.
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { errorCode } from "./failure.ts";

const POLL_MS = 10;

/** A zombie counts as gone: it holds nothing, and under an init that does not reap it would seem to live for ever. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, under another user.
    return errorCode(error) === "EPERM";
  }
  return process.platform !== "linux" || readStat(pid)?.state !== "Z";
}

/** True once the process is gone, false when it still lives after `limitMs`. */
export async function waitUntilGone(pid: number, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (isAlive(pid)) {
    if (performance.now() > deadline) return false;
    await sleep(POLL_MS);
  }
  return true;
}

/** Differs between two processes that had the same id. Undefined where the system does not tell. */
export function startTime(pid: number): string | undefined {
  return process.platform === "linux" ? readStat(pid)?.startTicks : ps(pid, "lstart=");
}

/** Is this process a Postgres that works on `clusterDir`? */
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
  // The name of the program comes second, in parentheses, and may hold anything; the fields after it are plain.
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
