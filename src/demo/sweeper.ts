/**
 * Removes what a demo that was killed leaves behind: its Postgres, which would go on alone, and its folder. It is a process
 * of its own that listens to the demo's end of a pipe, which the kernel closes however the demo ends.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export interface Sweeper {
  /** Sends it away, once there is nothing left to remove. */
  dismiss(): Promise<void>;
}

const PROGRAM = fileURLToPath(import.meta.url);

export function startSweeper(folder: string): Sweeper {
  const child = spawn(process.execPath, [...process.execArgv, PROGRAM, folder], {
    stdio: ["pipe", "ignore", "ignore"],
    // Ctrl-C in the terminal reaches the whole group of the demo, and must not reach this.
    detached: true,
  });
  const ended = once(child, "close").catch(() => undefined); // It could not be started: the demo goes without.
  child.stdin.on("error", () => undefined);
  child.unref();
  return {
    async dismiss() {
      child.stdin.end();
      await ended;
    },
  };
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

async function sweep(folder: string): Promise<void> {
  for await (const _ of process.stdin); // Nothing is ever written: this is the wait for its end.
  if (!existsSync(folder)) return;
  try {
    const { startEmbeddedPostgres } = await import("../kernel/embedded-postgres/index.ts");
    const postgres = await startEmbeddedPostgres({ dataDir: folder }); // Adopts the one that runs.
    await postgres.stop();
  } finally {
    await removeFolder(folder);
  }
}

const [, program, folder] = process.argv;
if (program === PROGRAM && folder !== undefined) await sweep(folder);
