/** A tracked file is one arrival, when the last stage of all its shards is done. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { startMillrace, type TestMillrace } from "../../test/millrace.ts";
import { newFilename, reached, trackingTable } from "../../test/tracking.ts";
import { until } from "../../test/until.ts";
import { OperatorError } from "../kernel/errors.ts";
import { fileArrivals } from "./file-arrivals.ts";

const ROUNDS = process.env["MILLRACE_TEST_LONG"] ? 300 : 20;
const FILES = [
  { pattern: "(?<table>[a-z]+)_(?<day>\\d{8})\\.csv", table: "ODS_$<table>", opTime: "$<day>" },
  { pattern: "(any|ANY)-(.+)\\.csv", table: "$1", opTime: "$2" },
];
const DONE = "/api/v1/pipeline/stages/mysql-sender/done";
const LAST = reached("mysql-sender", "started");

describe("a file name", () => {
  const arrivalOf = fileArrivals({ files: FILES });
  test("is an arrival if a rule matches all of it", () => {
    expect(arrivalOf("orders_20250101.csv")).toMatchObject({ table: "ODS_orders", opTime: "20250101" });
    expect(arrivalOf("any-2025.csv")).toEqual({ table: "any", opTime: "2025", pattern: FILES[1]?.pattern });
    for (const name of ["orders_20250101.csv.gz", "x/orders_20250101.csv", "orders_2025.csv", "Orders_20250101.csv"]) {
      expect(arrivalOf(name), name).toBeUndefined();
    }
  });

  test("is not an arrival if its opTime is not valid", () => {
    expect(arrivalOf("any-a b.csv")).toBeUndefined();
  });

  test("needs a valid regular expression", () => {
    expect(() => fileArrivals({ files: [{ pattern: "(", table: "t", opTime: "o" }] })).toThrow(OperatorError);
  });

  test.each([
    [
      { pattern: "orders_\\d{8}", table: "ORDERS", opTime: "$1" },
      "arrivals.files[0].opTime in the configuration has $1",
    ],
    [{ pattern: "(a)(?<b>.+)", table: "$<c>", opTime: "$2" }, "arrivals.files[0].table in the configuration has $<c>"],
  ])("cannot match a rule that names a group its pattern does not have: %j", (rule, sentence) => {
    expect(() => fileArrivals({ files: [rule] })).toThrow(sentence);
  });
});

describe("a tracked file", () => {
  const database = useDatabase();
  const table = trackingTable(database);
  let processes: [TestMillrace, TestMillrace];
  beforeAll(async () => {
    const arrivals = { files: FILES, tableCase: "ignore" as const };
    const open = (roles: string) => startMillrace(database, { env: { MILLRACE_ROLES: roles }, arrivals });
    processes = [await open("api,scheduler,worker"), await open("api")];
  });
  afterAll(async () => {
    for (const { app } of processes) await app.stop();
  });

  const done = async (filename: string, shard: number, process = 0) => {
    const { status, body } = await (processes[process] as TestMillrace).api.post(DONE, { filename, shard });
    expect([status, body]).toMatchObject([200, { status: "done" }]);
  };
  /** As `table opTime arrivals`. */
  const arrived = async (opTime: string) => {
    const rows = await database.query<{ shown: string }>(
      "select concat_ws(' ', table_name, op_time, arrivals) as shown from arrivals.metrics_etl_log where op_time = $1",
      [opTime],
    );
    return rows.map(({ shown }) => shown);
  };
  let day = 20250100;
  const nextDay = () => {
    day += 1;
    return String(day);
  };

  test("arrives once, with the last of its shards", async () => {
    const opTime = nextDay();
    const filename = `orders_${opTime}.csv`;
    await table.put(LAST, { filename, shards: [0, 1, 2] });
    for (const shard of [0, 2]) await done(filename, shard);
    expect(await arrived(opTime)).toEqual([]);
    await done(filename, 1);
    expect(await arrived(opTime)).toEqual([`ODS_ORDERS ${opTime} 1`]);
    await done(filename, 1); // A repeat of the request.
    expect(await arrived(opTime)).toEqual([`ODS_ORDERS ${opTime} 1`]);
  });

  test("arrives only when a failed shard has been retried and done", async () => {
    const opTime = nextDay();
    const filename = `orders_${opTime}.csv`;
    await table.put(LAST, { filename, shards: [0, 1] });
    const stage = DONE.replace("/done", "");
    await processes[0].api.post(`${stage}/fail`, { filename, shard: 0, error: "no" });
    await done(filename, 1);
    expect(await arrived(opTime)).toEqual([]);
    await processes[0].api.post(`${stage}/retry`, { filename, shard: 0 });
    await processes[0].api.post(`${stage}/start`, { filename, shard: 0 });
    await done(filename, 0);
    expect(await arrived(opTime)).toEqual([`ODS_ORDERS ${opTime} 1`]);
  });

  test("arrives once when its last two shards end concurrently in two processes", async () => {
    const opTimes = Array.from({ length: ROUNDS }, nextDay);
    const end = async (opTime: string) => {
      const filename = `orders_${opTime}.csv`;
      await table.put(LAST, { filename, shards: [0, 1] });
      await Promise.all([done(filename, 0, 0), done(filename, 1, 1)]);
    };
    for (const opTime of opTimes) await end(opTime);
    for (const opTime of opTimes) expect(await arrived(opTime)).toEqual([`ODS_ORDERS ${opTime} 1`]);
  });

  test("that matches no rule is not an arrival", async () => {
    const filename = newFilename();
    await table.put(LAST, { filename });
    await done(filename, 0);
    const [row] = await database.query<{ count: number }>(
      "select count(*)::int as count from arrivals.metrics_etl_log where table_name not like 'ODS_%'",
    );
    expect(row).toEqual({ count: 0 });
  });

  test("is one arrival together with other files of the same table and opTime in one request", async () => {
    const opTime = nextDay();
    const names = [`any-${opTime}.csv`, `ANY-${opTime}.csv`];
    for (const filename of names) await table.put(LAST, { filename });
    const { status } = await processes[0].api.post(DONE, { items: names.map((filename) => ({ filename, shard: 0 })) });
    expect(status).toBe(200);
    expect(await arrived(opTime)).toEqual([`ANY ${opTime} 1`]);
  });

  test("runs the models, and the nodes of chains, that wait for its table", async () => {
    const [{ api }] = processes;
    const opTime = nextDay();
    const kpiId = `K${randomUUID().slice(0, 8)}`;
    const model = {
      name: "m",
      sql: `select '${kpiId}' as kpi_id, 1 as value`,
      dependencies: [{ table: "ods_orders" }],
      kpis: [kpiId],
    };
    expect((await api.put("/api/v1/kpi/models/m", model)).status).toBe(201);
    await api.post("/api/v1/kpi/models/m:publish");
    const nodes = [{ id: "n", type: "noop", waitsFor: ["Ods_Orders"] }];
    const { body: chain } = await api.post("/api/v1/chains", { name: "waits", dagJson: { nodes } });
    const { body: run } = await api.post(`/api/v1/chains/${String(chain["chainId"])}:start`, { opTime });
    const statusOf = async () => (await api.get(`/api/v1/runs/${String(run["runId"])}`)).body["status"];
    await until(async () => (await statusOf()) === "RUNNING", "the run to begin");
    const began = performance.now();
    const filename = `orders_${opTime}.csv`;
    await table.put(LAST, { filename });
    await done(filename, 0);
    await until(async () => (await statusOf()) === "SUCCESS", "the node to go on");
    expect(performance.now() - began).toBeLessThan(NOTIFIED_MS_MAX);
    await until(async () => {
      const { body } = await api.get<{ items: object[] }>(`/api/v1/kpi/data?kpiId=${kpiId}&opTime=${opTime}`);
      return body.items.length === 1;
    }, "the model to run");
  });
});

/** Without the notification the timers would find it, after ten seconds or more. */
const NOTIFIED_MS_MAX = 8_000;
