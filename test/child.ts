/** A child process that a test talks to line by line. It does not outlive the test. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export interface Child {
  /** The next line that it prints, as JSON. */
  next<Line>(): Promise<Line>;
  tell(line: string): void;
  kill(signal: NodeJS.Signals): void;
  pid: number;
  exited: Promise<number | null>;
}

/** Runs a script of the folder `test` with Node. */
export function startChild(script: string, args: readonly string[]): Child {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "close").then(([code]) => code as number | null);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async next() {
      const { value, done } = await lines.next();
      if (done) throw new Error(`${script} ended without another word`);
      return JSON.parse(value) as never;
    },
    tell: (line) => void child.stdin.write(`${line}\n`),
    kill: (signal) => void child.kill(signal),
    pid: child.pid as number,
    exited,
  };
}
