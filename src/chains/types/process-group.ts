/**
 * Runs a program in its own process group, so that it can be ended together with everything it started. When `runInGroup`
 * returns, no process of the group is left. If Millrace itself is killed, a guard process ends the group.
 *
 * A program that leaves the group on purpose (`setsid`) is not ended.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

export interface GroupOptions {
  cwd: string | undefined;
  env: Record<string, string>;
  /** Ends the group when aborted. */
  signal: AbortSignal;
  /** From SIGTERM to SIGKILL. */
  killAfterMs: number;
  onStdout(text: string): void;
  onStderr(text: string): void;
}

export interface GroupEnd {
  /** Null if a signal ended the program. */
  code: number | null;
  signal: NodeJS.Signals | null;
  /** The program ended and left other processes running, which were then ended. */
  leftOthers: boolean;
}

const LOOK_EVERY_MS_MIN = 5;
const LOOK_EVERY_MS_MAX = 100;
/** Children of the program may end a little later than the program, such as a `tee` that writes the last lines. */
const LEFTOVER_GRACE_MS = 500;
/** A process that left the group may keep the pipes open; the output of the program itself is read within this time. */
const DRAIN_MS = 1_000;

/** Rejects with the system's error if the program cannot be started. */
export async function runInGroup(program: string, args: string[], options: GroupOptions): Promise<GroupEnd> {
  const { cwd, env, signal, killAfterMs } = options;
  const guard = await startGuard(env["PATH"]);
  try {
    const child = spawn(program, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const group = await idOf(child);
    guard.watch(group);
    const closed = eventOf(child, "close");
    child.stdout.setEncoding("utf8").on("data", options.onStdout);
    child.stderr.setEncoding("utf8").on("data", options.onStderr);
    await exitOrAbort(child, signal);
    const leftOthers = !signal.aborted && !(await isGoneWithin(group, LEFTOVER_GRACE_MS));
    if (signal.aborted || leftOthers) await endGroup(group, killAfterMs);
    await Promise.race([closed, sleep(DRAIN_MS, undefined, { ref: false })]);
    child.stdout.destroy();
    child.stderr.destroy();
    return { code: child.exitCode, signal: child.signalCode, leftOthers };
  } finally {
    await guard.dismiss();
  }
}

/** The first line is the group's id, a second one dismisses the guard. If the pipe closes without it, Millrace is dead. */
const GUARD = `
  read -r group || exit 0
  read -r done && exit 0
  kill -s TERM -- "-$group" || exit 0
  for second in 1 2 3 4 5; do sleep 1; kill -s 0 -- "-$group" || exit 0; done
  kill -s KILL -- "-$group"
`;

async function startGuard(path = "") {
  const env = { PATH: path };
  const guard = spawn("/bin/sh", ["-c", GUARD], { env, detached: true, stdio: ["pipe", "ignore", "ignore"] });
  await idOf(guard);
  const gone = eventOf(guard, "exit");
  // The guard may have been killed. Then only this process ends the group.
  guard.stdin.on("error", () => undefined);
  return {
    watch: (group: number) => void guard.stdin.write(`${group}\n`),
    async dismiss(): Promise<void> {
      guard.stdin.end("done\n");
      await gone;
    },
  };
}

async function idOf(child: ChildProcess): Promise<number> {
  if (child.pid === undefined) await once(child, "spawn");
  if (child.pid === undefined) throw new Error("a process that was started has no id");
  return child.pid;
}

function eventOf(child: ChildProcess, event: "exit" | "close"): Promise<void> {
  return new Promise((resolve) => {
    child.once(event, () => resolve());
  });
}

async function exitOrAbort(child: ChildProcess, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { signal: over.signal });
  });
  await Promise.race([eventOf(child, "exit"), aborted]);
  over.abort();
}

async function endGroup(group: number, killAfterMs: number): Promise<void> {
  signalGroup(group, "SIGTERM");
  if (await isGoneWithin(group, killAfterMs)) return;
  signalGroup(group, "SIGKILL");
  await isGoneWithin(group, DRAIN_MS);
}

async function isGoneWithin(group: number, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  for (let pause = LOOK_EVERY_MS_MIN; isGroupAlive(group); pause = Math.min(2 * pause, LOOK_EVERY_MS_MAX)) {
    const left = deadline - performance.now();
    if (left <= 0) return false;
    await sleep(Math.min(pause, left));
  }
  return true;
}

function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch (error) {
    // It ended meanwhile.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Zombies count as ended: as PID 1 of a container, Millrace inherits them and nothing reaps them. */
function isGroupAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch {
    return false;
  }
  return process.platform !== "linux" || readdirSync("/proc").some((pid) => isLivingMember(pid, group));
}

function isLivingMember(pid: string, group: number): boolean {
  if (!/^\d+$/.test(pid)) return false;
  try {
    // The second field is the program's name in parentheses, which may contain anything; then state, parent, group.
    const [state, , pgrp] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return Number(pgrp) === group && state !== "Z";
  } catch {
    return false;
  }
}
