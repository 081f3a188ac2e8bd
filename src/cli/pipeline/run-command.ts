/** Runs a command of the user for one item: forwards its output, keeps its last line of errors, and can end it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";

export interface RunningCommand {
  /** Undefined if it succeeded, otherwise the reason. Rejects if it could not be started. */
  failure: Promise<string | undefined>;
  /** Sends SIGTERM, and SIGKILL if it does not end. */
  terminate(): void;
  /** Sends SIGKILL. */
  kill(): void;
}

/** From SIGTERM to SIGKILL. */
const TERMINATE_GRACE_MS = 5_000;
/** A background process of the command can keep its standard error open for ever. */
const DRAIN_MS_MAX = 1_000;
const TAIL_LENGTH = 8_192;
/** The server stores no more. */
const FAILURE_LENGTH_MAX = 2_000;

export function runCommand([program = "", ...args]: readonly string[], env: NodeJS.ProcessEnv): RunningCommand {
  const child = spawn(program, args, {
    env,
    stdio: ["ignore", "inherit", "pipe"],
    // A separate process group: Ctrl-C in the terminal must not reach the command, which may finish; and a signal to the
    // group also ends the command's children.
    detached: process.platform !== "win32",
  });
  return {
    failure: failureOf(child),
    terminate() {
      signalGroup(child, "SIGTERM");
      setTimeout(signalGroup, TERMINATE_GRACE_MS, child, "SIGKILL").unref();
    },
    kill: () => signalGroup(child, "SIGKILL"),
  };
}

async function failureOf(child: ChildProcess): Promise<string | undefined> {
  let tail = "";
  const { stderr } = child;
  stderr?.setEncoding("utf8");
  stderr?.on("data", (text: string) => {
    process.stderr.write(text);
    tail = (tail + text).slice(-TAIL_LENGTH);
  });
  const drained = stderr ? once(stderr, "close") : undefined;
  const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  await Promise.race([drained, sleep(DRAIN_MS_MAX, undefined, { ref: false })]);
  if (code === 0) return undefined;
  return lastLine(tail) ?? (signal === null ? `exit code ${code}` : `ended by ${signal}`);
}

/** The last line that is not blank, without control characters. */
function lastLine(text: string): string | undefined {
  const lines = stripVTControlCharacters(text)
    .split(/[\r\n]+/)
    // oxlint-disable-next-line no-control-regex -- it matches control characters
    .map((line) => line.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, " ").trim())
    .filter((line) => line !== "");
  return lines.at(-1)?.slice(0, FAILURE_LENGTH_MAX).toWellFormed();
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    if (process.platform === "win32") child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // It has already ended.
  }
}
