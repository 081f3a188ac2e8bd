/** The built server, as many processes as a measure wants, on the Postgres of the benchmark. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Api, api } from "../test/client.ts";
import { urlOf } from "./connection-url.ts";
import type { BenchPostgres } from "./postgres.ts";

const CLI = fileURLToPath(new URL("../dist/bin/millrace.js", import.meta.url));
const KEY = "a-key-that-only-the-benchmark-knows";
/** As pino counts. */
const ERROR = 50;

export interface Millrace {
  url: string;
  key: string;
  api: Api;
  stop(): Promise<void>;
}

interface ServerOptions {
  /** Sources may be called at these addresses. */
  sources?: readonly { baseUrl: string }[];
  slots?: number;
  /** Windows land, in a folder. */
  lake?: boolean;
}

export async function startMillrace({ connection }: BenchPostgres, options: ServerOptions = {}): Promise<Millrace> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-bench-"));
  const config = join(folder, "millrace.yaml");
  const settings = { bodies: join(folder, "bodies"), slots: options.slots ?? 16 };
  await writeFile(config, JSON.stringify({ harvest: settings }));
  const profile = process.env["BENCH_CPU_PROF_DIR"];
  const flags = profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
  const child = spawn(process.execPath, [...flags, CLI, "serve"], {
    stdio: ["ignore", "inherit", "pipe"],
    env: {
      PATH: process.env["PATH"],
      DATABASE_URL: urlOf(connection),
      MILLRACE_PORT: "0",
      MILLRACE_ADMIN_KEY: KEY,
      MILLRACE_CONFIG: config,
      ...(options.lake ? { MILLRACE_LAKE_DIR: join(folder, "lake") } : {}),
      MILLRACE_HARVEST_ALLOW_PRIVATE: (options.sources ?? []).map(({ baseUrl }) => new URL(baseUrl).host).join(","),
    },
  });
  const exited = once(child, "exit");
  const url = await Promise.race([
    readyUrl(child.stderr),
    exited.then(() => Promise.reject(new Error("the server ended before it was ready"))),
  ]);
  return {
    url,
    key: KEY,
    api: api(url, KEY),
    async stop() {
      child.kill("SIGTERM");
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Errors that the server logs are shown. */
function readyUrl(output: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => {
    createInterface({ input: output }).on("line", (line) => {
      const entry = line.startsWith("{")
        ? (JSON.parse(line) as { level: number; msg: string; url: string })
        : undefined;
      if (entry?.msg === "millrace is ready") resolve(entry.url);
      else if ((entry?.level ?? ERROR) >= ERROR) console.error(line);
    });
  });
}
