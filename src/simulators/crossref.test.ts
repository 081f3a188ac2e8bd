/** The simulator of Crossref behaves as the recorded service does. */
import { describe, expect, test } from "vitest";
import { allWorks, get, opened, works } from "./clients.fixture.ts";
import { startCrossref } from "./index.ts";

const DAY = "from-update-date:2026-08-02,until-update-date:2026-08-02";
const small = { days: ["2026-08-01", "2026-08-02", "2026-08-03"], recordsPerDay: 25, unlimited: true };

describe("a list by cursor", () => {
  test("has every work of the day once, from its first instant to its last second", async () => {
    const simulator = await opened(startCrossref(small));
    const pages = await allWorks(simulator, { filter: DAY, rows: 10 });
    expect(pages.map((items) => items.length)).toEqual([10, 10, 5]);
    const items = pages.flat();
    expect(items.map(({ DOI, title }) => ({ id: DOI, content: title[0] })).sort(byId)).toEqual(
      simulator
        .records({ from: "2026-08-02", to: "2026-08-03" })
        .map(({ id, content }) => ({ id, content }))
        .sort(byId),
    );
    expect(items.map(({ deposited }) => deposited["date-time"])).toEqual(
      expect.arrayContaining(["2026-08-02T00:00:00Z", "2026-08-02T23:59:59Z"]),
    );
  });

  test("has one token for all pages, also for the empty one after the last", async () => {
    const simulator = await opened(startCrossref(small));
    const first = await works(simulator, { filter: DAY, rows: 20, cursor: "*" });
    const token = first.message["next-cursor"] ?? "";
    expect(token).toMatch(/^DnF1ZXJ5VGhlbkZldGNo/);
    const second = await works(simulator, { filter: DAY, rows: 20, cursor: token });
    const third = await works(simulator, { filter: DAY, rows: 20, cursor: token });
    expect([second, third].map(({ message }) => message["next-cursor"])).toEqual([token, token]);
    expect([first, second, third].map(({ message }) => message.items.length)).toEqual([20, 5, 0]);
    expect(third.message["total-results"]).toBe(25);
  });

  test("loses a page whose answer is lost", async () => {
    const simulator = await opened(startCrossref(small));
    const { message } = await works(simulator, { filter: DAY, rows: 10, cursor: "*" });
    const again = { filter: DAY, rows: 10, cursor: message["next-cursor"] ?? "" };
    simulator.faults.set({ "answer-lost": { next: 1 } });
    await expect(works(simulator, again)).rejects.toThrow();
    expect((await works(simulator, again)).message.items).toHaveLength(5);
  });

  test("keeps what it had when it began, while works change", async () => {
    const simulator = await opened(startCrossref(small));
    const { message } = await works(simulator, { filter: DAY, rows: 24, cursor: "*" });
    const [last] = simulator.records({ from: "2026-08-02", to: "2026-08-03" }).slice(-1);
    simulator.update({ id: last?.id ?? "", updated: "2026-08-03T12:00:00Z" });
    const rest = await works(simulator, { rows: 24, cursor: message["next-cursor"] ?? "" });
    expect(rest.message.items.map(({ title }) => title[0])).toEqual([last?.content]);
    expect((await works(simulator, { filter: DAY, rows: 0 })).message["total-results"]).toBe(24);
  });

  test("ends with 404 when nobody asked for five minutes", async () => {
    let now = Date.parse("2026-08-04T00:00:00Z");
    const simulator = await opened(startCrossref({ ...small, clock: { now: () => now } }));
    const { message } = await works(simulator, { filter: DAY, rows: 10, cursor: "*" });
    const url = `${simulator.baseUrl}/works?rows=10&cursor=${encodeURIComponent(message["next-cursor"] ?? "")}`;
    now += 299_999;
    expect((await get(url)).status).toBe(200);
    now += 300_000;
    const { status, text } = await get(url);
    expect(status).toBe(404);
    expect(JSON.parse(text)).toMatchObject({
      "message-type": "resource-failure",
      message: [{ type: "cursor-invalid" }],
    });
  });
});

function byId(one: { id: string }, other: { id: string }): number {
  return one.id < other.id ? -1 : 1;
}

describe("parameters", () => {
  test("rows=0 counts, also with a cursor, which comes back as it was", async () => {
    const simulator = await opened(startCrossref(small));
    const counted = await works(simulator, { filter: DAY, rows: 0, cursor: "*" });
    expect(counted.message).toMatchObject({ "total-results": 25, items: [], "next-cursor": "*" });
  });

  test.each([
    ["from-created-date:2026-08", 75],
    ["from-index-date:2026-08-02", 50],
    ["until-deposit-date:2026-08-01", 25],
    ["from-pub-date:2026,until-pub-date:2026-08-02", 50],
    ["from-update-date:2026-08-02T00:00:01Z,until-update-date:2026-08-02T23:59:58Z", 23],
    ["from-update-date:2026-08-02,type:journal-article,type:book-chapter", 25],
    ["doi:10.5555/millrace.0000003", 1],
  ])("filter=%s selects %i works", async (filter, count) => {
    const simulator = await opened(startCrossref(small));
    expect((await works(simulator, { filter, rows: 0 })).message["total-results"]).toBe(count);
  });

  test.each([
    ["rows=1001", "integer-not-valid"],
    ["rows=things", "integer-not-valid"],
    ["offset=10001", "integer-not-valid"],
    ["filter=from-update-date:yesterday", "date-not-valid"],
    ["filter=colour:red", "filter-not-available"],
  ])("%s is refused with 400", async (params, type) => {
    const simulator = await opened(startCrossref(small));
    const { status, text } = await get(`${simulator.baseUrl}/works?${params}`);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ "message-type": "validation-failure", message: [{ type }] });
  });

  test("select leaves only the named fields, and sample draws that many", async () => {
    const simulator = await opened(startCrossref(small));
    const { message } = await works(simulator, { sample: 3, select: "DOI,title" });
    expect(message.items.map((item) => Object.keys(item).sort())).toEqual(
      Array.from({ length: 3 }, () => ["DOI", "title"]),
    );
  });
});

describe("limits", () => {
  test("depend on the pool, and the headers state them", async () => {
    const simulator = await opened(startCrossref({ ...small, unlimited: false }));
    const headers = async (path: string, sent = {}) =>
      Object.fromEntries(
        [...(await get(simulator.baseUrl + path, sent)).headers].filter(([name]) => /^x-(api|rate|conc)/.test(name)),
      );
    const stated = (pool: string, limit: string, concurrency: string) => ({
      "x-api-pool": pool,
      "x-rate-limit-limit": limit,
      "x-rate-limit-interval": "1s",
      "x-concurrency-limit": concurrency,
    });
    expect(await headers("/works?rows=0")).toEqual(stated("public", "5", "1"));
    expect(await headers("/works?rows=0&mailto=a@b.c")).toEqual(stated("polite-array", "3", "3"));
    const agent = { "user-agent": "test (mailto:a@b.c)" };
    expect(await headers("/works/10.5555/millrace.0000001", agent)).toEqual(stated("polite-single", "10", "3"));
    expect(await headers("/works?rows=0", { "crossref-plus-api-token": "Bearer x" })).toEqual({
      "x-api-pool": "plus",
      "x-rate-limit-limit": "150",
      "x-rate-limit-interval": "1s",
    });
  });

  test("above the rate answer 429 as HTML without Retry-After, until the second has passed", async () => {
    let now = 0;
    const simulator = await opened(startCrossref({ ...small, unlimited: false, monotonicMs: () => now }));
    const url = `${simulator.baseUrl}/works?rows=0&mailto=a@b.c`;
    const statuses = [];
    for (now of [0, 0, 400, 999, 1000, 1001]) statuses.push((await get(url)).status);
    expect(statuses).toEqual([200, 200, 200, 429, 200, 200]);
    now = 1002;
    const refused = await get(url);
    expect(refused).toMatchObject({ status: 429, text: expect.stringContaining("<h1>429 Too Many Requests</h1>") });
    expect(refused.headers.get("retry-after")).toBeNull();
    expect(simulator.traffic.summary().keys).toEqual({
      "polite-array a@b.c": { requests: 7, refused: 2, worstSecond: 5, concurrencyMax: 1 },
    });
  });

  test("above the concurrency answer 429", async () => {
    const simulator = await opened(startCrossref({ ...small, unlimited: false, latencyMs: 300 }));
    const url = `${simulator.baseUrl}/works?rows=0`;
    const statuses = await Promise.all([get(url), get(url)]);
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([200, 429]));
    expect(simulator.traffic.summary().concurrencyMax).toBe(2);
  });
});

test("requests one after the other are never counted as open together, however their bodies come", async () => {
  const faults = { "slow-drip": 0.3, gzip: 0.3, latency: 0.1 };
  const simulator = await opened(startCrossref({ ...small, recordsPerDay: 1000, faults, faultDelayMs: 10 }));
  for (let index = 0; index < 60; index += 1) await get(`${simulator.baseUrl}/works?rows=${1 + ((index * 97) % 1000)}`);
  expect(simulator.traffic.summary()).toMatchObject({ requests: 60, concurrencyMax: 1 });
});

test("a work is found by its DOI, and an unknown one is 404 as text", async () => {
  const simulator = await opened(startCrossref(small));
  const found = await get(`${simulator.baseUrl}/works/10.5555%2Fmillrace.0000001`);
  expect(JSON.parse(found.text)).toMatchObject({
    "message-type": "work",
    message: { DOI: "10.5555/millrace.0000001" },
  });
  expect(await get(`${simulator.baseUrl}/works/10.5555/other`)).toMatchObject({
    status: 404,
    text: "Resource not found.",
  });
});
