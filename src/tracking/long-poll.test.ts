/** Claims that wait: which waiter gets new work, from which server it comes, and what happens to waiters that disconnect. */

import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Answer } from "../../test/client.ts";
import { useDatabase } from "../../test/database.ts";
import { startMillrace, type TestMillrace, useMillrace } from "../../test/millrace.ts";
import { noHints } from "../../test/no-hints.ts";
import { newFilename, reached, trackingTable } from "../../test/tracking.ts";
import { until } from "../../test/until.ts";
import { createMetrics } from "../kernel/telemetry/metrics.ts";
import { createWake } from "../kernel/work/wake.ts";
import { CATALOGUE } from "./catalogue.ts";
import { createLongPoll } from "./long-poll.ts";
import { createTracking } from "./tracking.ts";

const database = useDatabase();
const millrace = useMillrace(database);
const table = trackingTable(database);

interface Claim {
  items: { filename: string; shard: number; fence: string }[];
}

/** Shorter than the fallback poll, so that only a hint can be this quick. */
const PROMPT_MS = 3_000;

function claim(
  wait_seconds: number,
  { on = millrace, signal, limit = 1 }: { on?: TestMillrace; signal?: AbortSignal; limit?: number } = {},
) {
  return on.api.post<Claim>(
    "/api/v1/pipeline/queues/shard-splitter/claim",
    { worker: "w", limit, wait_seconds },
    signal,
  );
}

/** How many claims a server has tried so far; a claim that found nothing waits right after. */
async function claimsTried(on: TestMillrace): Promise<number> {
  const metrics = await on.app.registry.render(); // What /metrics shows may be a second old.
  return Number(
    /^millrace_db_statement_seconds_count\{statement="tracking.shard_splitter.claim"\} (\d+)/m.exec(metrics)?.[1] ?? 0,
  );
}

const waiting = new Set<AbortController>();

/** Starts a claim and resolves when it waits. */
async function standInLine({ on = millrace, limit = 1 }: { on?: TestMillrace; limit?: number } = {}) {
  const leaver = new AbortController();
  waiting.add(leaver);
  const before = await claimsTried(on);
  const answer = claim(30, { on, limit, signal: leaver.signal });
  answer.catch(() => undefined);
  await until(async () => (await claimsTried(on)) > before, "the claim to wait");
  return { answer, disconnect: () => leaver.abort() };
}

/** A file with one shard becomes ready for the splitter, through the API of `on`. */
async function fileArrives(on: TestMillrace = millrace): Promise<string> {
  const filename = newFilename();
  await on.api.post("/api/v1/pipeline/files/register", { filename, shards: [0] });
  await on.api.post("/api/v1/pipeline/stages/event-ingest/done", { filename });
  return filename;
}

const filesOf = ({ body }: Answer<Claim>) => body.items.map(({ filename }) => filename);

async function promptly<T>(promise: Promise<T>): Promise<T> {
  const late = Symbol("late");
  const first = await Promise.race([promise, sleep(PROMPT_MS, late, { ref: false })]);
  if (first === late) throw new Error(`no answer within ${PROMPT_MS} ms`);
  return first;
}

beforeEach(() => table.clear());
afterEach(() => {
  for (const leaver of waiting) leaver.abort(); // A claim left over from a failed test would take the work of the next test.
  waiting.clear();
});

describe("a claim that waits", () => {
  test("is answered at once when there is work", async () => {
    const filename = await table.put(reached("shard-splitter", "new"));
    expect(filesOf(await promptly(claim(30)))).toEqual([filename]);
  });

  test("is answered with an empty list at its timeout", async () => {
    const begun = performance.now();
    expect(await claim(1)).toMatchObject({ status: 200, body: { stage: "shard-splitter", items: [] } });
    expect(performance.now() - begun).toBeGreaterThan(990);
  });

  test("gets a file that arrives meanwhile", async () => {
    const { answer } = await standInLine();
    const filename = await fileArrives();
    expect(filesOf(await promptly(answer))).toEqual([filename]);
  });

  test("gets a file that arrives through another server", async () => {
    const other = await startMillrace(database);
    try {
      const { answer } = await standInLine();
      const filename = await fileArrives(other);
      expect(filesOf(await promptly(answer))).toEqual([filename]);
    } finally {
      await other.app.stop();
    }
  });

  test.each(["released", "failed and retried"])("gets a shard that is %s meanwhile", async (how) => {
    const filename = await table.put(reached("shard-splitter", "new"));
    const fence = (await claim(0)).body.items[0]?.fence;
    const { answer } = await standInLine();
    const cell = { filename, shard: 0 };
    if (how === "released") {
      await millrace.api.post("/api/v1/pipeline/queues/shard-splitter/release", { items: [{ ...cell, fence }] });
    } else {
      await millrace.api.post("/api/v1/pipeline/stages/shard-splitter/fail", { ...cell, fence });
      await millrace.api.post("/api/v1/pipeline/stages/shard-splitter/retry", cell);
    }
    expect(filesOf(await promptly(answer))).toEqual([filename]);
  });

  test("finds work without a hint, by polling", async () => {
    const { answer } = await standInLine();
    const filename = await table.put(reached("shard-splitter", "new"));
    expect(filesOf(await answer)).toEqual([filename]);
  });
});

describe("waiting claims", () => {
  test("are served in the order of their requests", async () => {
    const answers = [];
    for (let i = 0; i < 5; i += 1) answers.push((await standInLine()).answer);
    const arrived = [];
    for (let i = 0; i < 5; i += 1) arrived.push(await fileArrives());
    const served = await promptly(Promise.all(answers));
    expect(served.flatMap(filesOf)).toEqual(arrived);
  });

  test("share what arrives together", async () => {
    const answers = [];
    for (let i = 0; i < 3; i += 1) answers.push((await standInLine({ limit: 2 })).answer);
    const filename = newFilename();
    await millrace.api.post("/api/v1/pipeline/files/register", { filename, shards: [0, 1, 2, 3, 4] });
    await millrace.api.post("/api/v1/pipeline/stages/event-ingest/done", { filename });
    const counts = (await promptly(Promise.all(answers))).map(({ body }) => body.items.length);
    expect(counts).toEqual([2, 2, 1]);
  });
});

describe("a caller that disconnects", () => {
  test("gets nothing, and the next waiter is served", async () => {
    const left = await standInLine();
    const stays = await standInLine();
    left.disconnect();
    await expect(left.answer).rejects.toThrow("aborted");
    const filename = await fileArrives();
    expect(filesOf(await promptly(stays.answer))).toEqual([filename]);
    expect(await table.row(filename)).toMatchObject({ lost_count: 0 });
  });

  test("during its claim has the claimed items released at once", async () => {
    const filename = await table.put(reached("shard-splitter", "new"));
    const leaver = new AbortController();
    await database.db.exclusive(async (client) => {
      await client.query("begin; lock tracking.pipeline_tracking in access exclusive mode");
      const { server } = millrace.app.http;
      const noticed = once(server, "request").then(([, response]: ServerResponse[]) =>
        once(response as ServerResponse, "close"),
      );
      const answer = claim(30, { signal: leaver.signal });
      await until(lockWaits, "the claim to be in flight");
      leaver.abort();
      await expect(answer).rejects.toThrow("aborted");
      await noticed;
      await client.query("commit");
    });
    const next = await standInLine();
    expect(filesOf(await promptly(next.answer))).toEqual([filename]);
    expect(await table.row(filename)).toMatchObject({ lost_count: 0 });
  });

  async function lockWaits(): Promise<boolean> {
    const blocked = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    return (await database.query(blocked)).length > 0;
  }
});

describe("a server that stops", () => {
  test("answers its waiters with an empty list, and those of other servers keep waiting", async () => {
    const stopping = await startMillrace(database);
    const here = await standInLine({ on: stopping });
    const elsewhere = await standInLine();
    await promptly(stopping.app.stop());
    expect(await here.answer).toMatchObject({ status: 200, body: { items: [] } });
    const filename = await fileArrives();
    expect(filesOf(await promptly(elsewhere.answer))).toEqual([filename]);
  });
});

test("a claim that waits gets the error of the database instead of an empty list", async () => {
  const { answer } = await standInLine();
  await database.query("alter table tracking.pipeline_tracking rename to mislaid");
  try {
    expect((await answer).status).toBe(500); // At the next poll, within 5 s.
  } finally {
    await database.query("alter table tracking.mislaid rename to pipeline_tracking");
  }
});

test("with a thousand waiters the next claim is answered to try again later", async () => {
  const { db } = database;
  const wake = createWake();
  const settings = { lostLimit: 10, stageTimeoutSeconds: {}, keepDays: 365 };
  const longPoll = createLongPoll({
    tracking: createTracking({
      db,
      wake,
      hints: noHints,
      metrics: createMetrics().define(CATALOGUE.metrics),
      settings,
    }),
    wake,
  });
  const { signal } = new AbortController();
  const claimOne = () =>
    longPoll.claim("mysql-sender", { limit: 1, worker: "w", leaseSeconds: 60, waitSeconds: 60, signal });
  let refused: unknown;
  const line = Array.from({ length: 1_001 }, () => claimOne().catch((error: unknown) => void (refused = error)));
  await until(() => refused !== undefined, "the line to be full");
  expect(refused).toMatchObject({ code: "OVERLOADED", status: 503, retryAfterSeconds: 5 });
  await longPoll.stop();
  const answers = await Promise.all(line);
  expect(answers.filter((items) => Array.isArray(items) && items.length === 0)).toHaveLength(1_000);
});
