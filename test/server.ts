/** Runs the built server in its own process, which a test may stop, kill or suspend. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { ADMIN_KEY } from "./admin-key.ts";
import { type Api, api } from "./client.ts";

const CLI = fileURLToPath(new URL("../dist/bin/millrace.js", import.meta.url));

export interface ServerOptions {
  /** The Postgres to use, or the data directory of an embedded one. */
  database: { url: string } | { dataDir: string };
  env?: Record<string, string>;
}

export interface Server {
  url: string;
  adminKey: string;
  /** With the admin key. */
  api: Api;
  pid: number;
  /** Its output so far. */
  output(): string;
  /** The log lines with this message. */
  logged(message: string): Record<string, unknown>[];
  kill(signal: NodeJS.Signals): void;
  /** Its exit code, or the signal that ended it. */
  exited: Promise<number | NodeJS.Signals>;
  /** SIGTERM, and the exit code. */
  stop(): Promise<number | NodeJS.Signals>;
}

/** Resolves when the server is ready. It is killed at the end of the test. */
export async function startServer({ database, env = {} }: ServerOptions): Promise<Server> {
  const child = spawn(process.execPath, [CLI, "serve"], {
    cwd: fileURLToPath(new URL(".", import.meta.url)),
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"],
      TMPDIR: process.env["TMPDIR"],
      MILLRACE_PORT: "0",
      MILLRACE_ADMIN_KEY: ADMIN_KEY,
      ...("url" in database ? { DATABASE_URL: database.url } : { MILLRACE_DATA_DIR: database.dataDir }),
      ...env,
    },
  });
  const exited = exitOf(child);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });

  const lines: string[] = [];
  const log: Record<string, unknown>[] = [];
  const ready = new Promise<string>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        lines.push(line);
        if (!line.startsWith("{")) return;
        const entry = JSON.parse(line) as Record<string, unknown>;
        log.push(entry);
        if (entry["msg"] === "millrace is ready") resolve(String(entry["url"]));
      });
    }
  });
  const output = () => lines.join("\n");
  const url = await Promise.race([
    ready,
    exited.then((code) => Promise.reject(new Error(`the server ended with ${code} before it was ready:\n${output()}`))),
  ]);

  return {
    url,
    adminKey: ADMIN_KEY,
    api: api(url, ADMIN_KEY),
    pid: child.pid as number,
    output,
    logged: (message) => log.filter(({ msg }) => msg === message),
    kill: (signal) => child.kill(signal),
    exited,
    stop() {
      child.kill("SIGTERM");
      return exited;
    },
  };
}

async function exitOf(child: ChildProcess): Promise<number | NodeJS.Signals> {
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return code ?? (signal as NodeJS.Signals);
}
