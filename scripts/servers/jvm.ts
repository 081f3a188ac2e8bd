/** A server in a JVM: started, waited for, and stopped, also when the script is interrupted. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const START_TIMEOUT_MS = 180_000;
const STOP_TIMEOUT_MS = 20_000;
const POLL_MS = 500;
const LOG_LINES_SHOWN = 20;

interface JvmOptions {
  folder: string;
  isReady(): Promise<boolean>;
  log(line: string): void;
}

export async function startJvm(
  [java = "java", ...args]: readonly string[],
  { folder, isReady, log }: JvmOptions,
): Promise<{ stop(): Promise<void> }> {
  const logFile = join(folder, "server.log");
  const output = openSync(logFile, "w");
  const child = spawn(java, args, { cwd: folder, stdio: ["ignore", output, output] });
  closeSync(output);
  const interrupted = () => void stop(child).then(() => process.exit(130));
  process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
  const started = performance.now();
  while (!(await isReady().catch(() => false))) {
    const hasEnded = child.exitCode !== null || child.signalCode !== null;
    if (hasEnded || performance.now() - started > START_TIMEOUT_MS) {
      await stop(child);
      const lines = (await readFile(logFile, "utf8")).trimEnd().split("\n").slice(-LOG_LINES_SHOWN);
      throw new Error(
        `The server ${hasEnded ? "ended" : "did not start in time"}. Its log ends with:\n${lines.join("\n")}`,
      );
    }
    await sleep(POLL_MS);
  }
  log(`  it is up after ${((performance.now() - started) / 1_000).toFixed(0)} s`);
  return {
    async stop() {
      process.off("SIGINT", interrupted).off("SIGTERM", interrupted);
      await stop(child);
    },
  };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(timer);
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("there is no free port");
  return address.port;
}
