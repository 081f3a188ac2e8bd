/** The simulator of PubMed behaves as the measured service does. */
import { describe, expect, test } from "vitest";
import { esearch, get, opened, pmids, post, query } from "./clients.fixture.ts";
import { startPubmed } from "./index.ts";

const small = { days: ["2026-08-19", "2026-08-20", "2026-08-21"], recordsPerDay: 50, unlimited: true };
const DAY = { term: "2026/08/20:2026/08/20[crdt]" };

describe("ESearch", () => {
  test("lists the records of a day, by a range in the term or by parameters, with numbers as texts", async () => {
    const simulator = await opened(startPubmed(small));
    const expected = simulator.records({ from: "2026-08-20", to: "2026-08-21" }).map(({ id }) => id);
    const found = await esearch(simulator, { ...DAY, retmax: 1000 });
    expect(found).toMatchObject({ count: "50", retmax: "50", retstart: "0" });
    expect([...found.idlist].sort()).toEqual(expected);
    const dates = { datetype: "mdat", mindate: "2026/08/20", maxdate: "2026/08/20" };
    expect((await esearch(simulator, { term: "asthma", ...dates, retmax: 1000 })).idlist).toEqual(found.idlist);
    expect(await esearch(simulator, { ...DAY, rettype: "count" })).toEqual({ count: "50" });
  });

  test("pages by retstart without a gap", async () => {
    const simulator = await opened(startPubmed(small));
    const pages = await Promise.all(
      [0, 20, 40, 60].map((retstart) => esearch(simulator, { ...DAY, retstart, retmax: 20 })),
    );
    expect(pages.map(({ idlist }) => idlist.length)).toEqual([20, 20, 10, 0]);
    expect(new Set(pages.flatMap(({ idlist }) => idlist)).size).toBe(50);
  });

  test("says that it found nothing, with 200", async () => {
    const simulator = await opened(startPubmed({ ...small, unknownPhrases: ["zzz"] }));
    expect(await esearch(simulator, { term: "zzz AND 2020/01/01[crdt]" })).toMatchObject({
      count: "0",
      idlist: [],
      errorlist: { phrasesnotfound: ["zzz"] },
      warninglist: { outputmessages: ["No items found."] },
    });
  });

  test("never gives more than the first 9,999: cut without an error, then an error with 200", async () => {
    const simulator = await opened(startPubmed({ ...small, days: ["2026-08-20"], recordsPerDay: 10_050 }));
    const all = await esearch(simulator, { ...DAY, retmax: 100_000 });
    expect(all).toMatchObject({ count: "10050", retmax: "9999" });
    expect(all.idlist).toHaveLength(9999);
    const edge = await esearch(simulator, { ...DAY, retstart: 9998, retmax: 10 });
    expect(edge.idlist).toHaveLength(1);
    expect(edge.warninglist?.outputmessages).toEqual(["Restrictions achieved. start and count adjusted to 9998, 1"]);
    const beyond = await get(
      `${simulator.baseUrl}/esearch.fcgi?${query({ db: "pubmed", ...DAY, retmode: "json", retstart: 9999 })}`,
    );
    expect(beyond.status).toBe(200);
    expect(beyond.text).toContain("'retstart' cannot be larger than 9998");
  });

  test.each([12_000, 30_000])(
    "has late entries on a day of %d records, so that ranges of EDAT divide it",
    async (count) => {
      const day = { days: ["2026-08-20"], recordsPerDay: count, writesLate: true };
      const simulator = await opened(startPubmed({ ...small, ...day }));
      const countOf = async (range: string) =>
        Number((await esearch(simulator, { term: `${DAY.term} AND ${range}[edat]`, rettype: "count" })).count);
      // Nothing divides what one day has.
      expect(await countOf("2026/08/20:2026/08/20")).toBeLessThanOrEqual(5_000);
      const before = await countOf("1700/01/01:2024/12/31");
      expect(before).toBeGreaterThan(count / 10);
      expect(before + (await countOf("2025/01/01:2199/12/31"))).toBe(count);
    },
  );

  test("has every record of a smaller day on that day by EDAT too", async () => {
    const simulator = await opened(
      startPubmed({ ...small, days: ["2026-08-20"], recordsPerDay: 9_999, writesLate: true }),
    );
    const found = await esearch(simulator, { term: "2026/08/20:2026/08/20[edat]", rettype: "count" });
    expect(found).toEqual({ count: "9999" });
  });

  test("answers XML in the order of the DTD, to a POST too", async () => {
    const simulator = await opened(startPubmed(small));
    const { text, headers } = await post(`${simulator.baseUrl}/esearch.fcgi`, {
      db: "pubmed",
      ...DAY,
      usehistory: "y",
    });
    expect(headers.get("content-type")).toBe("text/xml; charset=UTF-8");
    expect([...text.matchAll(/<([A-Z]\w+)\/?>/g)].map(([, name]) => name).filter((name) => name !== "Id")).toEqual([
      "Count",
      "RetMax",
      "RetStart",
      "QueryKey",
      "WebEnv",
      "IdList",
      "TranslationSet",
      "QueryTranslation",
    ]);
  });
});

describe("EFetch", () => {
  test("gives the records of ids, articles and chapters of books, and leaves out unknown ones", async () => {
    const simulator = await opened(startPubmed(small));
    const { text } = await post(`${simulator.baseUrl}/efetch.fcgi`, { db: "pubmed", id: "40000039,1,40000040" });
    expect(pmids(text)).toEqual(["40000039", "40000040"]);
    expect(text).toMatch(/^<\?xml version="1.0" \?>\n<!DOCTYPE PubmedArticleSet/);
    expect(text).toMatch(/<PubmedArticle>.*1\.73 m<sup>2<\/sup>.*<PubmedBookArticle>/s);
  });

  test("walks a session by the number asked for, up to its ceiling", async () => {
    const simulator = await opened(startPubmed({ ...small, days: ["2026-08-20"], recordsPerDay: 10_050 }));
    const { webenv = "", querykey = "", idlist } = await esearch(simulator, { ...DAY, usehistory: "y", retmax: 2 });
    const fetched = (retstart: number, retmax: number) =>
      get(
        `${simulator.baseUrl}/efetch.fcgi?${query({ db: "pubmed", WebEnv: webenv, query_key: querykey, retstart, retmax })}`,
      );
    expect(pmids((await fetched(0, 2)).text)).toEqual(idlist);
    expect(pmids((await fetched(9500, 500)).text)).toHaveLength(499);
    expect(await fetched(9999, 500)).toMatchObject({ status: 400, text: expect.stringContaining("cannot be larger") });
    simulator.faults.set({ "token-expiry": { next: 1 } });
    expect(await fetched(0, 2)).toMatchObject({
      status: 400,
      text: expect.stringContaining("Unable to obtain query #1"),
    });
  });
});

describe("limits", () => {
  test("are three a second for an address and ten for a key, with what is left", async () => {
    const simulator = await opened(startPubmed({ ...small, unlimited: false, monotonicMs: () => 0 }));
    const url = `${simulator.baseUrl}/esearch.fcgi?${query({ db: "pubmed", ...DAY })}`;
    const left = [];
    for (let index = 0; index < 3; index += 1) left.push((await get(url)).headers.get("x-ratelimit-remaining"));
    expect(left).toEqual(["2", "1", "0"]);
    const refused = await get(url);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("2");
    expect(JSON.parse(refused.text)).toEqual({
      error: "API rate limit exceeded",
      "api-key": "127.0.0.1",
      count: "4",
      limit: "3",
    });
    const keyed = [];
    for (let index = 0; index < 11; index += 1) keyed.push(await get(`${url}&api_key=KEY`));
    expect(keyed.map(({ status }) => status)).toEqual([...Array(10).fill(200), 429]);
    expect(JSON.parse(keyed.at(-1)?.text ?? "")).toMatchObject({ "api-key": "KEY", count: "11", limit: "10" });
  });
});

test("a URL with too many ids is 414", async () => {
  const simulator = await opened(startPubmed(small));
  const id = Array(1000).fill("40000001").join(",");
  expect((await get(`${simulator.baseUrl}/efetch.fcgi?db=pubmed&id=${id}`)).status).toBe(414);
});
