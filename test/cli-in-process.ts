/**
 * Runs `millrace` commands in the test's own process: a process of its own costs 0.2 s of processor time, of which the command
 * takes a tenth. The names of `process` in `REDIRECTED` are the command's own; all others are those of the worker.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { EventEmitter } from "node:events";
import { Readable, Writable } from "node:stream";
import { onTestFinished } from "vitest";
import { main } from "../src/cli/main.ts";
import { ADMIN_KEY } from "./admin-key.ts";

export interface EndedCommand {
  exit: number;
  stdout: string;
  stderr: string;
}

export interface RunningCommand {
  stdout(): string;
  stderr(): string;
  /** Rejected if the command called `process.exit`. */
  ended: Promise<EndedCommand>;
}

/** What `process` is for one command. No stream is a terminal, and standard input is empty. */
const REDIRECTED = ["env", "stdout", "stderr", "stdin", "exit", "on", "once", "off"] as const;
type CommandProcess = Pick<NodeJS.Process, (typeof REDIRECTED)[number]>;

const current = new AsyncLocalStorage<CommandProcess>();
let running = 0;
for (const name of REDIRECTED) redirect(name);

/** Starts `millrace` with these arguments. Its environment has only PATH, TMPDIR and what is given. */
export function startCommand(words: readonly string[], env: Record<string, string> = {}): RunningCommand {
  const stdout = collector();
  const stderr = collector();
  const signals = new EventEmitter();
  let exited: Error | undefined;
  const own = {
    env: { PATH: process.env["PATH"], TMPDIR: process.env["TMPDIR"], ...env },
    stdout: stdout.stream,
    stderr: stderr.stream,
    stdin: Readable.from([]),
    exit: (code?: number) => {
      const line = ["millrace", ...words].join(" ");
      exited = new Error(`\`${line}\` called process.exit(${code}), which would end the tests: run it with startCli.`);
      throw exited;
    },
    on: signals.on.bind(signals),
    once: signals.once.bind(signals),
    off: signals.off.bind(signals),
  };
  async function run(): Promise<EndedCommand> {
    const exit = await main(words);
    if (exited) throw exited;
    return { exit, stdout: stdout.text(), stderr: stderr.text() };
  }
  let isRunning = true;
  running += 1;
  const ended = current.run(own as unknown as CommandProcess, run).finally(() => {
    isRunning = false;
    running -= 1;
    if (running === 0) current.disable(); // As long as it is in use, each `await` of the worker takes twice as long.
  });
  onTestFinished(async () => {
    if (!isRunning) return;
    signals.emit("SIGTERM", "SIGTERM"); // For one that follows something for ever.
    await ended;
  });
  return { stdout: stdout.text, stderr: stderr.text, ended };
}

/** Runs `millrace` with these arguments to its end. */
export function runCli(words: readonly string[], env: Record<string, string> = {}): Promise<EndedCommand> {
  return startCommand(words, env).ended;
}

/** Runs `millrace` with these arguments against the server, with the admin key. */
export function cliFor(server: { url: string }): (...words: string[]) => Promise<EndedCommand> {
  return (...words) => runCli(words, { MILLRACE_URL: server.url, MILLRACE_KEY: ADMIN_KEY });
}

function collector(): { stream: Writable; text(): string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString("utf8") };
}

/** Inside of a command `process[name]` is that of the command, elsewhere what it was, or what somebody has set since. */
function redirect(name: keyof CommandProcess): void {
  const before = Object.getOwnPropertyDescriptor(process, name) ?? { value: process[name] };
  let { value } = before as { value?: unknown };
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: true,
    get: () => current.getStore()?.[name] ?? (before.get ? before.get.call(process) : value),
    set: (next: unknown) => {
      value = next;
    },
  });
}
