/** The simulator of Europe PMC behaves as the recorded service does. */
import { describe, expect, test } from "vitest";
import { allArticles, articles, articlesOf, get, opened, post } from "./clients.fixture.ts";
import { startEuropepmc } from "./index.ts";

const DAY = "UPDATE_DATE:[2026-08-02 TO 2026-08-02]";
const small = { days: ["2026-08-01", "2026-08-02", "2026-08-03"], recordsPerDay: 25, unlimited: true };

describe("a search", () => {
  test("has every article of the day once, under a key of source and id", async () => {
    const simulator = await opened(startEuropepmc(small));
    const pages = await allArticles(simulator, { query: DAY, pageSize: 10 });
    expect(pages.map((page) => page.length)).toEqual([10, 10, 5]);
    const found = pages.flat().map(({ source, id, title }) => ({ id: `${source}:${id}`, content: title }));
    expect(found).toEqual(
      simulator.records({ from: "2026-08-02", to: "2026-08-03" }).map(({ id, content }) => ({ id, content })),
    );
    expect(new Set(pages.flat().map(({ id }) => id)).size).toBe(20);
  });

  test("has no mark on its last page", async () => {
    const simulator = await opened(startEuropepmc(small));
    const whole = await articles(simulator, { query: DAY });
    expect([whole.hitCount, articlesOf(whole).length, whole.nextCursorMark]).toEqual([25, 25, undefined]);
    const first = await articles(simulator, { query: DAY, pageSize: 24 });
    expect(first.nextCursorMark).toMatch(/^AoII/);
    const last = await articles(simulator, { query: DAY, pageSize: 24, cursorMark: first.nextCursorMark ?? "" });
    expect([articlesOf(last).length, last.nextCursorMark]).toEqual([1, undefined]);
  });

  test("can be asked for again at any mark, and a change before it moves nothing", async () => {
    const simulator = await opened(startEuropepmc(small));
    const first = await articles(simulator, { query: DAY, pageSize: 10 });
    const next = { query: DAY, pageSize: 10, cursorMark: first.nextCursorMark ?? "" };
    const second = articlesOf(await articles(simulator, next));
    const [gone] = articlesOf(first);
    simulator.update({ id: `${gone?.source}:${gone?.id}`, updated: "2026-08-03T12:00:00Z" });
    expect(articlesOf(await articles(simulator, next))).toEqual(second);
  });

  test("is in the order of a field, with marks of another form", async () => {
    const simulator = await opened(startEuropepmc({ ...small, recordsPerDay: 100 }));
    const pages = await allArticles(simulator, { query: DAY, pageSize: 30, sort: "CITED asc" });
    const cited = pages.flat().map(({ citedByCount }) => Number(citedByCount));
    expect(cited).toEqual(cited.toSorted((one, other) => one - other));
    expect(cited).toHaveLength(100);
    expect((await articles(simulator, { query: DAY, sort: "CITED asc", pageSize: 1 })).nextCursorMark).toMatch(/^AoIG/);
  });

  test.each([
    ["FIRST_IDATE:[2026-08-02 TO *]", 50],
    ["FIRST_PDATE:2026-08-01", 25],
    [`${DAY} AND SRC:AGR`, 5],
    [`${DAY} AND NOT SRC:AGR`, 20],
    ["SRC:MED AND EXT_ID:38000003", 1],
    ["(SRC:MED OR SRC:AGR) AND EXT_ID:38000003", 2],
    ['SRC:MED AND EXT_ID:"38000003"', 0],
    ['work AND NOT PUB_TYPE:"retracted publication"', 75],
    ["asdkfjhasdkfjhasdfasdasdasdfgsagsd", 0],
  ])("query=%s finds %i articles", async (query, count) => {
    const simulator = await opened(startEuropepmc(small));
    expect((await articles(simulator, { query, pageSize: 1 })).hitCount).toBe(count);
  });

  test("may be a form, and XML", async () => {
    const simulator = await opened(startEuropepmc(small));
    const { text } = await post(`${simulator.baseUrl}/searchPOST`, { query: DAY, pageSize: "2" });
    expect(text).toMatch(/^<\?xml [^]*<hitCount>25<\/hitCount>[^]*(<result><id>\d+<\/id>[^]*){2}/);
  });
});

describe("what is wrong is said with 200:", () => {
  test("a page size, in words", async () => {
    const simulator = await opened(startEuropepmc(small));
    const { status, text } = await get(`${simulator.baseUrl}/search?query=x&format=json&pageSize=1001`);
    expect([status, JSON.parse(text)]).toEqual([
      200,
      { errCode: 404, errMsg: "Invalid page size provided. Valid size is between 1 and 1000" },
    ]);
  });

  test.each(["sort=WEIGHT", "cursorMark=thing", "resultType=full", "query=%28x"])(
    "%s, by the version alone",
    async (params) => {
      const simulator = await opened(startEuropepmc(small));
      const { status, text } = await get(
        `${simulator.baseUrl}/search?query=x&format=json&${params}`.replace(/query=x&(.*query=)/, "$1"),
      );
      expect([status, text]).toEqual([200, '{"version":"6.9"}']);
    },
  );
});

describe("faults", () => {
  test("bare-version strikes a request that is right", async () => {
    const simulator = await opened(startEuropepmc({ ...small, faults: { "bare-version": { next: 1 } } }));
    expect(await articles(simulator, { query: DAY })).toEqual({ version: "6.9" });
    expect((await articles(simulator, { query: DAY })).hitCount).toBe(25);
  });

  test("token-on-last-page leads to an empty page that repeats the mark", async () => {
    const simulator = await opened(startEuropepmc({ ...small, faults: { "token-on-last-page": 1 } }));
    const { nextCursorMark = "" } = await articles(simulator, { query: DAY });
    const behind = await articles(simulator, { query: DAY, cursorMark: nextCursorMark });
    expect([articlesOf(behind), behind.nextCursorMark]).toEqual([[], nextCursorMark]);
    simulator.faults.set({ "empty-result-list": 1 });
    expect((await articles(simulator, { query: DAY, cursorMark: nextCursorMark })).resultList).toEqual({});
  });

  test("scalar-result makes a list of one its member", async () => {
    const simulator = await opened(startEuropepmc({ ...small, faults: { "scalar-result": 1 } }));
    const { resultList } = await articles(simulator, { query: DAY, pageSize: 1 });
    expect(resultList.result).toMatchObject({ source: "MED", id: expect.any(String) });
  });
});

test("a tenth request of a second is answered, and an eleventh is refused", async () => {
  const simulator = await opened(startEuropepmc({ ...small, unlimited: false, monotonicMs: () => 0 }));
  const statuses = await Promise.all(Array.from({ length: 11 }, () => get(`${simulator.baseUrl}/search?query=x`)));
  expect(statuses.filter(({ status }) => status === 200)).toHaveLength(10);
  expect(statuses.filter(({ status }) => status === 429)).toHaveLength(1);
});
