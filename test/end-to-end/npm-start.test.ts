/** `npm start`, as the README has it, ended by a supervisor that signals npm alone. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { stoppedDataDir } from "../../src/kernel/embedded-postgres/testing.fixture.ts";
import { until } from "../until.ts";

test("SIGTERM to npm stops the server and its Postgres", async () => {
  const dataDir = await stoppedDataDir();
  const npm = spawn("npm", ["start"], {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], MILLRACE_PORT: "0", MILLRACE_DATA_DIR: dataDir },
  });
  const log: Record<string, unknown>[] = [];
  createInterface({ input: npm.stderr }).on("line", (line) => {
    if (line.startsWith("{")) log.push(JSON.parse(line) as Record<string, unknown>);
  });
  const logged = (message: string) => log.find(({ msg }) => msg === message);
  const { pid } = (await until(() => logged("millrace is ready"), "the server to be ready")) as { pid: number };
  const { postmaster } = logged("Postgres is ready") as { postmaster: number };
  onTestFinished(() => {
    for (const left of [pid, postmaster].filter(isAlive)) process.kill(left, "SIGKILL");
  });

  npm.kill("SIGTERM");
  await once(npm, "exit");
  await until(() => !isAlive(pid) && !isAlive(postmaster), "the server and its Postgres to end");
  expect(logged("millrace has stopped")).toBeDefined();
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
