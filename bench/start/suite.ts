/**
 * `npm run bench -- start`: from starting the built server to its first good answer at /readyz, with a new data directory and
 * with an existing one, and what it takes when it has nothing to do.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { buildIfStale } from "../../scripts/build-if-stale.js";
import { formatNumber, median, printTable } from "../measure.ts";

const CLI = fileURLToPath(new URL("../../dist/bin/millrace.js", import.meta.url));
const PORT = 17_400;
const URL_BASE = `http://127.0.0.1:${PORT}`;
const IDLE_SECONDS = 60;

export async function run(rounds: number): Promise<void> {
  buildIfStale();
  const fresh: number[] = [];
  const warm: number[] = [];
  const resident: number[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const dataDir = await mkdtemp(join(tmpdir(), "millrace-start-"));
    for (const times of [fresh, warm]) {
      const { server, ms } = await start(dataDir);
      times.push(ms);
      resident.push(await residentMegabytes(server));
      console.error(`round ${round}/${rounds}  ${times === fresh ? "fresh" : "warm"}: ${Math.round(ms)} ms`);
      await stop(server);
    }
    await rm(dataDir, { recursive: true, force: true });
  }
  const statements = await idleStatements();
  printTable(
    "Start and idle",
    ["measure", "", "median"],
    [
      ["fresh start to /readyz, ms", "", formatNumber(median(fresh))],
      ["warm start to /readyz, ms", "", formatNumber(median(warm))],
      ["resident memory of the server process, MB", "", formatNumber(median(resident))],
      ["statements in an idle minute", "", formatNumber(statements)],
    ],
  );
}

async function start(dataDir: string): Promise<{ server: ChildProcess; ms: number }> {
  const started = performance.now();
  const server = spawn(process.execPath, [CLI, "serve"], {
    stdio: "ignore",
    env: { PATH: process.env["PATH"], MILLRACE_PORT: String(PORT), MILLRACE_DATA_DIR: dataDir },
  });
  while (!(await isReady())) {
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`);
    await sleep(5);
  }
  return { server, ms: performance.now() - started };
}

function isReady(): Promise<boolean> {
  return fetch(`${URL_BASE}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

async function stop(server: ChildProcess): Promise<void> {
  server.kill("SIGTERM");
  await once(server, "exit");
}

async function residentMegabytes({ pid }: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

async function idleStatements(): Promise<number> {
  const dataDir = await mkdtemp(join(tmpdir(), "millrace-start-"));
  const { server } = await start(dataDir);
  const before = await statementsSoFar();
  console.error(`watching an idle server for ${IDLE_SECONDS} s`);
  await sleep(IDLE_SECONDS * 1000);
  const statements = (await statementsSoFar()) - before;
  await stop(server);
  await rm(dataDir, { recursive: true, force: true });
  return statements;
}

async function statementsSoFar(): Promise<number> {
  const metrics = await (await fetch(`${URL_BASE}/metrics`)).text();
  const counts = [...metrics.matchAll(/^millrace_db_statement_seconds_count\{.*\} (\d+)/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}
