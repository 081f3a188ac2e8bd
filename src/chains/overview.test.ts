/** What chains show on the first page: failures that nobody has repeated, what waits, and every run that has ended. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { fails, holds, scripted, useChains } from "../../test/chains.ts";
import { useDatabase } from "../../test/database.ts";
import { openRecordingDb, type RecordingDb } from "../../test/plans.ts";
import { ENTRIES_MAX } from "../kernel/overview/part.ts";
import { rangeOf } from "../kernel/overview/range.ts";
import { chainsOverview } from "./overview.ts";
import { endedRuns } from "./store/overview.ts";

const database = useDatabase();
const chains = useChains(database);
const now = () => chainsOverview.now(database.db, { tenantId: null });
const lastHour = () => rangeOf({ hours: 1 }, Date.now() + 1_000);

describe("what needs a person", () => {
  test("is a failed run, with its reason, until its opTime has succeeded", async () => {
    let isBroken = true;
    const chainId = await chains.define([scripted("load", () => (isBroken ? fails({} as never, {}) : {}))], {
      name: "nightly",
    });
    for (const opTime of ["20260401", "20260402"])
      await chains.reaches(await chains.start(chainId, { opTime }), "FAILED");
    const newest = await chains.start(chainId, { opTime: "20260402" });
    await chains.reaches(newest, "FAILED");
    expect((await now()).needs).toMatchObject([
      {
        about: { kind: "run", id: newest, opTime: "20260402" },
        state: "failed",
        title: "nightly",
        reason: expect.stringContaining("it fails on purpose"),
        count: 3,
      },
    ]);

    isBroken = false;
    await chains.reaches(await chains.start(chainId, { opTime: "20260402" }), "SUCCESS");
    expect((await now()).needs).toMatchObject([{ about: { opTime: "20260401" }, count: 1 }]);
    await chains.reaches(await chains.start(chainId, { opTime: "20260401" }), "SUCCESS");
    expect((await now()).needs).toEqual([]);
  });
});

test("the newest failures need a person, whatever the ids of their chains", async () => {
  const ids = [];
  for (let n = 0; n <= ENTRIES_MAX; n += 1) ids.push(await chains.define([{ id: "n", type: "noop" }]));
  const ordered = ids.toSorted();
  await database.query(
    `insert into chains.job_run (run_id, chain_id, chain_version, job_name, status, reason, dag_json, trigger, triggered_by, created_at, started_at, ended_at)
     select gen_random_uuid(), chain_id, 1, chain_id::text, 'FAILED', 'It has failed.', '{}', 'api', 'test', t, t, t
     from unnest($1::uuid[]) with ordinality as c(chain_id, n), lateral (select now() - interval '1 day' + n * interval '1 minute' as t) o`,
    [ordered],
  );
  const titles = (await now()).needs.map(({ title }) => title).filter((title) => ordered.includes(title));
  expect(titles).toEqual(ordered.toReversed().slice(0, ENTRIES_MAX));
  await database.query("delete from chains.job_run where chain_id = any($1::uuid[])", [ordered]);
});

describe("what waits", () => {
  beforeEach(async () => {
    await database.query("delete from chains.pool");
  });

  test("is told by cause: a table, a pool, a next try, the limit of a chain, a pause", async () => {
    const waits = await chains.define([{ id: "n", type: "noop", waitsFor: ["ORDERS"] }]);
    const missing = await chains.start(waits, { opTime: "20260401" });
    await chains.api.put("/api/v1/pools/small", { size: 0 });
    const full = await chains.run([{ id: "n", type: "noop", pool: "small" }]);
    const retries = await chains.run([
      scripted("n", fails, {
        retry: { maxAttempts: 2, backoffMs: 3_600_000, factor: 1, maxBackoffMs: 3_600_000, jitter: 0 },
      }),
    ]);
    await chains.nodeReaches(retries, "n", "RETRYING");
    const single = await chains.define([scripted("n", holds)], { name: "single", maxActiveRuns: 1 });
    const first = await chains.start(single);
    await chains.nodeReaches(first, "n", "RUNNING");
    await chains.start(single);
    const made = await chains.api.post(`/api/v1/chains/${single}/schedules`, {
      name: "daily",
      cron: "0 3 * * *",
      timeZone: "UTC",
      paused: true,
    });
    expect(made.body).toMatchObject({ paused: true });

    const { waiting } = await now();
    expect(waiting).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          cause: "table",
          kind: "node",
          subject: "ORDERS",
          count: 1,
          about: { kind: "table", id: "ORDERS" },
        }),
        expect.objectContaining({
          cause: "pool",
          kind: "node",
          subject: "small",
          count: 1,
          oldestAt: expect.any(Date) as Date,
        }),
        expect.objectContaining({ cause: "retry", kind: "node", count: 1, nextAt: expect.any(Date) as Date }),
        expect.objectContaining({
          cause: "limit",
          kind: "run",
          subject: "single",
          about: { kind: "chain", id: single },
        }),
        expect.objectContaining({ cause: "paused", kind: "schedule", about: { kind: "chain", id: single } }),
      ]),
    );

    // The list of runs has a filter for what nodes wait for.
    const runsThatWait = async (waitsFor: string) => {
      const { body } = await chains.api.get<{ items: { runId: string }[] }>(`/api/v1/runs?waitsFor=${waitsFor}`);
      return body.items.map(({ runId }) => runId);
    };
    expect(await runsThatWait("table:ORDERS")).toEqual([missing]);
    expect(await runsThatWait("table:OTHER")).toEqual([]);
    expect(await runsThatWait("pool:small")).toEqual([full]);
    expect(await runsThatWait("retry")).toEqual([retries]);
    expect(await runsThatWait("slot")).toEqual([]);
    expect(await chains.api.get("/api/v1/runs?waitsFor=nobody")).toMatchObject({ status: 400 });
  });
});

describe("what has ended", () => {
  test("is counted in lanes and buckets, with the newest failure of each cell", async () => {
    const good = await chains.define([{ id: "n", type: "noop" }], { name: "good" });
    const bad = await chains.define([scripted("n", fails)], { name: "bad" });
    for (const _ of [1, 2, 3]) await chains.reaches(await chains.start(good), "SUCCESS");
    const failed = await chains.start(bad);
    await chains.reaches(failed, "FAILED");
    const { lanes, buckets, moreLanes, countedFrom } = await endedRuns(database.db, lastHour());
    const of = (id: string) => lanes.find((lane) => lane.id === id);
    // A lane with failures comes first.
    expect(lanes.findIndex(({ name }) => name === "bad")).toBeLessThan(lanes.findIndex(({ name }) => name === "good"));
    expect(of(good)?.cells.reduce((sum, { ended }) => sum + ended, 0)).toBe(3);
    expect(of(bad)?.cells).toMatchObject([{ ended: 1, failed: 1, failedId: failed }]);
    expect(buckets.reduce((sum, { ended }) => sum + ended, 0)).toBeGreaterThanOrEqual(4);
    expect({ moreLanes, countedFrom }).toEqual({ moreLanes: 0, countedFrom: null });
  });

  test("says from when on all is counted, if there is more than may be", async () => {
    for (const _ of [1, 2, 3]) await chains.reaches(await chains.run([{ id: "n", type: "noop" }]), "SUCCESS");
    const { countedFrom, buckets } = await endedRuns(database.db, lastHour(), 2);
    expect(countedFrom).toBeInstanceOf(Date);
    expect(buckets.reduce((sum, { ended }) => sum + ended, 0)).toBe(2);
  });
});

describe("with a long history", () => {
  const RUNS = 40_000;
  let recorded: RecordingDb;
  beforeAll(() => {
    recorded = openRecordingDb(database.connection, "chains.overview");
  });
  afterAll(() => recorded.db.close());

  test("the statements read what is shown", async () => {
    const chainId = await chains.define([{ id: "n", type: "noop" }]);
    await database.query(
      `insert into chains.job_run (run_id, chain_id, chain_version, job_name, status, dag_json, trigger, triggered_by, created_at, started_at, ended_at)
       select gen_random_uuid(), $1, 1, 'old', case when n % 10 = 0 then 'FAILED' else 'SUCCESS' end, '{}', 'api', 'test', t, t, t
       from generate_series(1, ${RUNS}) n, lateral (select now() - interval '30 days' - n * interval '1 minute' as t) o`,
      [chainId],
    );
    await database.query("vacuum analyze chains.job_run");
    const reading = { ...recorded.db, read: recorded.db.rows };
    await endedRuns(reading, lastHour());
    await chainsOverview.now(reading, { tenantId: null });
    const ended = await recorded.explainLast("chains.overview.ended");
    expect(ended.indexes).toContain("job_run_ended");
    for (const name of ["chains.overview.ended", "chains.overview.failed", "chains.overview.waiting"]) {
      // A scan of history reads a thousand pages and more.
      const { pages } = await recorded.explainLast(name);
      expect(pages, name).toBeLessThan(150);
    }
  });
});
