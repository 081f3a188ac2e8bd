/**
 * Runs the tests that want a real Trino and a real Neo4j: fetches each by its Maven coordinates, starts it on loopback with a
 * small heap, runs its tests, and stops it before the next. Where one cannot be had, its tests are skipped and the reason is
 * printed. `npm run test:servers -- trino` runs one of the two.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startJvm } from "./jvm.ts";
import { neo4j } from "./neo4j.ts";
import { type Server, Unavailable } from "./server.ts";
import { trino } from "./trino.ts";

const SERVERS: readonly Server[] = [trino, neo4j];

async function tryServer(server: Server): Promise<"passed" | "failed" | "skipped"> {
  const folder = await mkdtemp(join(tmpdir(), `millrace-${server.name}-`));
  try {
    console.log(`${server.title}: fetching what is missing`);
    const { command, env, isReady } = await server.prepare(folder);
    const jvm = await startJvm(command, { folder, isReady, log: console.log });
    try {
      console.log(`${server.title}: running its tests`);
      return (await runTests(server.tests, env)) ? "passed" : "failed";
    } finally {
      await jvm.stop();
    }
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    console.log(`${server.title}: skipped. ${error.message}`);
    return "skipped";
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function runTests(files: readonly string[], env: Record<string, string>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const vitest = spawn("npx", ["vitest", "run", ...files], { stdio: "inherit", env: { ...process.env, ...env } });
    vitest.on("error", reject);
    vitest.on("exit", (code) => resolve(code === 0));
  });
}

const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !SERVERS.some((server) => server.name === name));
if (unknown !== undefined) {
  console.error(`There is no server \`${unknown}\` here. Known: ${SERVERS.map(({ name }) => name).join(", ")}.`);
  process.exit(2);
}
let hasFailed = false;
for (const server of SERVERS) {
  if (wanted.length > 0 && !wanted.includes(server.name)) continue;
  const outcome = await tryServer(server);
  if (outcome !== "skipped") console.log(`${server.title}: ${outcome}`);
  hasFailed ||= outcome === "failed";
}
process.exitCode = hasFailed ? 1 : 0;
