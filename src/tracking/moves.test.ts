/** The transitions over HTTP: every move from every status of every stage, and concurrent callers. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { startMillrace, useMillrace } from "../../test/millrace.ts";
import { newFilename, reached, trackingTable } from "../../test/tracking.ts";
import {
  QUEUE_STAGES,
  type QueueStage,
  STATUSES,
  type Status,
  stageBefore,
  TRANSITIONS,
  type Transition,
} from "./states.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const table = trackingTable(database);
const post = (path: string, body: unknown) => millrace.api.post(`/api/v1/pipeline${path}`, body);
const column = (stage: QueueStage) => `${stage.replace("-", "_")}_status` as const;

/** The result of each transition from each status: a new status, `same` for a harmless repeat, or a refusal. */
const EXPECTED: Record<Transition, Record<Status, Status | "same" | "refused">> = {
  start: { new: "started", started: "refused", done: "refused", failed: "refused" },
  done: { new: "refused", started: "done", done: "same", failed: "refused" },
  fail: { new: "failed", started: "failed", done: "refused", failed: "same" },
  retry: { new: "same", started: "refused", done: "refused", failed: "new" },
};

describe.each(QUEUE_STAGES)("in %s", (stage) => {
  const cases = TRANSITIONS.flatMap((transition) =>
    STATUSES.map((from) => ({ transition, from, outcome: EXPECTED[transition][from] })),
  );

  test.each(cases)("$transition of a shard that is $from: $outcome", async ({ transition, from, outcome }) => {
    const filename = await table.put(reached(stage, from));
    const cell = { filename, shard: 0 };
    const before = await table.row(filename);
    const answer = await post(`/stages/${stage}/${transition}`, cell);
    if (outcome === "refused") {
      expect(answer).toMatchObject({
        status: 409,
        body: { code: "WRONG_STATUS", details: { ...cell, stage, transition, status: from } },
      });
      expect(answer.body["error"]).toContain(`\`${from}\``);
      expect(await table.row(filename)).toEqual(before);
    } else {
      const status = outcome === "same" ? from : outcome;
      expect([answer.status, answer.body]).toEqual([200, { ...cell, stage, status }]);
      expect(await table.row(filename)).toEqual({ ...before, [column(stage)]: status });
    }
  });

  test.each(STATUSES.filter((status) => status !== "done"))(
    "start is refused while the stage before is %s",
    async (status) => {
      const earlier = stageBefore(stage);
      if (earlier === "event-ingest" && status === "new") return; // It is never new: registering starts it.
      const filename = await table.put(reached(earlier, status));
      expect(await post(`/stages/${stage}/start`, { filename, shard: 0 })).toMatchObject({
        status: 409,
        body: {
          code: "WRONG_STATUS",
          error: expect.stringContaining(`${earlier} is \`${status}\` and must be \`done\` first`),
        },
      });
    },
  );
});

describe("a repeat", () => {
  test.each(["done", "fail", "retry"] as const)("of %s does not touch the row", async (transition) => {
    const filename = await table.put(
      reached("shard-worker", { done: "done", fail: "failed", retry: "new" }[transition] as Status),
    );
    const version = () =>
      database.query("select xmin, updated_at from tracking.pipeline_tracking where filename = $1", [filename]);
    const before = await version();
    expect(await post(`/stages/shard-worker/${transition}`, { filename, shard: 0 })).toMatchObject({ status: 200 });
    expect(await version()).toEqual(before);
  });

  test("of start is a 200 for the worker that started, and a 409 that names it for others", async () => {
    const filename = await table.put(reached("shard-worker", "new"));
    const start = (worker?: string) =>
      post("/stages/shard-worker/start", { filename, shard: 0, ...(worker ? { worker } : {}) });
    expect(await start("loader-1")).toMatchObject({ status: 200, body: { status: "started" } });
    expect(await start("loader-1")).toMatchObject({ status: 200, body: { status: "started" } });
    expect(await start("loader-2")).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining("held by loader-1") },
    });
    expect(await start()).toMatchObject({ status: 409 });
  });
});

describe("50 starts at once", () => {
  test("have exactly one winner", async () => {
    const filename = await table.put(reached("shard-splitter", "new"));
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => post("/stages/shard-splitter/start", { filename, shard: 0 })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(49);
  });

  test("have exactly one winner when they are sent to two servers", async () => {
    const other = await startMillrace(database);
    try {
      for (let round = 0; round < 5; round += 1) {
        const filename = await table.put(reached("shard-splitter", "new"));
        const answers = await Promise.all(
          Array.from({ length: 50 }, (_, i) =>
            (i % 2 ? other : millrace).api.post("/api/v1/pipeline/stages/shard-splitter/start", {
              filename,
              shard: 0,
              worker: `w${i}`,
            }),
          ),
        );
        expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      }
    } finally {
      await other.app.stop();
    }
  });
});

describe("the reason of a failure", () => {
  test("is stored, and cleared by a retry", async () => {
    const filename = await table.put(reached("shard-worker", "started"));
    await post("/stages/shard-worker/fail", { filename, shard: 0, error: "row 17: bad date" });
    const { body } = await millrace.api.get(`/api/v1/pipeline/files/${filename}`);
    expect(body).toMatchObject({ shards: [{ shard_worker_status: "failed", last_error: "row 17: bad date" }] });
    await post("/stages/shard-worker/retry", { filename, shard: 0 });
    expect(await table.row(filename)).toMatchObject({ last_error: null });
  });
});

describe("failing a stage that has not started", () => {
  test("does not change the lease of the started stage", async () => {
    await table.clear();
    const filename = await table.put(reached("shard-splitter", "new"));
    const { body } = await millrace.api.post<{ items: { fence: string }[] }>(
      "/api/v1/pipeline/queues/shard-splitter/claim",
      { worker: "w" },
    );
    const before = await table.row(filename);
    expect(await post("/stages/mysql-sender/fail", { filename, shard: 0, error: "no such database" })).toMatchObject({
      status: 200,
    });
    expect(await table.row(filename)).toEqual({
      ...before,
      mysql_sender_status: "failed",
      last_error: "no such database",
    });
    const done = { filename, shard: 0, fence: body.items[0]?.fence };
    expect(await post("/stages/shard-splitter/done", done)).toMatchObject({ status: 200 });
  });
});

describe("an unknown", () => {
  test.each(TRANSITIONS)("file is 404 for %s", async (transition) => {
    const answer = await post(`/stages/shard-worker/${transition}`, { filename: newFilename(), shard: 0 });
    expect(answer).toMatchObject({ status: 404, body: { code: "FILE_NOT_FOUND" } });
  });

  test.each(TRANSITIONS)("shard of a known file is 404 for %s", async (transition) => {
    const filename = await table.put(reached("shard-worker", "new"));
    const answer = await post(`/stages/shard-worker/${transition}`, { filename, shard: 99 });
    expect(answer).toMatchObject({
      status: 404,
      body: { code: "SHARD_NOT_FOUND", error: expect.stringContaining("shard 99") },
    });
  });

  test("stage is 400 with the nearest known one", async () => {
    for (const [word, meant] of [
      ["shard-wroker", "shard-worker"],
      ["event-ingests", "event-ingest"],
    ]) {
      expect(await post(`/stages/${word}/done`, { filename: "f", shard: 0 })).toMatchObject({
        status: 400,
        body: {
          code: "STAGE_UNKNOWN",
          error: `There is no stage \`${word}\` here. Use one of \`event-ingest\`, \`shard-splitter\`, \`shard-worker\`, \`mysql-sender\`. Did you mean \`${meant}\`?`,
        },
      });
    }
  });

  test("transition is 400 with the known ones", async () => {
    expect(await post("/stages/shard-worker/finish", { filename: "f", shard: 0 })).toMatchObject({
      status: 400,
      body: { code: "TRANSITION_UNKNOWN", error: expect.stringContaining("`start`, `done`, `fail`, `retry`") },
    });
  });
});

describe("many shards in one call", () => {
  interface Batch {
    updated_rows: number;
    items: Record<string, unknown>[];
  }

  test("each get their own outcome, in the order in which they were sent", async () => {
    const started = await table.put(reached("shard-worker", "started"), { shards: [0, 1] });
    const done = await table.put(reached("shard-worker", "done"));
    const failed = await table.put(reached("shard-worker", "failed"));
    const unknown = newFilename();
    const stage = "shard-worker";
    const answer = await millrace.api.post<Batch>(`/api/v1/pipeline/stages/${stage}/done`, {
      items: [
        { filename: unknown, shard: 0 },
        { filename: started, shard: 1 },
        { filename: done, shard: 0 },
        { filename: failed, shard: 0 },
        { filename: started, shard: 0, fence: "12" },
        { filename: done, shard: 7 },
      ],
    });
    const sentence = expect.stringMatching(/\w+.*\.$/);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      stage,
      updated_rows: 1,
      items: [
        { filename: unknown, shard: 0, stage, ok: false, code: "FILE_NOT_FOUND", error: sentence },
        { filename: started, shard: 1, stage, ok: true, status: "done" },
        { filename: done, shard: 0, stage, ok: true, status: "done" },
        { filename: failed, shard: 0, stage, ok: false, status: "failed", code: "WRONG_STATUS", error: sentence },
        { filename: started, shard: 0, stage, ok: false, status: "started", code: "LEASE_LOST", error: sentence },
        { filename: done, shard: 7, stage, ok: false, code: "SHARD_NOT_FOUND", error: sentence },
      ],
    });
    expect(await table.row(started, 0)).toMatchObject({ shard_worker_status: "started" });
    expect(await table.row(started, 1)).toMatchObject({ shard_worker_status: "done" });
  });

  test.each(TRANSITIONS)("can %s a thousand, and no more", async (transition) => {
    const shards = Array.from({ length: 1_001 }, (_, shard) => shard);
    const from = { start: "new", done: "started", fail: "started", retry: "failed" }[transition] as Status;
    const filename = await table.put(reached("mysql-sender", from), { shards });
    const items = shards.map((shard) => ({ filename, shard }));
    expect(await post(`/stages/mysql-sender/${transition}`, { items })).toMatchObject({
      status: 400,
      body: { code: "VALIDATION_FAILED" },
    });
    expect(await post(`/stages/mysql-sender/${transition}`, { items: items.slice(1) })).toMatchObject({
      status: 200,
      body: { updated_rows: 1_000 },
    });
  });

  test.each([
    ["the same shard twice", (cell: object) => ({ items: [cell, { ...cell, fence: "1" }] })],
    ["items beside a single shard", (cell: object) => ({ ...cell, items: [cell] })],
    ["items beside a fence for all", (cell: object) => ({ fence: "1", items: [cell] })],
    ["items beside a worker for all", (cell: object) => ({ worker: "w", items: [cell] })],
    ["no items", () => ({ items: [] })],
    ["an item without a shard", (cell: object) => ({ items: [{ ...cell, shard: undefined }] })],
    ["neither items nor a shard", () => ({})],
  ])("are refused as a whole with %s", async (_what, body) => {
    const filename = await table.put(reached("shard-worker", "started"));
    const answer = await post("/stages/shard-worker/done", body({ filename, shard: 0 }));
    expect(answer).toMatchObject({ status: 400, body: { code: "VALIDATION_FAILED" } });
    expect(await table.row(filename)).toMatchObject({ shard_worker_status: "started" });
  });
});
