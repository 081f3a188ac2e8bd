/**
 * Runs the built CLI in its own process, which is killed at the end of the test if it still runs. Only for tests of what a process
 * does: signals, standard input, pipes, its start and its end. The others run commands with `cli-in-process.ts`.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const CLI = fileURLToPath(new URL("../dist/bin/millrace.js", import.meta.url));

export interface Ended {
  /** Its exit code, or the signal that ended it. */
  exit: number | NodeJS.Signals;
  stdout: string;
  stderr: string;
}

export type OnFinished = (release: () => Promise<void>) => void;

export interface RunningCli {
  pid: number;
  stdout(): string;
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  ended: Promise<Ended>;
}

/**
 * Starts `millrace` with these arguments. Its environment has only PATH, TMPDIR and what is given. A concurrent test passes the
 * `onTestFinished` of its context, because the imported one does not know which test it belongs to.
 */
export function startCli(
  words: readonly string[],
  env: Record<string, string> = {},
  onFinished: OnFinished = onTestFinished,
): RunningCli {
  const all = environment(env);
  return observe(
    spawn(process.execPath, [CLI, ...words], { stdio: ["ignore", "pipe", "pipe"], env: all, detached: true }),
    onFinished,
  );
}

/** Starts a bash script in which `millrace` is the built command. A signal goes to all processes of the script. */
export function startScript(
  script: string,
  env: Record<string, string> = {},
  onFinished: OnFinished = onTestFinished,
): RunningCli {
  const preamble = 'millrace() { "$NODE" "$CLI" "$@"; }\n';
  const all = environment({ ...env, NODE: process.execPath, CLI });
  const words = ["-c", preamble + script];
  return observe(spawn("bash", words, { stdio: ["ignore", "pipe", "pipe"], env: all, detached: true }), onFinished);
}

function environment(env: Record<string, string>): NodeJS.ProcessEnv {
  return { PATH: process.env["PATH"], TMPDIR: process.env["TMPDIR"], ...env };
}

function observe(child: ChildProcessByStdio<null, Readable, Readable>, onFinished: OnFinished): RunningCli {
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(child, "close").then((result): Ended => {
    const [code, signal] = result as [number | null, NodeJS.Signals];
    return { exit: code ?? signal, stdout, stderr };
  });
  /** Sends the signal to the whole process group. */
  function kill(signal: NodeJS.Signals): void {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), signal);
  }
  onFinished(async () => {
    kill("SIGKILL");
    await ended;
  });
  return {
    pid: child.pid as number,
    stdout: () => stdout,
    stderr: () => stderr,
    kill,
    ended,
  };
}
