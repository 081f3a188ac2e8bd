/** Runs a command of the user's for one item: passes its output through, remembers the last thing it complained of, ends it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";

export interface RunningCommand {
  /** Nothing when it succeeded, otherwise why it failed. Throws when it could not be started at all. */
  failure: Promise<string | undefined>;
  /** Asks it to end, and makes it end when it does not. */
  terminate(): void;
  /** Ends it at once. */
  kill(): void;
}

/** From being asked to end to being made to. */
const TERMINATE_GRACE_MS = 5_000;
/** A process that the command left behind can keep its error output open for ever. */
const DRAIN_MS_MAX = 1_000;
const TAIL_LENGTH = 8_192;
/** As long as the server keeps it. */
const FAILURE_LENGTH_MAX = 2_000;

export function runCommand([program = "", ...args]: readonly string[], env: NodeJS.ProcessEnv): RunningCommand {
  const child = spawn(program, args, {
    env,
    stdio: ["ignore", "inherit", "pipe"],
    // A group of its own: Ctrl-C in the terminal must reach us and not the command, which is to finish; and ending the
    // group ends whatever the command has started.
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

/** The last line that says something, without colours and other control characters. */
function lastLine(text: string): string | undefined {
  const lines = stripVTControlCharacters(text)
    .split(/[\r\n]+/)
    // oxlint-disable-next-line no-control-regex -- they are what it is about
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
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // It has just ended by itself.
  }
}
