import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { silentLog } from "../../../test/log.ts";
import { until } from "../../../test/until.ts";
import { createEngines } from "../../engines/engines.ts";
import type { Engines, Lake } from "../../engines/index.ts";
import { openLake } from "../../engines/lake/lake.ts";
import { createWake } from "../../kernel/work/wake.ts";
import { cancelPlan } from "../store/plans/plan-ends.ts";
import { landingLease, landingPlans, wantLanding } from "../store/records/landing.ts";
import { landingCheck } from "./doctor.ts";
import { createLanding, type LandingDeps } from "./landing.ts";
import { type Announcement, type Ended, type LandedWindow, type Settled, settle } from "./settle.ts";
import { at, DAY, FIELDS, makeSource, type TestSlice, type TestSource } from "./windows.fixture.ts";
import { type LandingItem, writeWindow } from "./write-window.ts";

const database = useDatabase();
const signal = new AbortController().signal;
let lake: Lake;
let engines: Engines;
let source: TestSource;
let announced: Announcement[] = [];
let landed: LandedWindow[] = [];

beforeEach(async () => {
  lake = openLake(await mkdtemp(join(tmpdir(), "millrace-lake-")));
  engines = createEngines({}, { lakeDir: lake.dir });
  source = await makeSource(database);
  announced = [];
  landed = [];
});
afterEach(async () => {
  await database.query("delete from harvest.landing");
  await engines.close();
  await rm(lake.dir, { recursive: true, force: true });
});

const settleDeps = (
  announceIn = async (_tx: unknown, given: readonly Announcement[]) => void announced.push(...given),
) => ({
  db: database.db,
  arrivals: { announceIn },
  listeners: [async (_tx: unknown, window: LandedWindow) => void landed.push(window)],
  random: () => 0,
});

const NO_TABLES = {
  names: () => [],
  of: () => {
    throw new Error("there is no engine for tables");
  },
};

async function claim(): Promise<LandingItem> {
  const [claimed] = await landingLease.claim(database.db, { limit: 1, holder: "1" });
  if (!claimed) throw new Error("nothing wants to land");
  const plan = (await landingPlans(database.db, [claimed.plan_id])).get(claimed.plan_id);
  if (!plan) throw new Error("the plan is missing");
  return { ...claimed, plan };
}

const write = (item: LandingItem) => writeWindow({ db: database.db, lake, tables: NO_TABLES }, item, signal);

/** Lands what waits, as the worker does. */
async function land(): Promise<Settled> {
  return settle(settleDeps(), await write(await claim()));
}

async function query(sql: string): Promise<unknown[]> {
  return (await engines.get("duckdb").query(sql, { signal, rowsMax: 10_000 })).rows;
}
function openLanding(given: Lake | undefined) {
  const session = { onExpiry: () => {} } as unknown as LandingDeps["session"]; // Nothing is claimed.
  const wake = { ...createWake(), hint: () => {} };
  return createLanding({
    ...settleDeps(),
    wake,
    session,
    log: silentLog,
    onRun: () => {},
    lake: given,
    tables: NO_TABLES,
  });
}

/** Cancels the plan of a slice as the planner does. */
async function cancel({ planId }: TestSlice): Promise<void> {
  const cancelled = await database.db.tx((tx) => cancelPlan(tx, planId, "why"));
  await openLanding(lake).wantCancelled(planId, cancelled?.changed ?? []);
}

const table = (opTime = DAY) =>
  query(`select _key as key, title, _version as version from crossref_works where op_time = '${opTime}' order by key`);

async function isBlocked(): Promise<boolean> {
  const waiting = "select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'";
  return (await database.query(waiting)).length === 1;
}

describe("a window wants to land", () => {
  const cases: [
    sentence: string,
    slices: [status: string, fromHour: number, toHour: number, namespace?: string][],
    wants: boolean,
  ][] = [
    ["when one slice of it is complete", [["COMPLETE", 0, 24]], true],
    [
      "when several complete slices cover it",
      [
        ["COMPLETE", 12, 24],
        ["COMPLETE", 0, 12],
      ],
      true,
    ],
    ["not while a part of it was never planned", [["COMPLETE", 0, 12]], false],
    [
      "not while a slice is open",
      [
        ["READY", 0, 12],
        ["COMPLETE", 12, 24],
      ],
      false,
    ],
    [
      "not when a slice has failed",
      [
        ["FAILED", 0, 12],
        ["COMPLETE", 12, 24],
      ],
      false,
    ],
    [
      "not when a slice is incomplete",
      [
        ["INCOMPLETE", 0, 12],
        ["COMPLETE", 12, 24],
      ],
      false,
    ],
    [
      "not when a slice was cancelled",
      [
        ["CANCELLED", 0, 12],
        ["COMPLETE", 12, 24],
      ],
      false,
    ],
    [
      "when another slice completed what had failed",
      [
        ["FAILED", 0, 12],
        ["COMPLETE", 0, 24],
      ],
      true,
    ],
    [
      "when children completed what was split",
      [
        ["SPLIT", 0, 24],
        ["COMPLETE", 0, 12],
        ["COMPLETE", 12, 24],
      ],
      true,
    ],
    [
      "while what is complete is harvested again",
      [
        ["READY", 0, 12],
        ["COMPLETE", 0, 24],
      ],
      true,
    ],
    [
      "while a slice of parameters that select records is open",
      [
        ["READY", 0, 24, "works:0123"],
        ["COMPLETE", 0, 24],
      ],
      true,
    ],
    [
      "when a slice of parameters that select records has failed",
      [
        ["FAILED", 0, 24, "works:0123"],
        ["COMPLETE", 0, 24],
      ],
      true,
    ],
    ["not when only a slice of parameters that select records is complete", [["COMPLETE", 0, 24, "works:0123"]], false],
    [
      "not when such a slice completes what has failed",
      [
        ["FAILED", 0, 24],
        ["COMPLETE", 0, 24, "works:0123"],
      ],
      false,
    ],
  ];

  test.each(cases)("%s", async (_sentence, slices, wants) => {
    const plan = await source.plan();
    let result = false;
    for (const [status, fromHour, toHour, namespace] of slices) {
      const slice = await source.slice(plan, at(1, fromHour), at(1, toHour), namespace);
      if (status !== "READY") result = await source.complete(slice, status);
    }
    expect(result).toBe(wants);
    expect((await source.landing())["status"]).toBe(wants ? "PENDING" : undefined);
  });

  test("although its last two slices complete at the same time", async () => {
    const plan = await source.plan();
    const first = await source.slice(plan, at(1), at(1, 12));
    const second = await source.slice(plan, at(1, 12), at(2));
    let completeSecond: Promise<boolean> | undefined;
    await database.db.tx(async (tx) => {
      await source.end(tx, first);
      expect(await wantLanding(tx, [source.window(plan)])).toBe(0);
      completeSecond = source.complete(second);
      await until(isBlocked, "the second to wait for the first, which is not committed");
    });
    expect(await completeSecond).toBe(true);
  });
});

test("the window of a harvest lands before those that a backfill has completed", async () => {
  const back = await source.plan(FIELDS, "BACKFILL");
  const days = [1, 2, 3];
  const backfill = async () => {
    for (const day of days) await source.complete(await source.slice(back, at(day), at(day + 1)));
  };
  const landAll = async () => {
    const order: string[] = [];
    for (const _ of days) {
      const item = await claim();
      order.push(item.op_time);
      await settle(settleDeps(), await write(item));
    }
    return order;
  };
  await backfill();
  await source.harvest([], 3);
  expect(await landAll()).toEqual(["20260803", "20260801", "20260802"]);
  await backfill(); // It has landed for the harvest, and what the backfill brings later is not the harvest's.
  expect(await landAll()).toEqual(["20260801", "20260802", "20260803"]);
});

describe("a slice that is cancelled", () => {
  test("has its changes in a window that others have completed, which lands again for them", async () => {
    const under = await source.slice(await source.plan(), at(1), at(2));
    await source.page(under, [{ key: "a", title: "A" }]);
    const whole = await source.harvest([
      { key: "a", title: "A" },
      { key: "b", title: "B" },
    ]);
    await land();
    expect(await table()).toEqual([{ key: "b", title: "B", version: 1 }]);
    await cancel(under);
    const item = await claim();
    expect(item.plan_id).toBe(whole.planId);
    await settle(settleDeps(), await write(item));
    expect(await table()).toHaveLength(2);
  });

  test("leaves a window alone that is not complete", async () => {
    const under = await source.slice(await source.plan(), at(1), at(2));
    await source.page(under, [{ key: "a", title: "A" }]);
    await cancel(under);
    expect(await source.landing()).toEqual({});
  });
});

test("without a lake no window wants to land", async () => {
  const { planId } = await source.slice(await source.plan(), at(1), at(2));
  await database.query("update harvest.ing_plan_slice set status_code = 'COMPLETE', ended_at = now()");
  await database.db.tx((tx) => openLanding(undefined).want(tx, source.window(planId), undefined));
  expect(await source.landing()).toEqual({});
  await database.db.tx((tx) => openLanding(lake).want(tx, source.window(planId), undefined));
  expect(await source.landing()).toMatchObject({ status: "PENDING" });
});

describe("a window that lands", () => {
  test("is a partition with the output fields, the whole record and its key, and its table arrives", async () => {
    await source.harvest([
      { key: "10.1/b", title: "B", cited: 3 },
      { key: "10.1/a", title: 'A "quoted" Ä' },
    ]);
    expect(await land()).toBe("landed");
    expect(await query("select * from crossref_works order by _key")).toEqual([
      {
        title: 'A "quoted" Ä',
        cited: null,
        data: { title: ['A "quoted" Ä'], counts: {} },
        _key: "10.1/a",
        _deleted: false,
        _version: 1,
        op_time: DAY,
      },
      {
        title: "B",
        cited: 3,
        data: { title: ["B"], counts: { cited: 3 } },
        _key: "10.1/b",
        _deleted: false,
        _version: 1,
        op_time: DAY,
      },
    ]);
    expect(announced).toEqual([{ table: "crossref_works", opTime: DAY, idempotencyKey: null, by: "harvest" }]);
    expect(landed).toMatchObject([{ source: source.source, endpoint: "works", table: "crossref_works", rows: 2 }]);
    expect(await source.landing()).toEqual({
      status: "LANDED",
      wanted: 1,
      landed: 1,
      rows: 2,
      attempt: 0,
      error: null,
    });
  });

  test("has no row if nothing came, and arrives all the same", async () => {
    await source.harvest([]);
    expect(await land()).toBe("landed");
    expect(await table()).toEqual([]);
    expect(announced).toHaveLength(1);
  });

  test("lands and arrives again after a change, and is replaced whole", async () => {
    await source.harvest([
      { key: "a", title: "A" },
      { key: "b", title: "B" },
    ]);
    await land();
    await source.harvest([
      { key: "b", title: "B, corrected" },
      { key: "c", title: "C" },
      { key: "a", title: "A", deleted: true },
    ]);
    expect(await land()).toBe("landed");
    expect(await query("select _key, title, _deleted, _version from crossref_works order by 1")).toEqual([
      { _key: "a", title: "A", _deleted: true, _version: 2 },
      { _key: "b", title: "B, corrected", _deleted: false, _version: 2 },
      { _key: "c", title: "C", _deleted: false, _version: 1 },
    ]);
    expect(announced).toHaveLength(2);
  });

  test("does not arrive again if it was harvested again without a change", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    await land();
    await source.harvest([{ key: "a", title: "A" }]);
    expect(await source.landing()).toMatchObject({ status: "PENDING", wanted: 2 });
    expect(await land()).toBe("unchanged");
    expect(await source.landing()).toMatchObject({ status: "LANDED", wanted: 2, landed: 2 });
    expect(announced).toHaveLength(1);
    expect(landed).toHaveLength(1);
  });

  test("lands and arrives again if its columns have changed", async () => {
    await source.harvest([{ key: "a", title: "A", cited: 1 }]);
    await land();
    await source.harvest([{ key: "a", title: "A", cited: 1 }], 1, FIELDS.slice(1));
    expect(await land()).toBe("landed");
    expect(await query("select * exclude (data, op_time) from crossref_works")).toEqual([
      { cited: 1, _key: "a", _deleted: false, _version: 1 },
    ]);
  });

  test("is written again if its file is gone", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    await land();
    await rm(join(lake.dir, "tables"), { recursive: true });
    await source.harvest([{ key: "a", title: "A" }]);
    expect(await land()).toBe("landed");
    expect(await table()).toEqual([{ key: "a", title: "A", version: 1 }]);
  });

  test("keeps a record as it was, although a later window changes it", async () => {
    await source.harvest([{ key: "a", title: "Monday" }], 1);
    await source.harvest([{ key: "a", title: "Tuesday" }], 2);
    await land();
    await land();
    expect(await table("20260801")).toEqual([{ key: "a", title: "Monday", version: 1 }]);
    expect(await table("20260802")).toEqual([{ key: "a", title: "Tuesday", version: 2 }]);
  });

  test("has the latest of several versions that came in the window, also when a later window has a newer one", async () => {
    await source.harvest([{ key: "a", title: "one" }], 1);
    await source.harvest([{ key: "a", title: "two" }], 1);
    await source.harvest([{ key: "a", title: "three" }], 2);
    await source.harvest([{ key: "a", title: "four" }], 2);
    await land();
    await land();
    expect(await table("20260801")).toEqual([{ key: "a", title: "two", version: 2 }]);
    expect(await table("20260802")).toEqual([{ key: "a", title: "four", version: 4 }]);
  });

  test("has nothing yet of a slice that is under way", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    const again = await source.slice(await source.plan(), at(1), at(2));
    await source.page(again, [
      { key: "a", title: "A, changed" },
      { key: "b", title: "B" },
    ]);
    await land();
    expect(await table()).toEqual([{ key: "a", title: "A", version: 1 }]);
    await source.complete(again);
    await land();
    expect(await table()).toEqual([
      { key: "a", title: "A, changed", version: 2 },
      { key: "b", title: "B", version: 1 },
    ]);
  });

  test("has what a failed slice brought, since the slice that completes the window finds it unchanged", async () => {
    const failed = await source.slice(await source.plan(), at(1), at(2));
    await source.page(failed, [{ key: "a", title: "A" }]);
    expect(await source.complete(failed, "FAILED")).toBe(false);
    await source.harvest([
      { key: "a", title: "A" },
      { key: "b", title: "B" },
    ]);
    await land();
    expect(await table()).toHaveLength(2);
  });

  test("has records of its own endpoint only", async () => {
    const other = await makeSource(database, { table: "other_works" });
    await other.harvest([{ key: "x", title: "X" }]);
    await source.harvest([{ key: "a", title: "A" }]);
    await land();
    await land();
    expect(await table()).toEqual([{ key: "a", title: "A", version: 1 }]);
    expect(await query("select _key from other_works")).toEqual([{ _key: "x" }]);
  });

  test("comes page by page", async () => {
    const slice = await source.slice(await source.plan(), at(1), at(2));
    for (let page = 0; page < 5; page += 1) {
      const records = Array.from({ length: 700 }, (_, no) => ({ key: `${page} ${no}`, title: `Title ${no}` }));
      await source.page(slice, records);
    }
    await source.complete(slice);
    await land();
    expect(await query("select count(*) as rows, count(distinct _key) as keys from crossref_works")).toEqual([
      { rows: 3_500, keys: 3_500 },
    ]);
  });
});

describe("a landing that is interrupted", () => {
  test("after its file is in place announces it the next time, once", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    const item = await claim();
    const failing = settleDeps(() => Promise.reject(new Error("the connection is gone")));
    await expect(settle(failing, await write(item))).rejects.toThrow("the connection is gone");
    expect(await table()).toEqual([{ key: "a", title: "A", version: 1 }]);
    expect(await source.landing()).toMatchObject({ status: "LANDING", landed: 0 });

    await landingLease.release(database.db, [item]);
    expect(await land()).toBe("landed");
    expect(announced).toHaveLength(1);
    expect(await table()).toEqual([{ key: "a", title: "A", version: 1 }]);
  });

  test("can be settled again", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    const written = await write(await claim());
    const failing = settleDeps(() => Promise.reject(new Error("the connection is gone")));
    await expect(settle(failing, written)).rejects.toThrow("the connection is gone");
    expect(await settle(settleDeps(), written)).toBe("landed");
    expect(announced).toHaveLength(1);
  });

  test("by the loss of its lease changes nothing", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    const slow = await claim();
    const written = await write(slow);
    await landingLease.release(database.db, [slow]);
    await source.harvest([{ key: "b", title: "B" }]);
    await land();
    expect(await settle(settleDeps(), written)).toBe("taken away");
    expect(announced).toHaveLength(1);
    expect(await table()).toHaveLength(2);
  });

  test("by a change in the meantime lands again", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    const written = await write(await claim());
    await source.harvest([{ key: "b", title: "B" }]);
    expect(await source.landing()).toMatchObject({ status: "LANDING", wanted: 2 });
    expect(await settle(settleDeps(), written)).toBe("landed");
    expect(await source.landing()).toMatchObject({ status: "PENDING", wanted: 2, landed: 1 });
    expect(await land()).toBe("landed");
    expect(await table()).toHaveLength(2);
    expect(announced).toHaveLength(2);
  });

  test("by a lake that cannot be written is tried again later", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    const written = await write(await claim());
    await rm(lake.dir, { recursive: true });
    expect(await settle(settleDeps(), written)).toBe("retried");
    const landing = await source.landing();
    expect(landing).toMatchObject({ status: "PENDING", attempt: 1, landed: 0 });
    expect(landing["error"]).toMatch(/ENOENT/);
    expect(announced).toEqual([]);
  });

  test("by failures is tried again later, then given up, and a new change brings it back", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    const failed = (item: LandingItem): Ended => ({ item, error: new Error("the disk is full") });
    for (let attempt = 1; attempt < 10; attempt += 1) {
      expect(await settle(settleDeps(), failed(await claim()))).toBe("retried");
      expect(await source.landing()).toMatchObject({ status: "PENDING", attempt, error: "the disk is full" });
      expect(await landingLease.claim(database.db, { limit: 1, holder: "1" })).toEqual([]);
      await database.query("update harvest.landing set due_at = now()");
    }
    expect(await settle(settleDeps(), failed(await claim()))).toBe("failed");
    expect(await source.landing()).toMatchObject({ status: "FAILED", attempt: 10 });
    await source.harvest([{ key: "b", title: "B" }]);
    expect(await source.landing()).toMatchObject({ status: "PENDING", attempt: 0 });
    expect(await land()).toBe("landed");
    expect(await source.landing()).toMatchObject({ status: "LANDED", attempt: 0, error: null });
  });

  test("by lost processes is given up, and a new change brings it back as if none was lost", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    for (let lost = 0; lost < 3; lost += 1) await landingLease.lose(database.db, [await claim()], 3);
    expect(await source.landing()).toMatchObject({ status: "FAILED" });
    await source.harvest([{ key: "b", title: "B" }]);
    await landingLease.lose(database.db, [await claim()], 3);
    expect(await source.landing()).toMatchObject({ status: "PENDING" });
  });
});

describe("the doctor", () => {
  const look = (given: Lake | undefined) => landingCheck(given, []).look(database.db);

  test("names the lake, and says where windows wait for one", async () => {
    expect(await look(lake)).toMatchObject({ verdict: "ok", found: expect.stringContaining(lake.dir) as string });
    expect(await look(undefined)).toMatchObject({ verdict: "ok" });
    await source.harvest([{ key: "a", title: "A" }]);
    expect(await look(lake)).toMatchObject({ verdict: "ok", found: expect.stringContaining("1 window") as string });
    expect(await look(undefined)).toMatchObject({
      verdict: "warning",
      advice: expect.stringContaining("MILLRACE_LAKE_DIR") as string,
    });
  });

  test("names a window that is tried again, with the reason", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    await settle(settleDeps(), { item: await claim(), error: new Error("the column is text") });
    expect(await look(lake)).toMatchObject({
      verdict: "warning",
      found: expect.stringMatching(/1 window, after an error: crossref_works 20260801: the column is text/) as string,
    });
  });

  test("names a window that could not land, with the reason", async () => {
    await source.harvest([{ key: "a", title: "A" }]);
    const item = { ...(await claim()), attempt: 9 };
    await settle(settleDeps(), { item, error: new Error("the disk is full") });
    expect(await look(lake)).toMatchObject({
      verdict: "broken",
      found: expect.stringMatching(/crossref_works 20260801: the disk is full/) as string,
    });
  });
});
