/**
 * Stops the Postgres of a demo that was killed, and removes its folder. A separate process that reads from a pipe of the demo:
 * the operating system closes the pipe however the demo ends.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export interface CleanupProcess {
  /** Ends the process, after the demo has cleaned up itself. */
  end(): Promise<void>;
}

const PROGRAM = fileURLToPath(import.meta.url);

export function startCleanupProcess(folder: string): CleanupProcess {
  const child = spawn(process.execPath, [...process.execArgv, PROGRAM, folder], {
    stdio: ["pipe", "ignore", "ignore"],
    // Ctrl-C in the terminal reaches the process group of the demo and must not end this process.
    detached: true,
  });
  const ended = once(child, "close").catch(() => undefined); // If it cannot be started, the demo runs without it.
  child.stdin.on("error", () => undefined);
  child.unref();
  return {
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

async function cleanUp(folder: string): Promise<void> {
  for await (const _ of process.stdin); // Nothing is ever written: this waits for the end of the pipe.
  if (!existsSync(folder)) return;
  try {
    const { startEmbeddedPostgres } = await import("../kernel/embedded-postgres/index.ts");
    const postgres = await startEmbeddedPostgres({ dataDir: folder }); // Adopts the running one.
    await postgres.stop();
  } finally {
    await removeFolder(folder);
  }
}

const [, program, folder] = process.argv;
if (program === PROGRAM && folder !== undefined) await cleanUp(folder);
