/** `millrace pipeline work` as a process: the outcomes of items, and how it ends. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { startCli } from "../../../test/cli.ts";
import { useDatabase } from "../../../test/database.ts";
import { ADMIN_KEY, useMillrace } from "../../../test/millrace.ts";
import { startServer } from "../../../test/server.ts";
import { reached, trackingTable } from "../../../test/tracking.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const server = useMillrace(database);
const table = trackingTable(database);

beforeEach(() => table.clear());

/** Starts a worker of shard-worker that runs this shell script for each item. */
function work(flags: string[], script: string, env: Record<string, string> = {}) {
  const words = ["pipeline", "work", "shard-worker", "--worker", "w1", ...flags, "--", "sh", "-c", script];
  return startCli(words, { MILLRACE_URL: server.url, MILLRACE_KEY: ADMIN_KEY, ...env });
}

/** A script that reports that it runs and waits for permission to end. It ends with the test at the latest. */
async function gate() {
  const folder = await mkdtemp(join(tmpdir(), "millrace-work-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const closed = join(folder, "closed");
  await writeFile(closed, "");
  return {
    script: `echo "running $FILENAME $SHARD"; while [ -e "${closed}" ]; do sleep 0.02; done`,
    open: () => rm(closed),
  };
}

const ready = (shards: number[], filename = "f.csv") => table.put(reached("shard-worker", "new"), { filename, shards });
const statuses = async () => (await table.rows()).map(({ shard_worker_status }) => shard_worker_status);

describe("each item", () => {
  test("is done when its command succeeds, which knows the item from its environment", async () => {
    const name = "ä 订单 $(x).csv";
    await ready([0, 7], name);
    const script = 'printf "%s|%s|%s|%s\\n" "$FILENAME" "$SHARD" "$STAGE" "$FENCE"';
    const { exit, stdout, stderr } = await work(["--once"], script).ended;
    expect(exit).toBe(0);
    const fences = (await table.rows()).map(({ shard_worker_fence }) => shard_worker_fence);
    expect(stdout).toBe(`${name}|0|shard-worker|${fences[0]}\n${name}|7|shard-worker|${fences[1]}\n`);
    expect(stderr).toMatch(/^done ä 订单 \$\(x\)\.csv, shard 0 \(\S+ s\)\ndone .* shard 7 \(\S+ s\)\n$/);
    expect(await statuses()).toEqual(["done", "done"]);
  });

  test("is failed when its command fails, with the last line of its errors", async () => {
    await ready([0, 1]);
    const script = 'echo one >&2; printf "\\033[31mno such table \\033[0m\\n\\n" >&2; [ "$SHARD" = 1 ]';
    const { exit, stderr } = await work(["--once", "--limit", "5"], script).ended;
    expect(exit).toBe(1);
    expect(await table.row("f.csv", 0)).toMatchObject({ shard_worker_status: "failed", last_error: "no such table" });
    expect(await table.row("f.csv", 1)).toMatchObject({ shard_worker_status: "done" });
    expect(stderr).toContain("one\n");
    expect(stderr).toMatch(/^failed f\.csv, shard 0 \(\S+ s\): no such table$/m);
  });

  test.each([
    ["exit 3", "exit code 3"],
    ["kill -KILL $$", "ended by SIGKILL"],
  ])("of a command that fails without output (%s) is failed with its exit status", async (script, error) => {
    await ready([0]);
    expect((await work(["--once"], script).ended).exit).toBe(1);
    expect(await table.row("f.csv")).toMatchObject({ shard_worker_status: "failed", last_error: error });
  });

  test("is reported as a line of JSON with --json", async () => {
    await ready([0]);
    const { stderr } = await work(["--once", "--json"], "exit 0").ended;
    expect(JSON.parse(stderr)).toEqual({
      filename: "f.csv",
      shard: 0,
      fence: (await table.row("f.csv")).shard_worker_fence,
      outcome: "done",
      seconds: expect.any(Number),
    });
  });

  test("is released when the command cannot be started, instead of failing the whole queue", async () => {
    await ready([0, 1, 2]);
    const words = ["pipeline", "work", "shard-worker", "--worker", "w", "--limit", "2", "--", "./no-such-program"];
    const { exit, stderr } = await startCli(words, { MILLRACE_URL: server.url, MILLRACE_KEY: ADMIN_KEY }).ended;
    expect({ exit, stderr }).toEqual({ exit: 2, stderr: "Cannot run `./no-such-program` (ENOENT).\n" });
    expect(await statuses()).toEqual(["new", "new", "new"]);
    expect((await table.rows()).every(({ leased }) => !leased)).toBe(true);
  });
});

describe("the lease", () => {
  test("is extended for all claimed items", async () => {
    await ready([0, 1]);
    const { script, open } = await gate();
    const daemon = work(["--once", "--limit", "2", "--lease", "3"], script);
    await until(() => daemon.stdout().includes("running f.csv 0"), "the command to run");
    const leases = () =>
      database.query<{ t: number }>(
        "select extract(epoch from leased_until)::float8 as t from tracking.pipeline_tracking order by shard",
      );
    const first = await leases();
    await until(
      async () => (await leases()).every(({ t }, i) => t > (first[i]?.t ?? 0) + 3),
      "heartbeats for another lease's length",
    );
    await open();
    expect((await daemon.ended).exit).toBe(0);
    expect(await statuses()).toEqual(["done", "done"]);
  });

  test("that is lost ends the command and its children, and changes nothing", async () => {
    await ready([0]);
    const { script } = await gate();
    const daemon = work(["--lease", "1"], `echo "fence $FENCE pid $$"; (${script}; echo survived) & wait`);
    const [, fence, pid] = await until(
      () => /fence (\d+) pid (\d+)/.exec(daemon.stdout()) ?? undefined,
      "the command to run",
    );
    await server.api.post("/api/v1/pipeline/queues/shard-worker/release", {
      items: [{ filename: "f.csv", shard: 0, fence }],
    });
    await server.api.post("/api/v1/pipeline/stages/shard-worker/start", {
      filename: "f.csv",
      shard: 0,
      worker: "another",
    });
    await until(() => daemon.stderr().includes("lost f.csv, shard 0"), "the loss to be noticed");
    await until(() => !isAlive(-Number(pid)), "all of the command to end");
    expect(await table.row("f.csv")).toMatchObject({ shard_worker_status: "started", worker: "another" });
    daemon.kill("SIGTERM");
    expect((await daemon.ended).exit).toBe(0);
    expect(daemon.stdout()).not.toContain("survived");
  });

  test("counts as lost when no heartbeat succeeded for its length", async () => {
    const own = await startServer({ database: { url: database.url } });
    await ready([0]);
    const { script } = await gate();
    const daemon = work(["--lease", "1"], script, { MILLRACE_URL: own.url });
    await until(() => daemon.stdout().includes("running"), "the command to run");
    own.kill("SIGKILL");
    await until(() => daemon.stderr().includes("lost f.csv, shard 0"), "the loss to be noticed");
    daemon.kill("SIGTERM");
    expect((await daemon.ended).exit).toBe(0);
  });
});

describe("the end", () => {
  test("comes on SIGTERM after the running command; the other claimed items are released", async () => {
    await ready([0, 1, 2]);
    const { script, open } = await gate();
    const daemon = work(["--limit", "3"], script);
    await until(() => daemon.stdout().includes("running f.csv 0"), "the command to run");
    expect(await statuses()).toEqual(["started", "started", "started"]);
    daemon.kill("SIGTERM");
    await until(() => daemon.stderr().includes("Stopping after the running command."), "the signal to arrive");
    await open();
    const { exit, stdout } = await daemon.ended;
    expect(exit).toBe(0);
    expect(stdout).toBe("running f.csv 0\n");
    expect(await statuses()).toEqual(["done", "new", "new"]);
    expect((await table.rows()).every(({ leased }) => !leased)).toBe(true);
  });

  test("comes at once while waiting for work", async () => {
    const asked = new Promise((resolve) => server.app.http.server.once("request", resolve));
    const daemon = work([], "exit 0");
    await asked;
    daemon.kill("SIGINT");
    expect(await daemon.ended).toEqual({ exit: 0, stdout: "", stderr: "" });
  });

  test("comes at once on a second signal, and the command ends with it", async () => {
    await ready([0]);
    const { script } = await gate();
    const daemon = work([], `echo "pid $$"; ${script}`);
    const pid = await until(() => /pid (\d+)/.exec(daemon.stdout())?.[1], "the command to run");
    daemon.kill("SIGINT");
    await until(() => daemon.stderr().includes("Stopping after"), "the first signal to arrive");
    await until(() => {
      daemon.kill("SIGINT");
      return daemon.stderr().includes("SIGINT again: stopping at once.");
    }, "the second signal to count");
    expect((await daemon.ended).exit).toBe(130);
    await until(() => !isAlive(Number(pid)), "the command to end");
  });

  test("comes with --once when the queue is empty, and at once when the server cannot be reached", async () => {
    expect(await work(["--once"], "exit 0").ended).toEqual({ exit: 0, stdout: "", stderr: "" });
    const away = await work(["--once"], "exit 0", { MILLRACE_URL: "http://127.0.0.1:9" }).ended;
    expect(away).toMatchObject({ exit: 6, stderr: expect.stringContaining("No Millrace answers") });
  }, 20_000); // Less than the half minute that a worker waits otherwise.

  test("comes at once when the key is refused", async () => {
    const { exit, stderr } = await work([], "exit 0", { MILLRACE_KEY: "wrong" }).ended;
    expect(exit).toBe(5);
    expect(stderr).toContain("[UNAUTHENTICATED]");
  });
});

test("a worker waits for a server that cannot be reached, and continues afterwards", async () => {
  const first = await startServer({ database: { url: database.url } });
  const port = new URL(first.url).port;
  const daemon = work([], "exit 0", { MILLRACE_URL: first.url });
  await ready([0]);
  await until(async () => (await table.row("f.csv")).shard_worker_status === "done", "the first item");
  first.kill("SIGKILL");
  await until(() => daemon.stderr().includes("Trying again."), "the daemon to notice");
  await ready([0], "g.csv");
  await startServer({ database: { url: database.url }, env: { MILLRACE_PORT: port } });
  await until(async () => (await table.row("g.csv")).shard_worker_status === "done", "the second item");
  daemon.kill("SIGTERM");
  expect((await daemon.ended).exit).toBe(0);
  expect(daemon.stderr().match(/Trying again/g)).toHaveLength(1);
});

test("a result is delivered even if the server cannot be reached when the command ends", async () => {
  const first = await startServer({ database: { url: database.url } });
  await ready([0]);
  const { script, open } = await gate();
  const daemon = work(["--once"], script, { MILLRACE_URL: first.url });
  await until(() => daemon.stdout().includes("running"), "the command to run");
  first.kill("SIGKILL");
  await first.exited;
  await open();
  await until(() => daemon.stderr().includes("Trying again."), "the daemon to notice");
  await startServer({ database: { url: database.url }, env: { MILLRACE_PORT: new URL(first.url).port } });
  expect((await daemon.ended).exit).toBe(0);
  expect(await statuses()).toEqual(["done"]);
});

/** A process, or a process group if negative. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
