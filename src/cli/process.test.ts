/**
 * The built program as a process: it ends by itself, reads standard input, survives closed pipes and ends at Ctrl-C. Elsewhere commands run
 * in the test's process, except where their signals or their start are what is tested.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ADMIN_KEY } from "../../test/admin-key.ts";
import { startCli, startScript } from "../../test/cli.ts";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";
import { reached, trackingTable } from "../../test/tracking.ts";
import { until } from "../../test/until.ts";
import { gravitinoEvent, schemaFacet } from "../lineage/events.fixture.ts";
import { nodeOf } from "./chain/frame.fixture.ts";
import { startChainServer } from "./chain/server.fixture.ts";
import { PLAN_ID } from "./harvest/plan.fixture.ts";
import { startPlanServer } from "./harvest/server.fixture.ts";

const database = useDatabase();
const server = useMillrace(database);
const table = trackingTable(database);
const envFor = ({ url }: { url: string }) => ({ MILLRACE_URL: url, MILLRACE_KEY: ADMIN_KEY });
const lines = (text: string) => text.split("\n").filter((line) => line !== "");

beforeEach(() => table.clear());

test.each([
  ["pipeline", "ls"],
  ["chain", "ls"],
  ["kpi", "models"],
  ["harvest", "sources"],
  ["lineage", "tenants"],
  ["keys", "list"],
  ["secrets", "list"],
])("%s %s ends by itself, with the exit code of its outcome", async (...words) => {
  expect(await startCli(words, envFor(server)).ended).toMatchObject({ exit: 0, stderr: "" });
  const refused = await startCli(words, { MILLRACE_URL: server.url }).ended;
  expect(refused).toMatchObject({ exit: 5, stdout: "", stderr: expect.stringMatching(/ \[UNAUTHENTICATED\]\n$/) });
});

test("doctor ends by itself, and reports what is wrong on standard output", async () => {
  expect(await startCli(["doctor"], envFor(server)).ended).toMatchObject({ exit: 0, stderr: "" });
  const refused = await startCli(["doctor"], { MILLRACE_URL: server.url }).ended;
  expect(refused).toMatchObject({
    exit: 5,
    stderr: "",
    stdout: expect.stringMatching(/^broken +key .*\[UNAUTHENTICATED\]$/m),
  });
});

test("--help loads every command of the bundle", async () => {
  expect(await startCli(["--help"]).ended).toMatchObject({ exit: 0, stderr: "" });
});

describe("standard input", () => {
  const CHAIN = "name: daily\nnodes:\n  - { id: a, type: noop }\n";
  const MODEL = "models:\n  M: { name: M, sql: select 1, dependencies: [{ table: T }] }\n";
  const SOURCE = `source: shop
name: Orders of the shop
baseUrl: https://api.example.org
endpoints:
  orders:
    path: /orders
    http:
      query: { since: "\${window.from}", until: "\${window.to}", offset: "\${page.offset}", limit: "\${page.size}" }
    pagination: { type: OFFSET, pageSize: 100, orderBy: updated asc }
    window:
      { watermarkKey: updated, granularity: PT1S, align: min, minWindow: PT1M, maxWindow: P1D, supportsUpdatedSince: true }
    response: { itemsPath: $.orders, idPath: $.id, updatedAtPath: $.updated, totalPath: $.total }
    rateLimit: { refillRatePerSec: 10 }
`;
  const EVENT = JSON.stringify(
    gravitinoEvent("create_table", {
      tenantId: 7,
      name: "dw.orders",
      eventTime: "2026-01-01T00:00:00Z",
      facets: schemaFacet(["id"]),
    }),
  );

  test.each([
    ["chain apply -", CHAIN, "Created daily, version 1.\n"],
    ["kpi apply - --yes", MODEL, expect.stringMatching(/\nDone: \d changes?\.\n$/)],
    ["harvest apply -", SOURCE, "Created shop, revision 1.\n"],
    ["lineage send -", EVENT, "Accepted: 1 of 1 event.\n"],
  ])("is the file of %s", async (command, text, stdout) => {
    await server.api.post("/api/v1/lineage/tenants", { id: 7, code: "acme", name: "Acme", state: "READY" });
    const folder = await mkdtemp(join(tmpdir(), "millrace-stdin-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, "file");
    await writeFile(file, text);
    const script = `cat "$FILE" | millrace ${command}`;
    expect(await startScript(script, { ...envFor(server), FILE: file }).ended).toEqual({ exit: 0, stdout, stderr: "" });
  });
});

test("a closed pipe is not a failure", async () => {
  await table.put(reached("shard-worker", "new"), { shards: Array.from({ length: 1_000 }, (_, shard) => shard) });
  const script =
    "set -o pipefail; millrace pipeline queue shard-worker --limit 1000 --json | true; echo ${PIPESTATUS[0]}";
  expect(await startScript(script, envFor(server)).ended).toEqual({ exit: 0, stdout: "0\n", stderr: "" });
});

test("a worker written as a shell script empties a queue, including failures", async () => {
  const name = "ä 订单 %2e?#&'\"$(x)`;\\ -\u202e.csv";
  await table.put(reached("shard-worker", "new"), { filename: name, shards: [0, 1, 2, 3] });
  await table.put(reached("shard-worker", "new"), { filename: "bad.csv" });
  const daemon = startScript(
    `set -o pipefail
     load() { [ "$1" != bad.csv ]; }
     while true; do
       millrace pipeline claim shard-worker --worker "$0 $$" --limit 2 --wait 30 |
         while IFS=$'\\t' read -r file shard fence; do
           if load "$file" "$shard" </dev/null
           then millrace pipeline done shard-worker "$file" "$shard" --fence "$fence"
           else millrace pipeline fail shard-worker "$file" "$shard" --fence "$fence" --error "load failed"
           fi
         done || sleep 1
     done`,
    envFor(server),
  );
  await until(async () => {
    const rows = await table.rows();
    return rows.every(({ shard_worker_status }) => shard_worker_status === "done" || shard_worker_status === "failed");
  }, "the queue to be drained");
  daemon.kill("SIGTERM");
  await daemon.ended;
  expect(daemon.stderr()).toBe("");
  expect(await table.row("bad.csv")).toMatchObject({ shard_worker_status: "failed", last_error: "load failed" });
  for (const shard of [0, 1, 2, 3]) expect(await table.row(name, shard)).toMatchObject({ shard_worker_status: "done" });
});

describe("Ctrl-C", () => {
  test("ends `chain watch`, not the run, and says so", async () => {
    const own = await startChainServer([nodeOf("a", [], "RUNNING")]);
    const watch = startCli(["chain", "watch", "run-1"], envFor(own));
    await until(() => watch.stdout().includes("a RUNNING"), "the first line");
    watch.kill("SIGINT");
    expect(await watch.ended).toMatchObject({
      exit: 130,
      stderr: "Run run-1 is still running. Follow it again with `millrace chain watch run-1`.\n",
    });
    expect(own.asked.filter(({ method }) => method !== "GET")).toEqual([]);
    await own.followers(0);
  });

  test("ends `harvest run`, not the plan, and says how to go on", async () => {
    const own = await startPlanServer();
    own.answers["POST /plans"] = [201, { planId: PLAN_ID, notes: [], warnings: [], slices: 2 }];
    const run = startCli(["harvest", "run", "shop"], envFor(own));
    await until(() => run.stdout() !== "", "the first line");
    run.kill("SIGINT");
    const { exit, stderr } = await run.ended;
    expect(exit).toBe(130);
    expect(lines(stderr).at(-1)).toBe(
      `Plan ${PLAN_ID} goes on. Follow it with \`millrace harvest status ${PLAN_ID} --follow\`.`,
    );
    expect(own.asked.filter(({ method }) => method !== "GET")).toHaveLength(1);
  });

  test("ends `harvest records --follow`, and says where to continue", async () => {
    const own = await startPlanServer();
    const page = (items: string, next: string) => [200, `{"items":[${items}],"next":"${next}"}`] as const;
    own.answers["GET /records"] = page("", "a");
    const records = startCli(["harvest", "records", "--source", "shop", "--follow"], envFor(own));
    await until(() => own.asked.length > 1, "the second poll");
    own.refuse = [503, { error: "Stopping.", code: "SHUTTING_DOWN" }];
    await until(() => records.stderr() !== "", "the notice");
    own.refuse = undefined;
    own.answers["GET /records"] = page('{"key":"0","data":{}}', "b");
    await until(() => records.stdout() !== "", "the record");
    own.answers["GET /records"] = page("", "b");
    await until(() => own.asked.at(-1)?.query["after"] === "b", "the next poll");
    records.kill("SIGINT");
    const { exit, stderr } = await records.ended;
    expect(exit).toBe(130);
    expect(lines(stderr)).toEqual(["Stopping. [SHUTTING_DOWN] Trying again.", "Go on with --after b"]);
  });
});
