/** The simulator of arXiv's OAI-PMH behaves as the production source says, and its options make it another server. */
import { describe, expect, test } from "vitest";
import { allOai, get, oai, opened } from "./clients.fixture.ts";
import { startArxiv } from "./index.ts";

const small = { days: ["2026-08-19", "2026-08-20", "2026-08-21"], recordsPerDay: 50, unlimited: true, pageSize: 20 };
const LIST = { verb: "ListRecords", metadataPrefix: "arXiv" };
const DAY = { ...LIST, from: "2026-08-20", until: "2026-08-20" };

describe("a list", () => {
  test("has every record of its days once, page by page", async () => {
    const simulator = await opened(startArxiv(small));
    const pages = await allOai(simulator, { ...LIST, from: "2026-08-19", until: "2026-08-20" });
    expect(pages.map(({ identifiers }) => identifiers.length)).toEqual([20, 20, 20, 20, 20]);
    expect(pages.flatMap(({ identifiers }) => identifiers)).toEqual(
      simulator.records({ from: "2026-08-19", to: "2026-08-21" }).map(({ id }) => id),
    );
  });

  test("has a token that is the query of the rest, encoded once more, and an empty one at the end", async () => {
    const simulator = await opened(startArxiv(small));
    const pages = await allOai(simulator, { ...LIST, from: "2026-08-19", until: "2026-08-20" });
    expect(pages.map(({ token }) => token && decodeURIComponent(token))).toEqual([
      "verb=ListRecords&metadataPrefix=arXiv&from=2026-08-19&until=2026-08-20&skip=20",
      "verb=ListRecords&metadataPrefix=arXiv&from=2026-08-19&until=2026-08-20&skip=40",
      "verb=ListRecords&metadataPrefix=arXiv&from=2026-08-20&until=2026-08-20&skip=10",
      "verb=ListRecords&metadataPrefix=arXiv&from=2026-08-20&until=2026-08-20&skip=30",
      "",
    ]);
    expect(pages[0]?.text).toMatch(/<resumptionToken expirationDate='\d{4}-\d\d-\d\dT00:00:00Z'>verb%3DListRecords%26/);
  });

  test("of one page has no token at all", async () => {
    const simulator = await opened(startArxiv({ ...small, pageSize: 50 }));
    const page = await oai(simulator, DAY);
    expect(page.identifiers).toHaveLength(50);
    expect(page.token).toBeUndefined();
  });

  test("can be asked for again at any token, until midnight", async () => {
    let now = Date.parse("2026-08-25T23:59:59Z");
    const simulator = await opened(startArxiv({ ...small, clock: { now: () => now } }));
    const resumptionToken = (await oai(simulator, DAY)).token ?? "";
    const again = { verb: "ListRecords", resumptionToken };
    expect((await oai(simulator, again)).identifiers).toEqual((await oai(simulator, again)).identifiers);
    now += 1000;
    expect(await oai(simulator, again)).toMatchObject({ status: 200, error: "badResumptionToken" });
  });

  test("of identifiers has headers only, and a set selects what is below it", async () => {
    const simulator = await opened(startArxiv(small));
    const page = await oai(simulator, { ...DAY, verb: "ListIdentifiers", set: "physics" });
    expect(page.identifiers).toHaveLength(20);
    expect(page.text).not.toContain("<metadata>");
    expect(new Set([...page.text.matchAll(/<setSpec>([^<]+)/g)].map(([, set]) => set))).toEqual(
      new Set(["physics:hep-th", "physics:quant-ph"]),
    );
  });

  test("shows a deleted record without metadata, on the day of its deletion", async () => {
    const simulator = await opened(startArxiv(small));
    const [first] = simulator.records();
    simulator.remove(first?.id ?? "", "2026-08-20T12:00:00Z");
    const pages = await allOai(simulator, DAY);
    expect(pages.flatMap(({ deleted }) => deleted)).toEqual([first?.id]);
    expect(simulator.records({ from: "2026-08-20", to: "2026-08-21" }).filter(({ deleted }) => deleted)).toMatchObject([
      { id: first?.id },
    ]);
    expect(pages.flatMap(({ titles }) => titles)).toHaveLength(50);
  });

  test("loses a record where one of the day changes between pages: only closed days are safe", async () => {
    const simulator = await opened(startArxiv(small));
    const first = await oai(simulator, DAY);
    simulator.update({ id: first.identifiers[0] ?? "", updated: "2026-08-21T12:00:00Z" });
    const second = await oai(simulator, { verb: "ListRecords", resumptionToken: first.token ?? "" });
    const expected = simulator.records({ from: "2026-08-20", to: "2026-08-21" }).map(({ id }) => id);
    expect(second.identifiers).toEqual(expected.slice(20, 40));
    expect([...first.identifiers, ...second.identifiers]).not.toContain(expected[19]);
  });
});

describe("errors of the protocol", () => {
  test.each([
    [{ ...LIST, from: "2020-01-01", until: "2020-01-01" }, "noRecordsMatch"],
    [{ verb: "ListRecords", resumptionToken: "nonsense" }, "badResumptionToken"],
    [{ ...LIST, from: "2026-08-21", until: "2026-08-20" }, "badArgument"],
    [{ ...LIST, from: "2001-01-01" }, "badArgument"],
    [{ ...LIST, until: "2999-01-01" }, "badArgument"],
    [{ ...LIST, from: "2026-08-20T00:00:00Z" }, "badArgument"],
    [{ verb: "ListRecords" }, "badArgument"],
    [{ ...LIST, metadataPrefix: "marc" }, "cannotDisseminateFormat"],
    [{ verb: "ListRecipes" }, "badVerb"],
    [{ verb: "GetRecord", metadataPrefix: "arXiv", identifier: "oai:arXiv.org:0000.0000" }, "idDoesNotExist"],
  ])("%j is %s with 200", async (params, error) => {
    const simulator = await opened(startArxiv(small));
    expect(await oai(simulator, params)).toMatchObject({ status: 200, error });
  });

  test("have another status where the server has", async () => {
    const simulator = await opened(startArxiv({ ...small, errorStatus: 422 }));
    expect(await oai(simulator, { ...LIST, from: "2020-01-01", until: "2020-01-01" })).toMatchObject({
      status: 422,
      error: "noRecordsMatch",
    });
  });
});

describe("another server", () => {
  test("may count its list in the token", async () => {
    const simulator = await opened(startArxiv({ ...small, completeListSize: true }));
    const pages = await allOai(simulator, DAY);
    expect(pages.map(({ text }) => /completeListSize='(\d+)' cursor='(\d+)'/.exec(text)?.slice(1))).toEqual([
      ["50", "0"],
      ["50", "20"],
      ["50", "40"],
    ]);
  });

  test("may have times to the second", async () => {
    const simulator = await opened(startArxiv({ ...small, granularity: "second" }));
    const page = await oai(simulator, { ...LIST, from: "2026-08-20T00:00:00Z", until: "2026-08-20T00:00:00Z" });
    expect(page.identifiers).toHaveLength(1);
    expect(page.text).toContain("<datestamp>2026-08-20T00:00:00Z</datestamp>");
    expect((await oai(simulator, { verb: "Identify" })).text).toContain(
      "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity>",
    );
  });

  test("may have pages of any size", async () => {
    const simulator = await opened(startArxiv({ ...small, faults: { "variable-page-size": 1 } }));
    const pages = await allOai(simulator, DAY);
    expect(new Set(pages.map(({ identifiers }) => identifiers.length)).size).toBeGreaterThan(1);
    expect(pages.flatMap(({ identifiers }) => identifiers)).toHaveLength(50);
  });
});

test("another path is 404", async () => {
  const simulator = await opened(startArxiv(small));
  expect((await get(`${simulator.baseUrl}/oai/oai?verb=Identify`)).status).toBe(404);
});

test("a second request within three seconds is 503 with Retry-After", async () => {
  let now = 0;
  const simulator = await opened(startArxiv({ ...small, unlimited: false, monotonicMs: () => now }));
  expect((await oai(simulator, DAY)).status).toBe(200);
  const refused = await oai(simulator, DAY);
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toBe("10");
  now = 3000;
  expect((await oai(simulator, DAY)).status).toBe(200);
});
