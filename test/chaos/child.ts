/** Runs a script of this folder in its own process: commands on standard input, lines of JSON on standard output. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { Server } from "../server.ts";

export interface Child<Line> {
  pid: number;
  /** Its output so far. */
  output: readonly Line[];
  /** The next line of output. */
  next(): Promise<Line>;
  send(line: string): void;
  kill(signal: NodeJS.Signals): void;
  /** Ends its standard input, and waits for it to exit by itself: its exit code. */
  finish(): Promise<number | null>;
}

/** It is killed at the end of the test, even if it is suspended. */
export function startChild<Line>(script: string, args: readonly string[], server: Server): Child<Line> {
  const child = spawn(process.execPath, [fileURLToPath(new URL(script, import.meta.url)), ...args], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { PATH: process.env["PATH"], MILLRACE_URL: server.url, MILLRACE_KEY: server.adminKey },
  });
  const exited = once(child, "close").then(([code]: (number | null)[]) => code ?? null);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });

  const output: Line[] = [];
  let waitedFor = 0;
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => output.push(JSON.parse(line) as Line));
  return {
    pid: child.pid as number,
    output,
    async next() {
      const index = waitedFor;
      waitedFor += 1;
      while (output.length <= index) {
        const line = await Promise.race([once(lines, "line"), exited]);
        if (!Array.isArray(line)) throw new Error(`${script} ended with ${line} without further output`);
      }
      return output[index] as Line;
    },
    send: (line) => void child.stdin.write(`${line}\n`),
    kill: (signal) => void child.kill(signal),
    async finish() {
      child.stdin.end();
      return exited;
    },
  };
}
