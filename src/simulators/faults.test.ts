/** Each fault of the simulators does what its name says, and only when it is set. */

import { request as send } from "node:http";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import {
  allOai,
  allWorks,
  articles,
  esearch,
  get,
  oai,
  openalexWorks,
  opened,
  pmids,
  query,
  works,
} from "./clients.fixture.ts";
import { FAULTS } from "./common/faults.ts";
import { SIMULATORS, startArxiv, startCrossref, startEuropepmc, startOpenalex, startPubmed } from "./index.ts";

const small = { days: ["2026-08-19", "2026-08-20"], recordsPerDay: 50, unlimited: true, faultDelayMs: 40 };
const DAY = { filter: "from-update-date:2026-08-20,until-update-date:2026-08-20" };
const LIST = { verb: "ListRecords", metadataPrefix: "arXiv", from: "2026-08-20", until: "2026-08-20" };

/** The first bytes of an answer as they come, without decompression. */
function raw(url: string): Promise<{ headers: Record<string, unknown>; pieces: Buffer[] }> {
  return new Promise((resolve, reject) => {
    const request = send(url, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () => resolve({ headers: response.headers, pieces })).on("error", reject);
    });
    request.on("error", reject).end();
  });
}

describe("in the transport", () => {
  test.each([
    ["http-429", 429],
    ["http-500", 500],
    ["http-503", 503],
  ])("%s answers HTML, and the next request works", async (name, status) => {
    const simulator = await opened(startCrossref({ ...small, retryAfterSeconds: 7 }));
    simulator.faults.set({ [name]: { next: 1 } });
    const failed = await get(`${simulator.baseUrl}/works?rows=0`);
    expect(failed.status).toBe(status);
    expect(failed.headers.get("content-type")).toBe("text/html");
    expect(failed.headers.get("retry-after")).toBe(status === 503 ? "7" : null);
    expect((await get(`${simulator.baseUrl}/works?rows=0`)).status).toBe(200);
  });

  test("http-500-empty has no body, and the next request works", async () => {
    const simulator = await opened(startCrossref({ ...small, faults: { "http-500-empty": { next: 1 } } }));
    expect(await get(`${simulator.baseUrl}/works?rows=0`)).toMatchObject({ status: 500, text: "" });
    expect((await get(`${simulator.baseUrl}/works?rows=0`)).status).toBe(200);
  });

  test("wrong-content-type changes nothing but the header", async () => {
    const simulator = await opened(startCrossref(small));
    const { text } = await get(`${simulator.baseUrl}/works`);
    simulator.faults.set({ "wrong-content-type": { next: 1 } });
    const lying = await get(`${simulator.baseUrl}/works`);
    expect(lying.headers.get("content-type")).toBe("text/html;charset=ISO-8859-1");
    expect(lying.text).toBe(text);
  });

  test("truncated-body is a whole answer that is no JSON", async () => {
    const simulator = await opened(startCrossref({ ...small, faults: { "truncated-body": 1 } }));
    const { status, text } = await get(`${simulator.baseUrl}/works`);
    expect(status).toBe(200);
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
  });

  test("reset-after-headers fails in the middle of the body, after the source has moved on", async () => {
    const simulator = await opened(startCrossref(small));
    const { message } = await works(simulator, { ...DAY, rows: 20, cursor: "*" });
    simulator.faults.set({ "reset-after-headers": { next: 1 } });
    const url = `${simulator.baseUrl}/works?${query({ rows: 20, cursor: message["next-cursor"] ?? "" })}`;
    const response = await fetch(url);
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
    expect((await works(simulator, { rows: 20, cursor: message["next-cursor"] ?? "" })).message.items).toHaveLength(10);
    expect(simulator.traffic.summary().answers).toEqual({ "200": 2, lost: 1 });
  });

  test("reset-before-headers fails before the source has done anything", async () => {
    const simulator = await opened(startCrossref(small));
    const { message } = await works(simulator, { ...DAY, rows: 20, cursor: "*" });
    const next = { rows: 20, cursor: message["next-cursor"] ?? "" };
    simulator.faults.set({ "reset-before-headers": { next: 1 } });
    await expect(works(simulator, next)).rejects.toThrow();
    expect((await works(simulator, next)).message.items).toHaveLength(20);
  });

  test("slow-drip sends a body in pieces", async () => {
    const simulator = await opened(startCrossref({ ...small, faults: { "slow-drip": 1 } }));
    const { pieces } = await raw(`${simulator.baseUrl}/works`);
    expect(pieces.length).toBeGreaterThan(3);
    expect(JSON.parse(Buffer.concat(pieces).toString())).toMatchObject({ status: "ok" });
  });

  test("gzip compresses for a client that did not ask; one that asks gets it anyway", async () => {
    const simulator = await opened(startCrossref(small));
    expect((await raw(`${simulator.baseUrl}/works`)).headers["content-encoding"]).toBeUndefined();
    expect((await get(`${simulator.baseUrl}/works`)).headers.get("content-encoding")).toBe("gzip");
    simulator.faults.set({ gzip: { next: 1 } });
    const { headers, pieces } = await raw(`${simulator.baseUrl}/works`);
    expect(headers["content-encoding"]).toBe("gzip");
    expect(JSON.parse(gunzipSync(Buffer.concat(pieces)).toString())).toMatchObject({ status: "ok" });
  });

  test("latency delays an answer", async () => {
    const simulator = await opened(startCrossref({ ...small, faultDelayMs: 500 }));
    simulator.faults.set({ latency: { next: 1 } });
    const slow = get(`${simulator.baseUrl}/works?rows=0`).then(() => "slow");
    const fast = get(`${simulator.baseUrl}/works?rows=0`).then(() => "fast");
    expect(await Promise.race([slow, fast])).toBe("fast");
    await slow;
  });

  test("clock-skew and retry-after-on-200 are in the headers", async () => {
    const clock = { now: () => Date.parse("2026-08-21T00:00:00Z") };
    const simulator = await opened(
      startCrossref({ ...small, clock, faults: { "clock-skew": 1, "retry-after-on-200": 1 } }),
    );
    const { status, headers } = await get(`${simulator.baseUrl}/works`);
    expect([status, headers.get("date"), headers.get("retry-after")]).toEqual([
      200,
      "Fri, 21 Aug 2026 01:00:00 GMT",
      "1",
    ]);
  });
});

describe("in the protocol", () => {
  test("duplicate-across-pages repeats a record and loses none", async () => {
    const simulator = await opened(startCrossref({ ...small, faults: { "duplicate-across-pages": { next: 2 } } }));
    const dois = (await allWorks(simulator, { ...DAY, rows: 20 })).flat().map(({ DOI }) => DOI);
    expect([dois.length, new Set(dois).size]).toEqual([52, 50]);
    const other = await opened(
      startArxiv({ ...small, pageSize: 20, faults: { "duplicate-across-pages": { next: 2 } } }),
    );
    const ids = (await allOai(other, LIST)).flatMap(({ identifiers }) => identifiers);
    expect([ids.length, new Set(ids).size]).toEqual([52, 50]);
    const pubmed = await opened(startPubmed({ ...small, faults: { "duplicate-across-pages": 1 } }));
    const { idlist } = await esearch(pubmed, { term: "2026/08/20[crdt]", retstart: 20, retmax: 20 });
    expect([idlist.length, idlist.at(-1)]).toEqual([
      21,
      (await esearch(pubmed, { term: "2026/08/20[crdt]" })).idlist[19],
    ]);
  });

  test("short-page shortens a page that is not the last, and loses none", async () => {
    const simulator = await opened(startCrossref({ ...small, faults: { "short-page": { next: 1 } } }));
    const pages = await allWorks(simulator, { ...DAY, rows: 20 });
    expect(pages.map((items) => items.length)).toEqual([19, 20, 11]);
    const other = await opened(startArxiv({ ...small, pageSize: 20, faults: { "short-page": { next: 1 } } }));
    expect((await allOai(other, LIST)).map(({ identifiers }) => identifiers.length)).toEqual([19, 20, 11]);
  });

  test("total-off-by-one announces another number, and the list has all that there are", async () => {
    const off = { ...small, pageSize: 20, completeListSize: true, faults: { "total-off-by-one": 1 } };
    const announced = {
      crossref: async () =>
        (await works(await opened(startCrossref(off)), { ...DAY, rows: 0 })).message["total-results"],
      pubmed: async () => Number((await esearch(await opened(startPubmed(off)), { term: "2026/08/20[crdt]" })).count),
      europepmc: async () =>
        (await articles(await opened(startEuropepmc(off)), { query: "UPDATE_DATE:2026-08-20" })).hitCount,
      openalex: async () => {
        const filter = "from_updated_date:2026-08-20,to_updated_date:2026-08-20";
        return (await openalexWorks(await opened(startOpenalex(off)), { filter, cursor: "*" })).meta.count;
      },
      arxiv: async () => {
        const pages = await allOai(await opened(startArxiv(off)), LIST);
        expect(pages.flatMap(({ identifiers }) => identifiers)).toHaveLength(50);
        return Number(/completeListSize='(\d+)'/.exec(pages[0]?.text ?? "")?.[1]);
      },
    };
    for (const [name, ask] of Object.entries(announced)) expect(Math.abs((await ask()) - 50), name).toBe(1);
  });

  test("of OAI-PMH: pages of any size, and noRecordsMatch behind the last page, which loses none", async () => {
    const faults = { "variable-page-size": 1, "no-records-at-end": { next: 1 } };
    const simulator = await opened(startArxiv({ ...small, pageSize: 20, faults }));
    const pages = await allOai(simulator, LIST);
    expect(pages.at(-1)).toMatchObject({ status: 200, error: "noRecordsMatch" });
    expect(pages.flatMap(({ identifiers }) => identifiers)).toHaveLength(50);
    expect(new Set(pages.slice(0, -1).map(({ identifiers }) => identifiers.length)).size).toBeGreaterThan(1);
  });

  test("control-character puts a U+000B into a text of XML", async () => {
    const simulator = await opened(startArxiv({ ...small, pageSize: 20, faults: { "control-character": 1 } }));
    expect((await oai(simulator, LIST)).text.split("\u000b")[1]).toMatch(/^\w<\/resumptionToken>/);
    const other = await opened(startPubmed({ ...small, faults: { "control-character": 1 } }));
    const { text } = await get(`${other.baseUrl}/efetch.fcgi?db=pubmed&id=40000001`);
    expect(text.split("\u000b")[1]).toMatch(/^\w<\/ArticleId>/);
  });

  test("order-shuffle gives the same works in another order", async () => {
    const simulator = await opened(startCrossref(small));
    const list = async () => (await allWorks(simulator, { ...DAY, rows: 20 })).flat().map(({ DOI }) => DOI);
    const before = await list();
    expect(await list()).toEqual(before);
    simulator.faults.set({ "order-shuffle": { next: 1 } });
    const after = await list();
    expect(after).not.toEqual(before);
    expect([...after].sort()).toEqual([...before].sort());
  });

  test("header-change halves the limit from the next request on, until it strikes again", async () => {
    const simulator = await opened(startPubmed({ ...small, unlimited: false, monotonicMs: steps(1000) }));
    const limit = async () =>
      (await get(`${simulator.baseUrl}/esearch.fcgi?term=x&api_key=KEY`)).headers.get("x-ratelimit-limit");
    simulator.faults.set({ "header-change": { next: 2 } });
    expect([await limit(), await limit(), await limit()]).toEqual(["10", "5", "10"]);
    const other = await opened(startCrossref({ ...small, unlimited: false, rate: { requests: 900 } }));
    other.faults.set({ "header-change": { next: 1 } });
    const limits = [];
    for (let index = 0; index < 2; index += 1)
      limits.push((await get(`${other.baseUrl}/works?rows=0`)).headers.get("x-rate-limit-limit"));
    expect(limits).toEqual(["900", "450"]);
  });

  test("late-arrival adds a record with an old date, update-during-paging a version", async () => {
    const simulator = await opened(startCrossref(small));
    const before = simulator.records();
    simulator.faults.set({ "late-arrival": { next: 1 } });
    await works(simulator, { rows: 0 });
    expect(simulator.records()).toHaveLength(101);
    expect(simulator.records({ from: "2026-08-19", to: "2026-08-21" })).toHaveLength(101);
    simulator.faults.set({ "update-during-paging": { next: 1 } });
    await works(simulator, { rows: 0 });
    const [changed, ...others] = simulator.records().filter(({ version }) => version > 1);
    expect(others).toEqual([]);
    expect(changed?.content).toMatch(/, revision 2$/);
    expect(before.map(({ content }) => content)).not.toContain(changed?.content);
  });

  test("token-expiry forgets the token of the next page", async () => {
    const simulator = await opened(startCrossref(small));
    const { message } = await works(simulator, { ...DAY, rows: 20, cursor: "*" });
    simulator.faults.set({ "token-expiry": { next: 1 } });
    const url = `${simulator.baseUrl}/works?${query({ cursor: message["next-cursor"] ?? "" })}`;
    expect([(await get(url)).status, (await get(url)).status]).toEqual([404, 404]);
    const other = await opened(startArxiv({ ...small, pageSize: 20 }));
    const { token = "" } = await oai(other, LIST);
    other.faults.set({ "token-expiry": { next: 1 } });
    expect((await oai(other, { verb: "ListRecords", resumptionToken: token })).error).toBe("badResumptionToken");
  });

  test("of NCBI: the rate-limit body under 200, a time-out as 400, an error with 200, deleted and missing records", async () => {
    const simulator = await opened(startPubmed(small));
    const url = `${simulator.baseUrl}/efetch.fcgi?db=pubmed&id=40000001,40000002`;
    simulator.faults.set({ "rate-limit-body-200": { next: 1 } });
    expect(await get(url)).toMatchObject({ status: 200, text: expect.stringContaining("API rate limit exceeded") });
    simulator.faults.set({ "timeout-400": { next: 1 } });
    expect(await get(url)).toMatchObject({ status: 400, text: expect.stringContaining("Status: Timeout") });
    simulator.faults.set({ "error-200": { next: 1 } });
    expect((await esearch(simulator, { term: "x" })).ERROR).toContain("Search Backend failed");
    expect((await esearch(simulator, { term: "x" })).ERROR).toBeUndefined();
    simulator.remove("40000003");
    simulator.faults.set({ "delete-citation": { next: 1 } });
    const { text } = await get(`${url},40000003`);
    expect(pmids(text.split("<DeleteCitation>")[0] ?? "")).toEqual(["40000001", "40000002"]);
    expect(pmids(text.split("<DeleteCitation>")[1] ?? "")).toEqual(["40000003", "23203860"]);
    simulator.faults.set({ "missing-pmid": { next: 1 } });
    expect(pmids((await get(url)).text)).toEqual(["40000001"]);
    expect(pmids((await get(url)).text)).toEqual(["40000001", "40000002"]);
  });
});

/** A clock that moves on with every look. */
function steps(ms: number): () => number {
  let now = 0;
  return () => (now += ms);
}

describe("the table of faults", () => {
  test("has no fault that no simulator has", () => {
    const all = Object.values(SIMULATORS).flatMap(({ faults }) => [...faults]);
    expect(new Set(all)).toEqual(new Set(Object.keys(FAULTS)));
  });

  test("strikes as often as the seed says, and counts", async () => {
    const counts = await Promise.all(
      [7, 7, 8].map(async (seed) => {
        const simulator = await opened(startCrossref({ ...small, seed, faults: { "http-500": 0.5 } }));
        const statuses = [];
        for (let index = 0; index < 20; index += 1)
          statuses.push((await get(`${simulator.baseUrl}/works?rows=0`)).status);
        expect(simulator.faults.table()["http-500"]?.struck).toBe(statuses.filter((status) => status === 500).length);
        return statuses.join();
      }),
    );
    expect(counts[0]).toBe(counts[1]);
    expect(counts[0]).not.toBe(counts[2]);
    expect(counts[0]).toMatch(/200.*500|500.*200/);
  });

  test("lets requests pass first where it says so", async () => {
    const simulator = await opened(startCrossref({ ...small, faults: { "http-500": { next: 1, after: 2 } } }));
    const statuses = [];
    for (let index = 0; index < 4; index += 1) statuses.push((await get(`${simulator.baseUrl}/works?rows=0`)).status);
    expect(statuses).toEqual([200, 200, 500, 200]);
  });

  test("strikes only paths that contain a text", async () => {
    const simulator = await opened(startPubmed({ ...small, faults: { "http-500": { next: 1, path: "efetch" } } }));
    expect((await get(`${simulator.baseUrl}/esearch.fcgi?term=x`)).status).toBe(200);
    expect((await get(`${simulator.baseUrl}/efetch.fcgi?id=1`)).status).toBe(500);
  });

  test.each([
    [{ "http-492": 0.5 }, "There is no fault `http-492` here. Did you mean `http-429`?"],
    [{ "missing-pmid": 1 }, "There is no fault `missing-pmid` here. Faults: http-429, http-500"],
    [{ "http-429": 2 }, "The fault http-429 takes a probability from 0 to 1"],
    [{ "http-429": { next: -1 } }, "The fault http-429 takes"],
    [{ "http-429": { after: 0.5 } }, "The fault http-429 takes"],
    [{ "http-429": { often: 1 } }, "The fault http-429 takes"],
  ])("refuses %j", async (table, sentence) => {
    const simulator = await opened(startCrossref(small));
    expect(() => simulator.faults.set(table)).toThrow(sentence);
    expect(simulator.faults.table()).toEqual({});
  });
});
