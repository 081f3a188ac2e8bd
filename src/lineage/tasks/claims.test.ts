/** Claims: a crash loses nothing, a late result changes nothing, a stop gives back, and an idle process keeps quiet. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import type { Db } from "../../kernel/data/db.ts";
import { hang } from "../../webhooks/receiver.fixture.ts";
import { embeds } from "./providers/model-server.fixture.ts";
import { SETTINGS, type TestTasks, useTasks } from "./tasks.fixture.ts";

const database = useDatabase();
const tasks = useTasks(database);

async function queued(process: TestTasks, tenantId: string, count: number): Promise<void> {
  const tenant = await tasks.tenant(tenantId, tasks.served());
  const assets = await tasks.columns(tenantId, count);
  await database.db.tx((tx) => process.enqueue(tx, tenant, assets));
}

const calls = () => tasks.models.calls().length;

describe("a process that is lost", () => {
  test("has its tasks taken over once its claim runs out; its late result changes nothing", async () => {
    const suspended = tasks.open();
    await queued(suspended, "1", 2);
    const late = signal();
    tasks.models.onEmbeddings((nth, response, received) => {
      if (nth > 1) return embeds()(nth, response, received);
      void late.promise.then(() => embeds()(nth, response, received));
      return undefined;
    });
    await suspended.worker.runOnce();
    await until(() => calls() === 1, "the first call");
    const other = tasks.open();
    expect(await other.worker.runOnce()).toEqual({ claimed: 0, reclaimed: 0 });

    await database.query("update lineage.ol_async_task set claim_until = now()");
    expect(await other.worker.runOnce()).toEqual({ claimed: 2, reclaimed: 2 });
    const after = await tasks.ended();
    expect(after).toMatchObject([{ status: "SUCCEEDED", retry_count: 1 }, { status: "SUCCEEDED" }]);
    const written = await database.query("select * from lineage.embedding");

    late.resolve();
    await until(
      () => suspended.log.lines.some(({ message }) => message.startsWith("a batch of tasks was lost")),
      "it to know",
    );
    expect(await tasks.rows()).toEqual(after);
    expect(await database.query("select * from lineage.embedding")).toEqual(written);
    expect(suspended.told).toEqual([]);
    const attempts = await database.query("select status, error_type from lineage.ol_async_task_attempt order by id");
    expect(attempts.slice(0, 2)).toEqual([
      { status: "FAILED", error_type: "LOST" },
      { status: "FAILED", error_type: "LOST" },
    ]);
    expect(await database.query("select status, failed_count from lineage.ol_async_batch order by id")).toEqual([
      { status: "FAILED", failed_count: 2 },
      { status: "SUCCEEDED", failed_count: 0 },
    ]);
  });

  test("is noticed by an idle one when the claim runs out, and not before", async () => {
    const lost = tasks.open({ settings: { ...SETTINGS, claimSeconds: 600 } });
    await queued(lost, "1", 1);
    tasks.models.onEmbeddings((nth, ...rest) => (nth === 1 ? hang : embeds())(nth, ...rest));
    await lost.worker.runOnce();
    await until(() => calls() === 1, "the call");
    await database.query("update lineage.ol_async_task set claim_until = now() + interval '700 ms'");
    const other = tasks.open();
    const begun = performance.now();
    other.worker.start();
    await tasks.ended();
    expect(performance.now() - begun).toBeGreaterThan(600);
    expect(performance.now() - begun).toBeLessThan(10_000);
  });

  test("too often makes the task DEAD, which pages see: it may be the cause", async () => {
    const hinted: unknown[] = [];
    const process = tasks.open({ hints: { changed: (_, ...hint) => void hinted.push(hint) } });
    await queued(process, "1", 1);
    await database.query(
      "update lineage.ol_async_task set status = 'RUNNING', claim_token = 'x', claim_until = now(), retry_count = 5",
    );
    await process.worker.runOnce();
    expect(hinted).toContainEqual(["lineage-task", (await tasks.rows())[0]?.id, { tenantId: "1" }]);
    expect(await tasks.rows()).toMatchObject([
      { status: "DEAD", last_error: "The process that worked on it was lost." },
    ]);
  });
});

test("a model that takes longer than a claim lasts keeps its tasks", async () => {
  const process = tasks.open({ settings: { ...SETTINGS, claimSeconds: 2 } });
  await queued(process, "1", 1);
  tasks.models.onEmbeddings((nth, response, received) => {
    setTimeout(() => embeds()(nth, response, received), 3_500);
    return undefined;
  });
  const other = tasks.open();
  process.worker.start();
  await until(() => calls() === 1, "the call");
  other.worker.start();
  await tasks.ended();
  expect(calls()).toBe(1);
  expect(await tasks.rows()).toMatchObject([{ status: "SUCCEEDED", retry_count: 0 }]);
}, 20_000);

describe("a stop", () => {
  test("gives back what does not end in time, uncounted, for another process", async () => {
    const process = tasks.open();
    await queued(process, "1", 3);
    tasks.models.onEmbeddings((nth, ...rest) => (nth === 1 ? hang : embeds())(nth, ...rest));
    process.worker.start();
    await until(() => calls() === 1, "the call");
    await process.worker.stop();
    expect(await tasks.rows()).toMatchObject(
      Array.from({ length: 3 }, () => ({ status: "PENDING", retry_count: 0, claim_token: null })),
    );
    tasks.open().worker.start();
    await tasks.ended();
    expect(await database.query("select from lineage.embedding")).toHaveLength(3);
  });

  test("waits for what a model is about to answer", async () => {
    const process = tasks.open();
    await queued(process, "1", 1);
    const asked = signal();
    const answered = signal();
    tasks.models.onEmbeddings((nth, response, received) => {
      asked.resolve();
      void answered.promise.then(() => embeds()(nth, response, received));
      return undefined;
    });
    process.worker.start();
    await asked.promise;
    const stopped = process.worker.stop();
    answered.resolve();
    await stopped;
    expect(await tasks.rows()).toMatchObject([{ status: "SUCCEEDED" }]);
  });
});

test("several processes share the tasks, and each is worked on once", async () => {
  const processes = [tasks.open(), tasks.open(), tasks.open()];
  await queued(processes[0] as TestTasks, "1", 1_000);
  for (const { worker } of processes) worker.start();
  await tasks.ended();
  const texts = tasks.models.embedded().flat();
  expect(texts).toHaveLength(1_000);
  expect(new Set(texts).size).toBe(1_000);
});

test.each([
  ["is away", "ECONNRESET"],
  ["cancels the write for its time", "57014"],
  ["waits too long for a lock", "55P03"],
])("when the database %s while results are written, they are written a moment later", async (_, code) => {
  let broken = 2;
  const flaky: Db = {
    ...database.db,
    tx(work) {
      broken -= 1;
      if (broken >= 0) return Promise.reject(Object.assign(new Error("gone"), { code }));
      return database.db.tx(work);
    },
  };
  const process = tasks.open({ db: flaky });
  await queued({ ...process, enqueue: tasks.open().enqueue }, "1", 1);
  await process.worker.runOnce();
  expect(await tasks.ended()).toMatchObject([{ status: "SUCCEEDED" }]);
  expect(calls()).toBe(1);
});

test("an idle process makes a handful of statements, and one with nothing due no more", async () => {
  const statements: string[] = [];
  const db: Db = {
    ...database.db,
    rows(statement, values) {
      statements.push(statement.name);
      return database.db.rows(statement, values);
    },
  };
  const process = tasks.open({ db });
  await queued(tasks.open(), "1", 5);
  await database.query("update lineage.ol_async_task set next_run_at = now() + interval '1 hour'");
  process.worker.start();
  process.requeue.start();
  await until(() => statements.length >= 3, "the first look");
  const ran = process.worker.nextRun();
  process.worker.wake();
  await ran;
  expect(statements.toSorted()).toEqual([
    "lineage.model.requeueing",
    "lineage.task.lanes",
    "lineage.task.lanes",
    "lineage.task.next_expiry",
    "lineage.task.next_expiry",
  ]);
});
