/** Lists of plans, tasks, cursors and schedules as tables, and the split of records. */
import { describe, expect, test } from "vitest";
import { cursorsText, lagText, timelinesText } from "./cursors.ts";
import { schedulesText, sourcesText, tasksText } from "./lists.ts";
import { at, BEGIN, completeOf, planOf } from "./plan.fixture.ts";
import { recordsPage } from "./records.ts";
import { plansText } from "./status.ts";

const lines = (text: string) => text.split("\n");

test("plans have their window, start and duration", () => {
  const items = [planOf({ planId: "b", namespace: "orders:1f2e3d4c" }), completeOf({ planId: "a", window: null })];
  expect(lines(plansText({ items, next: "a" }, BEGIN + 60_000))).toEqual([
    "PLAN  SOURCE  ENDPOINT         OPERATION  STATUS    WINDOW                    CREATED               DURATION",
    "b     shop    orders:1f2e3d4c  HARVEST    READY     2026-08-20 to 2026-08-22  2026-08-22T10:00:00Z  1:00",
    "a     shop    orders           HARVEST    COMPLETE                            2026-08-22T10:00:00Z  12.3s",
    "",
    "There are more: --after a",
  ]);
  expect(plansText({ items: [], next: null }, BEGIN)).toBe("There are no such plans.");
  expect(plansText({ items: [planOf({ paused: "shop is paused by ann." })] }, BEGIN)).toContain("  READY, paused  ");
});

test("sources have their address, and those that are not listed are counted", () => {
  const shop = {
    source: "shop",
    name: "Orders",
    baseUrl: "https://a.example.org",
    revision: 2,
    endpoints: 1,
    schedules: 0,
  };
  expect(lines(sourcesText({ items: [{ ...shop, updatedAt: at(0) }], total: 3 }))).toEqual([
    "SOURCE  NAME    ADDRESS                REVISION  ENDPOINTS  SCHEDULES  UPDATED",
    "shop    Orders  https://a.example.org  2         1          0          2026-08-22T10:00:00Z",
    "and 2 more",
  ]);
  expect(sourcesText({ items: [], total: 0 })).toBe("There are no such sources.");
});

test("tasks that are queued say when they are due and why not earlier, others what failed", () => {
  const task = {
    taskId: 7,
    planId: "p",
    sliceId: 17,
    partition: "shop/orders/HARVEST",
    window: null,
    status: "QUEUED",
    scheduledAt: at(90),
    waitReason: "The source throttles.",
    attempts: 1,
    error: "answered 429",
  };
  const items = [task, { ...task, taskId: 6, status: "FAILED", attempts: 5, error: "answered 500\nfor ever" }];
  expect(lines(tasksText({ items }))).toEqual([
    "TASK  PLAN  SLICE  PARTITION            STATUS  ATTEMPTS  DUE                   REASON",
    "7     p     17     shop/orders/HARVEST  QUEUED  1         2026-08-22T10:01:30Z  The source throttles.",
    "6     p     17     shop/orders/HARVEST  FAILED  5                               answered 500",
  ]);
});

test("cursors have their lag behind what could be harvested", () => {
  const cursor = {
    source: "shop",
    operation: "HARVEST",
    key: "updated",
    namespace: "orders",
    value: "2026-08-20T00:00:00.000Z",
    closedUntil: "2026-08-22T09:00:00.000Z",
    lagSeconds: 205_200,
    acceptedGaps: 0,
    planId: "p",
    updatedAt: at(0),
  };
  const items = [cursor, { ...cursor, namespace: "ids", value: "00042", closedUntil: null, lagSeconds: null }];
  expect(lines(cursorsText({ items }))).toEqual([
    "SOURCE  OPERATION  ENDPOINT  KEY      WATERMARK   CLOSED UNTIL          LAG    PLAN  UPDATED",
    "shop    HARVEST    orders    updated  2026-08-20  2026-08-22T09:00:00Z  2d 9h  p     2026-08-22T10:00:00Z",
    "shop    HARVEST    ids       updated  00042                                    p     2026-08-22T10:00:00Z",
  ]);
  expect(lines(cursorsText({ items: [{ ...cursor, acceptedGaps: 2 }] }))).toEqual([
    "SOURCE  OPERATION  ENDPOINT  KEY      WATERMARK   CLOSED UNTIL          LAG    ACCEPTED GAPS  PLAN  UPDATED",
    "shop    HARVEST    orders    updated  2026-08-20  2026-08-22T09:00:00Z  2d 9h  2              p     2026-08-22T10:00:00Z",
  ]);
});

test.each([
  [0, "none"],
  [59, "59s"],
  [61, "1m 1s"],
  [3_600, "1h"],
  [86_400, "1d"],
  [86_460, "1d"],
  [90_000, "1d 1h"],
])("a lag of %d seconds is %s", (seconds, text) => {
  expect(lagText(seconds)).toBe(text);
});

test("schedules have their next time, and what the last one led to", () => {
  const schedule = {
    scheduleId: 3,
    source: "shop",
    name: "hourly",
    endpoint: "orders",
    operation: "HARVEST",
    cron: "5 * * * *",
    timeZone: "UTC",
    paused: false,
    nextAt: at(300),
    lastAt: at(-3_300),
    last: { nothing: "Nothing can be closed." },
  };
  const last = { planId: "p", status: "FAILED" };
  const paused = { ...schedule, scheduleId: 4, name: "daily", paused: true, nextAt: null, last };
  const refused = { ...schedule, scheduleId: 5, name: "later", last: { refused: "The definition\nis wrong." } };
  const unfired = { ...schedule, scheduleId: 6, name: "new", lastAt: null, last: null };
  expect(lines(schedulesText({ items: [schedule, paused, refused, unfired] }))).toEqual([
    "ID  SOURCE  NAME    ENDPOINT  OPERATION  CRON       ZONE  NEXT                  LAST                  RESULT",
    "3   shop    hourly  orders    HARVEST    5 * * * *  UTC   2026-08-22T10:05:00Z  2026-08-22T09:05:00Z  no plan: Nothing can be closed.",
    "4   shop    daily   orders    HARVEST    5 * * * *  UTC   paused                2026-08-22T09:05:00Z  FAILED plan p",
    "5   shop    later   orders    HARVEST    5 * * * *  UTC   2026-08-22T10:05:00Z  2026-08-22T09:05:00Z  refused: The definition",
    "6   shop    new     orders    HARVEST    5 * * * *  UTC   2026-08-22T10:05:00Z",
  ]);
  const held = { ...unfired, held: "shop/orders is paused by Millrace." };
  expect(lines(schedulesText({ items: [held, held] })).slice(1)).toEqual([
    "6   shop    new   orders    HARVEST    5 * * * *  UTC   held",
    "6   shop    new   orders    HARVEST    5 * * * *  UTC   held",
    "held: shop/orders is paused by Millrace.",
  ]);
});

describe("a page of records", () => {
  test("is split without changing a digit", () => {
    const first = `{"key":"a","data":{"id":12345678901234567890,"text":"}]\\"","list":[{"a":1.10}],"next":"x"}}`;
    const second = `{"key":"b","data":null}`;
    expect(recordsPage(`{"items":[${first},${second}],"next":"871.YQ"}`)).toMatchObject({
      items: [first, second],
      next: "871.YQ",
    });
  });

  test("may be empty", () => {
    expect(recordsPage(`{"items":[],"next":"0"}`)).toMatchObject({ items: [], next: "0" });
  });
});

test("the history of a cursor has a line for each event, and names a gap, who accepted it and a rewind", () => {
  const cursor = {
    source: "shop",
    operation: "HARVEST",
    key: "updated",
    namespace: "orders",
    value: "2026-08-20T00:00:00.000Z",
    closedUntil: null,
    lagSeconds: null,
    acceptedGaps: 0,
    planId: "p",
    updatedAt: "2026-08-22T10:00:00.000Z",
  };
  const item = { at: "2026-08-22T10:00:00.000Z", from: "2026-08-19T00:00:00.000Z", to: "2026-08-20T00:00:00.000Z" };
  const items = [
    { ...item, kind: "rewind", planId: null, sliceId: null, by: "ann", reason: "a bad deploy" },
    { ...item, kind: "gap", planId: "p", sliceId: 7, by: null, reason: "over the cap" },
    { ...item, kind: "advance", from: null, planId: "p", sliceId: 6, by: null, reason: null },
  ];
  expect(lines(timelinesText([{ cursor, items, hasMore: true }]))).toEqual([
    "shop/orders HARVEST, at 2026-08-20",
    "2026-08-22T10:00:00Z < rewind   2026-08-19 to 2026-08-20 by ann: a bad deploy",
    "2026-08-22T10:00:00Z ! gap      2026-08-19 to 2026-08-20: over the cap (plan p, slice 7)",
    "2026-08-22T10:00:00Z + advance  the start to 2026-08-20 (plan p, slice 6)",
    "Older entries than these 3 are left out.",
  ]);
  expect(timelinesText([])).toBe("There are no such cursors.");
});
