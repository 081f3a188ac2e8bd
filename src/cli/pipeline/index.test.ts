/** Every `millrace pipeline` command but `work`, against a running server. */
import { once } from "node:events";
import { beforeEach, describe, expect, test } from "vitest";
import { cliFor, runCli, startCommand } from "../../../test/cli-in-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { ADMIN_KEY, useMillrace } from "../../../test/millrace.ts";
import { newFilename, reached, trackingTable } from "../../../test/tracking.ts";

const database = useDatabase();
const server = useMillrace(database);
const table = trackingTable(database);
const millrace = (...words: string[]) => cliFor(server)("pipeline", ...words);
const lines = (text: string) => text.split("\n").filter((line) => line !== "");

/** A name with characters that are special in a shell, a URL or a terminal. */
const HOSTILE = "ä 订单 %2e?#&'\"$(x)`;\\ -\u202e.csv";

beforeEach(() => table.clear());

describe("register", () => {
  test("registers shards and ranges, and says when nothing was new", async () => {
    expect(await millrace("register", "orders.csv", "--shards", "0,1,4-7")).toEqual({
      exit: 0,
      stdout: "Registered orders.csv, 6 shards.\n",
      stderr: "",
    });
    expect((await table.rows()).map(({ shard }) => shard)).toEqual([0, 1, 4, 5, 6, 7]);
    const again = await millrace("register", "orders.csv", "--shards", "4");
    expect(again).toMatchObject({ exit: 0, stdout: "orders.csv is already registered; nothing changed.\n" });
  });

  test("accepts any name that the server accepts, and escapes it in output", async () => {
    const { stdout } = await millrace("register", HOSTILE, "--shards", "0");
    expect(stdout).toBe(`Registered ${HOSTILE.replace("\u202e", "\\u202e")}, 1 shard.\n`);
    expect(await table.row(HOSTILE)).toMatchObject({ event_ingest_status: "started" });
    expect((await millrace("register", "--shards", "0", "--", "-dash.csv")).exit).toBe(0);
    expect((await millrace("show", "--", "-dash.csv")).exit).toBe(0);
  });

  test("refuses with exit code 2 what neither it nor the server accepts", async () => {
    expect(await millrace("register", "f", "--shards", "1-x")).toMatchObject({
      exit: 2,
      stderr: "`1-x` is neither a shard nor a range. Accepted: shards and ranges like 0,1,4-7.\n",
    });
    const slash = await millrace("register", "a/b", "--shards", "0");
    expect(slash.exit).toBe(2);
    expect(slash.stderr).toContain("[VALIDATION_FAILED]");
    expect(await table.rows()).toEqual([]);
  });
});

describe("show", () => {
  test("shows each shard with its worker, lease and last error", async () => {
    const name = await table.put(reached("shard-worker", "new"), { filename: HOSTILE, shards: [0, 3] });
    await server.api.post("/api/v1/pipeline/queues/shard-worker/claim", { worker: "w\u2066 1" });
    await server.api.post("/api/v1/pipeline/stages/shard-worker/fail", {
      filename: name,
      shard: 3,
      error: "no\ntable",
    });
    const { exit, stdout } = await millrace("show", name);
    expect(exit).toBe(0);
    const [header, first, second] = lines(stdout);
    expect(header).toMatch(
      /^SHARD {2}EVENT-INGEST {2}SHARD-SPLITTER {2}SHARD-WORKER {2}MYSQL-SENDER {2}UPDATED +WORKER +LEASED UNTIL +LAST ERROR$/,
    );
    expect(first).toMatch(/^0 +done +done +started +new +\S+Z {2}w\\u2066 1 {2}\S+Z$/);
    expect(second).toMatch(/^3 +done +done +failed +new +\S+Z +no\\u000atable$/);
  });

  test("reports a missing file, with exit code 4", async () => {
    expect(await millrace("show", "nope.csv")).toEqual({
      exit: 4,
      stdout: "",
      stderr:
        "File `nope.csv` is not registered. Register it with POST /api/v1/pipeline/files/register. [FILE_NOT_FOUND]\n",
    });
  });

  test("--json prints the reply unchanged, also a refusal", async () => {
    const name = await table.put(reached("shard-worker", "new"));
    const { stdout } = await millrace("show", name, "--json");
    expect(JSON.parse(stdout)).toEqual((await server.api.get(`/api/v1/pipeline/files/${name}`)).body);
    const refused = await millrace("show", "nope.csv", "--json");
    expect(JSON.parse(refused.stdout)).toMatchObject({ code: "FILE_NOT_FOUND", details: { filename: "nope.csv" } });
    expect(refused).toMatchObject({ exit: 4, stderr: expect.stringContaining("[FILE_NOT_FOUND]") });
  });
});

describe("ls", () => {
  test("lists files with the counts of their shards, filtered and in pages", async () => {
    await table.put(reached("shard-worker", "failed"), { filename: "a-1.csv", shards: [0, 1] });
    await table.put(reached("shard-splitter", "new"), { filename: "a-2.csv" });
    await table.put(reached("mysql-sender", "done"), { filename: "b-1.csv" });
    const all = await millrace("ls");
    expect(all.exit).toBe(0);
    expect(lines(all.stdout)[0]).toMatch(
      /^FILE +SHARDS +EVENT-INGEST +SHARD-SPLITTER +SHARD-WORKER +MYSQL-SENDER +CREATED$/,
    );
    expect(all.stdout).toMatch(/^a-1\.csv +2 +2 done +2 done +2 failed +2 new +\S+Z$/m);

    const names = async (...words: string[]) =>
      (JSON.parse((await millrace("ls", ...words, "--json")).stdout) as { items: { filename: string }[] }).items.map(
        ({ filename }) => filename,
      );
    expect(await names("--status", "failed")).toEqual(["a-1.csv"]);
    expect(await names("--stage", "mysql-sender", "--status", "done")).toEqual(["b-1.csv"]);
    expect((await names("--prefix", "a-")).sort()).toEqual(["a-1.csv", "a-2.csv"]);

    const page = await millrace("ls", "--size", "2", "--page", "2");
    expect(lines(page.stdout)).toHaveLength(3);
    expect(page.stdout).toContain("Page 2 of 2, 3 files.");
    expect((await millrace("ls", "--page", "9")).stdout).toBe("There is no page 9.\n");
    expect((await millrace("ls", "--prefix", "zzz")).stdout).toBe("There are no such files.\n");
  });

  test("lets the server refuse an unknown status", async () => {
    const { exit, stderr } = await millrace("ls", "--status", "finished");
    expect(exit).toBe(2);
    expect(stderr).toContain("must be one of `new`, `started`, `done`, `failed`. [VALIDATION_FAILED]");
  });
});

test("queue lists ready items, oldest first", async () => {
  await table.put(reached("shard-worker", "new"), { filename: "f.csv", shards: [0, 1, 2] });
  const { exit, stdout } = await millrace("queue", "shard-worker", "--limit", "2", "--offset", "1");
  expect(exit).toBe(0);
  expect(lines(stdout)).toEqual([
    expect.stringMatching(/^FILE +SHARD +CREATED$/),
    expect.stringMatching(/^f\.csv +1 +\S+Z$/),
    expect.stringMatching(/^f\.csv +2 +\S+Z$/),
  ]);
  expect((await millrace("queue", "mysql-sender")).stdout).toBe("Nothing is ready for mysql-sender.\n");
  expect(await millrace("queue", "shard-wroker")).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining("Did you mean `shard-worker`? [STAGE_UNKNOWN]"),
  });
});

describe("claim", () => {
  test("prints file, shard and fence between tabs, and holds the items for the worker", async () => {
    await table.put(reached("shard-worker", "new"), { filename: HOSTILE, shards: [0, 1, 2] });
    const { exit, stdout } = await millrace("claim", "shard-worker", "--worker", "007", "--limit", "2");
    expect(exit).toBe(0);
    const { shard_worker_fence: fence, worker } = await table.row(HOSTILE, 0);
    expect(worker).toBe("007");
    expect(lines(stdout)).toEqual([`${HOSTILE}\t0\t${fence}`, expect.stringMatching(/\t1\t\d+$/)]);
  });

  test("exits with 7 and prints nothing when there is nothing to claim", async () => {
    expect(await millrace("claim", "shard-worker", "--worker", "w")).toEqual({ exit: 7, stdout: "", stderr: "" });
    const { exit, stdout } = await millrace("claim", "shard-worker", "--worker", "w", "--json");
    expect({ exit, reply: JSON.parse(stdout) }).toEqual({ exit: 7, reply: { stage: "shard-worker", items: [] } });
  });

  test("waits for work", async () => {
    const env = { MILLRACE_URL: server.url, MILLRACE_KEY: ADMIN_KEY };
    const arrived = once(server.app.http.server, "request");
    const claim = startCommand(["pipeline", "claim", "shard-splitter", "--worker", "w", "--wait", "60"], env);
    await arrived;
    await server.api.post("/api/v1/pipeline/files/register", { filename: "late.csv", shards: [0] });
    await server.api.post("/api/v1/pipeline/stages/event-ingest/done", { filename: "late.csv" });
    expect(await claim.ended).toMatchObject({ exit: 0, stdout: expect.stringMatching(/^late\.csv\t0\t\d+\n$/) });
  });
});

describe("a claimed item", () => {
  async function claimed() {
    const name = await table.put(reached("shard-worker", "new"));
    const { stdout } = await millrace("claim", "shard-worker", "--worker", "w", "--lease", "30");
    return { name, fence: stdout.trim().split("\t")[2] ?? "" };
  }

  test("is kept by heartbeats", async () => {
    const { name, fence } = await claimed();
    const [before] = await database.query<{ t: Date }>("select leased_until as t from tracking.pipeline_tracking");
    const beat = await millrace("heartbeat", "shard-worker", name, "0", "--fence", fence, "--lease", "3600");
    expect(beat).toEqual({ exit: 0, stdout: `${name}, shard 0, is still leased to you.\n`, stderr: "" });
    const [after] = await database.query<{ t: Date }>("select leased_until as t from tracking.pipeline_tracking");
    expect(Number(after?.t) - Number(before?.t)).toBeGreaterThan(3_000_000);
  });

  test("is finished only with its fence; without it or with another: exit code 3", async () => {
    const { name, fence } = await claimed();
    const bare = await millrace("done", "shard-worker", name, "0");
    expect(bare).toMatchObject({ exit: 3, stderr: expect.stringMatching(/Send the `fence` .*\[LEASE_LOST\]\n$/) });
    // A fence beyond 2^53 must not lose digits.
    const wrong = await millrace("fail", "shard-worker", name, "0", "--fence", "900719925474099399");
    expect(wrong).toMatchObject({ exit: 3, stderr: expect.stringContaining("[LEASE_LOST]") });
    expect(await table.row(name)).toMatchObject({ shard_worker_status: "started", shard_worker_fence: fence });
    const right = await millrace("done", "shard-worker", name, "0", "--fence", fence);
    expect(right).toEqual({ exit: 0, stdout: `shard-worker of ${name}, shard 0: done.\n`, stderr: "" });
    expect(await table.row(name)).toMatchObject({ shard_worker_status: "done" });
  });

  test("is returned to the queue by release, and then lost", async () => {
    const { name, fence } = await claimed();
    const released = await millrace("release", "shard-worker", name, "0", "--fence", fence);
    expect(released).toMatchObject({ exit: 0, stdout: `${name}, shard 0, is back in the queue of shard-worker.\n` });
    expect(await table.row(name)).toMatchObject({ shard_worker_status: "new", leased: false });
    const late = await millrace("heartbeat", "shard-worker", name, "0", "--fence", fence);
    expect(late).toMatchObject({ exit: 3, stderr: expect.stringContaining("[LEASE_LOST]") });
  });
});

describe("start, done, fail, retry", () => {
  test("move a shard; exactly one worker wins the start", async () => {
    const name = await table.put(reached("shard-worker", "new"));
    const started = await millrace("start", "shard-worker", name, "0", "--worker", "007");
    expect(started).toMatchObject({ exit: 0, stdout: `shard-worker of ${name}, shard 0: started.\n` });
    expect((await millrace("start", "shard-worker", name, "0", "--worker", "007")).exit).toBe(0);
    expect(await millrace("start", "shard-worker", name, "0", "--worker", "7")).toMatchObject({
      exit: 3,
      stderr: `Cannot start shard-worker of ${name}, shard 0: it is \`started\`, held by 007. [WRONG_STATUS]\n`,
    });
    expect((await millrace("fail", "shard-worker", name, "0", "--error", "- no such table")).exit).toBe(0);
    expect(await table.row(name)).toMatchObject({ shard_worker_status: "failed", last_error: "- no such table" });
    const retried = await millrace("retry", "shard-worker", name, "0", "--json");
    expect(JSON.parse(retried.stdout)).toEqual({ filename: name, shard: 0, stage: "shard-worker", status: "new" });
  });

  test("move a whole file in event-ingest, which takes no shard", async () => {
    const name = await table.put(reached("event-ingest", "started"), { shards: [0, 1] });
    const failed = await millrace("fail", "event-ingest", name, "--error", "half a file");
    expect(failed).toMatchObject({ exit: 0, stdout: `event-ingest of ${name}: 2 shards changed.\n` });
    expect((await millrace("retry", "event-ingest", name)).exit).toBe(0);
    expect((await millrace("done", "event-ingest", name)).exit).toBe(0);
    expect((await millrace("done", "event-ingest", name)).stdout).toBe(`event-ingest of ${name}: 0 shards changed.\n`);
    expect(await table.row(name)).toMatchObject({ event_ingest_status: "done" });
    expect(await millrace("done", "event-ingest", name, "0")).toMatchObject({
      exit: 2,
      stderr: "event-ingest concerns the whole file: leave out the shard.\n",
    });
    expect(await millrace("start", "event-ingest", name)).toMatchObject({
      exit: 2,
      stderr: expect.stringContaining("Registering a file starts it. [TRANSITION_UNKNOWN]"),
    });
  });

  test("of a shard need the shard, and one that exists", async () => {
    const name = await table.put(reached("shard-worker", "new"));
    expect(await millrace("done", "shard-worker", name)).toMatchObject({
      exit: 2,
      stderr: expect.stringMatching(/^SHARD is missing/),
    });
    expect(await millrace("done", "event-ingests", name)).toMatchObject({
      exit: 2,
      stderr: expect.stringMatching(/^SHARD is missing: .* Did you mean `event-ingest`\?/),
    });
    expect(await millrace("done", "shard-worker", name, "x")).toMatchObject({ exit: 2 });
    expect(await millrace("done", "shard-worker", name, "7")).toMatchObject({
      exit: 4,
      stderr: expect.stringContaining("[SHARD_NOT_FOUND]"),
    });
    expect(await millrace("done", "shard-worker", newFilename(), "0")).toMatchObject({ exit: 4 });
  });
});

test("summary counts by stage and by shard", async () => {
  expect((await millrace("summary")).stdout).toBe("There are no files.\n");
  await table.put(reached("shard-worker", "failed"), { shards: [0, 1] });
  await table.put(reached("mysql-sender", "done"), { shards: [0] });
  const { exit, stdout } = await millrace("summary");
  expect(exit).toBe(0);
  expect(stdout).toMatch(/^STAGE +NEW +STARTED +DONE +FAILED$/m);
  expect(stdout).toMatch(/^shard-worker +0 +0 +1 +2$/m);
  expect(stdout).toMatch(/^SHARD +TOTAL +DONE IN LAST STAGE +FAILED IN LAST STAGE$/m);
  expect(stdout).toMatch(/^0 +2 +1 +0$/m);
  const { stdout: json } = await millrace("summary", "--json");
  expect(JSON.parse(json)).toEqual((await server.api.get("/api/v1/pipeline/metrics/summary")).body);
});

describe("the key", () => {
  test("is required, with exit code 5", async () => {
    const { exit, stderr } = await runCli(["pipeline", "ls"], { MILLRACE_URL: server.url });
    expect(exit).toBe(5);
    expect(stderr).toMatch(/^This call needs a key\. .* Set MILLRACE_KEY: .*\[UNAUTHENTICATED\]\n$/);
  });

  test("over its rate limit is told when to retry, with exit code 6", async () => {
    const { body } = await server.api.post("/api/v1/keys", {
      name: "slow",
      scopes: ["pipeline:read"],
      rateLimitPerMinute: 1,
    });
    const env = { MILLRACE_URL: server.url, MILLRACE_KEY: String(body["key"]) };
    expect((await runCli(["pipeline", "ls"], env)).exit).toBe(0);
    const { exit, stderr } = await runCli(["pipeline", "ls"], env);
    expect(exit).toBe(6);
    expect(stderr).toContain("[RATE_LIMITED]");
  });
});
