/** The simulator of OpenAlex behaves as the recorded service does. */
import { describe, expect, test } from "vitest";
import { allOpenalexWorks, get, openalexWorks, opened } from "./clients.fixture.ts";
import { startOpenalex } from "./index.ts";

const DAY = "from_updated_date:2026-08-02,to_updated_date:2026-08-02T23:59:59.999999";
const small = { days: ["2026-08-01", "2026-08-02", "2026-08-03"], recordsPerDay: 25, unlimited: true };

describe("a list by cursor", () => {
  test("has every work of the day once, and null on its last page", async () => {
    const simulator = await opened(startOpenalex(small));
    const pages = await allOpenalexWorks(simulator, { filter: DAY, per_page: 10 });
    expect(pages.map((works) => works.length)).toEqual([10, 10, 5]);
    expect(pages.flat().map(({ id, title }) => ({ id, content: title }))).toEqual(
      simulator.records({ from: "2026-08-02", to: "2026-08-03" }).map(({ id, content }) => ({ id, content })),
    );
  });

  test("has a token that is the sort values of the last work, and can be asked for again", async () => {
    const simulator = await opened(startOpenalex(small));
    const { meta, results } = await openalexWorks(simulator, { filter: DAY, per_page: 10, cursor: "*" });
    const cursor = meta.next_cursor ?? "";
    expect(JSON.parse(Buffer.from(cursor, "base64").toString())).toBe(
      `[${Date.parse("2026-08-02")}, '${results.at(-1)?.id}']`,
    );
    const next = { filter: DAY, per_page: 10, cursor };
    expect((await openalexWorks(simulator, next)).results).toEqual((await openalexWorks(simulator, next)).results);
  });

  test("may have a token on its last page, and an empty page behind it", async () => {
    const simulator = await opened(startOpenalex({ ...small, faults: { "token-on-last-page": 1 } }));
    const pages = await allOpenalexWorks(simulator, { filter: DAY, per_page: 25 });
    expect(pages.map((works) => works.length)).toEqual([25, 0]);
  });

  test("may have pages that are short or begin with the last work once more, and loses none", async () => {
    const faults = { "short-page": { next: 1 }, "duplicate-across-pages": { next: 1 } };
    const simulator = await opened(startOpenalex({ ...small, faults }));
    const pages = await allOpenalexWorks(simulator, { filter: DAY, per_page: 10 });
    expect(pages.map((works) => works.length)).toEqual([9, 10, 7]);
    expect(new Set(pages.flat().map(({ id }) => id)).size).toBe(25);
  });
});

describe("parameters", () => {
  test.each([
    ["from_publication_date:2026-08-02", 50],
    ["from_publication_date:2026-08-01,to_publication_date:2026-08-01", 25],
    ["from-created-date:2026-08-03", 25],
    ["from_updated_date:2026-08-02T00:00:01,to_updated_date:2026-08-02T23:59:58", 23],
    [`${DAY},type:article|preprint`, 12],
    ["openalex:W4400000001|https://openalex.org/W4400000002", 2],
    ["doi:10.5555/millrace.3", 1],
    ["title_and_abstract.search:work 7", 6],
  ])("filter=%s selects %i works", async (filter, count) => {
    const simulator = await opened(startOpenalex(small));
    expect((await openalexWorks(simulator, { filter, per_page: 1 })).meta.count).toBe(count);
  });

  test.each([
    ["filter=colour:red", "colour is not a valid field."],
    ["filter=from_updated_date:yesterday", "must be a date"],
    ["per_page=201", "between 1 and 200"],
    ["page=101&per_page=100", "Cursor pagination is required"],
    ["select=id,colour", "colour is not a valid select field."],
    ["cursor=thing", "The cursor value is not valid."],
  ])("%s is refused with 400", async (params, sentence) => {
    const simulator = await opened(startOpenalex(small));
    const { status, text } = await get(`${simulator.baseUrl}/works?api_key=KEY&${params}`);
    expect([status, (JSON.parse(text) as { message: string }).message]).toEqual([
      400,
      expect.stringContaining(sentence),
    ]);
  });

  test("select leaves only the named fields, sample draws, and groups have no results", async () => {
    const simulator = await opened(startOpenalex(small));
    const { results, meta } = await openalexWorks(simulator, { sample: 3, select: "id,title" });
    expect(results.map((work) => Object.keys(work))).toEqual(Array.from({ length: 3 }, () => ["id", "title"]));
    expect(meta).toMatchObject({ count: 3, page: 1 });
    const groups = JSON.parse((await get(`${simulator.baseUrl}/works?group_by=type`)).text) as object;
    expect(groups).toMatchObject({ group_by: [{ key_display_name: "article", count: 19 }, {}, {}, {}] });
    expect(groups).not.toHaveProperty("results");
  });

  test("filters by update need a key", async () => {
    const simulator = await opened(startOpenalex(small));
    expect((await get(`${simulator.baseUrl}/works?filter=${DAY}`)).status).toBe(403);
    expect((await get(`${simulator.baseUrl}/works?filter=from_publication_date:2026-08-02`)).status).toBe(200);
  });
});

describe("a single work", () => {
  test.each(["W4400000003", "https://openalex.org/W4400000003", "https://doi.org/10.5555/millrace.3"])(
    "is found as %s",
    async (name) => {
      const simulator = await opened(startOpenalex(small));
      const { text } = await get(`${simulator.baseUrl}/works/${encodeURIComponent(name)}`);
      expect(JSON.parse(text)).toMatchObject({ id: "https://openalex.org/W4400000003" });
    },
  );

  test("that is unknown is 404 as HTML, and one that was merged leads to another", async () => {
    const simulator = await opened(startOpenalex(small));
    expect(await get(`${simulator.baseUrl}/works/W1`)).toMatchObject({
      status: 404,
      text: expect.stringMatching("<h1>"),
    });
    simulator.faults.set({ "merged-work": { next: 1 } });
    const response = await fetch(`${simulator.baseUrl}/works/W4400000003`, { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([301, "/works/W4400000004"]);
  });
});

describe("money", () => {
  const noon = { now: () => Date.parse("2026-08-04T12:00:00Z") };
  const paying = { ...small, unlimited: false, clock: noon };
  const headersOf = async (url: string) => {
    const { headers } = await get(url);
    return ["cost", "limit", "remaining"].map((name) => headers.get(`x-ratelimit-${name}-usd`));
  };

  test("is what every answer states, by key and kind of request", async () => {
    const simulator = await opened(startOpenalex({ ...paying, budgetsUsd: { PAID: 200 } }));
    const list = `${simulator.baseUrl}/works?per_page=1`;
    expect(await headersOf(list)).toEqual(["0.0001", "0.1", "0.0999"]);
    expect(await headersOf(`${list}&api_key=KEY`)).toEqual(["0.0001", "1", "0.9999"]);
    expect(await headersOf(`${list}&api_key=KEY&search=work`)).toEqual(["0.001", "1", "0.9989"]);
    expect(await headersOf(`${simulator.baseUrl}/works/W4400000003?api_key=KEY`)).toEqual(["0", "1", "0.9989"]);
    expect(await headersOf(`${simulator.baseUrl}/works/W4400000003`)).toEqual(["0.0001", "0.1", "0.0998"]);
    expect(await headersOf(`${list}&api_key=PAID&filter=colour:red`)).toEqual(["0.0001", "200", "199.9999"]);
    expect((await get(list)).headers.get("x-ratelimit-reset")).toBe("43200");
  });

  test("that is spent is 429 with the time until midnight, and there is some again then", async () => {
    let now = noon.now();
    const simulator = await opened(
      startOpenalex({ ...paying, clock: { now: () => now }, budgetsUsd: { KEY: 0.0002 } }),
    );
    const url = `${simulator.baseUrl}/works?per_page=1&api_key=KEY`;
    const statuses = [(await get(url)).status, (await get(url)).status];
    const { status, headers } = await get(url);
    expect([...statuses, status]).toEqual([200, 200, 429]);
    const stated = ["retry-after", "x-ratelimit-remaining-usd", "x-ratelimit-cost-required-usd"];
    expect(stated.map((name) => headers.get(name))).toEqual(["43200", "0", "0.0001"]);
    now += 43_200_000;
    expect((await get(url)).status).toBe(200);
  });

  test("is left where the request was only too fast", async () => {
    const simulator = await opened(startOpenalex({ ...paying, monotonicMs: () => 0 }));
    const url = `${simulator.baseUrl}/works?per_page=1&api_key=KEY`;
    const answers = await Promise.all(Array.from({ length: 101 }, () => get(url)));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(1);
    expect(refused[0]?.headers.get("retry-after")).toBeNull();
    expect(Number(refused[0]?.headers.get("x-ratelimit-remaining-usd"))).toBeGreaterThan(0.9);
  });
});
