/** The definitions that are shipped: the bytes of their requests, and what they make of recorded answers. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { compileDecoder } from "../decode/index.ts";
import { parseRecord } from "../decode/json.ts";
import { compileOutput } from "../decode/output.ts";
import type { Definition } from "../definition/definition.ts";
import { boundsOf } from "../plan/window.ts";
import type { Compiled } from "./compile.ts";
import { compiledOf } from "./definition.fixture.ts";
import { compileRequest, type RequestContext } from "./render.ts";
import type { EndpointSpec, Operation } from "./snapshot.ts";

const FOLDER = process.env["MILLRACE_HARVEST_DATA"];
if (FOLDER === undefined) console.warn("MILLRACE_HARVEST_DATA is not set: recorded answers are not read");

const compiled = (name: string, endpointName: string, params = {}, operation: Operation = "HARVEST"): Compiled =>
  compiledOf(parse(readFileSync(`sources/${name}.yaml`, "utf8")), { endpointName, operation, trigger: { params } });

function requestOf({ snapshot }: Compiled, context: Partial<RequestContext>, spec: EndpointSpec = snapshot.spec) {
  const { window } = snapshot.spec;
  return compileRequest(spec)({
    window: boundsOf(window!, new Date("2026-08-20T00:00:00Z"), new Date("2026-08-21T00:00:00Z")),
    page: { size: snapshot.spec.pagination.pageSize, offset: 0, token: snapshot.spec.pagination.initial ?? null },
    params: snapshot.params,
    plan: { id: "plan-1", from: null, to: null },
    now: "2026-08-22T00:00:00Z",
    isFirst: true,
    ...context,
  });
}

test("every shipped definition is tested here", () => {
  const files = readdirSync("sources").filter((file) => file.endsWith(".yaml"));
  expect(files.sort()).toEqual([
    "arxiv.yaml",
    "biorxiv.yaml",
    "clinicaltrials.yaml",
    "crossref.yaml",
    "datacite.yaml",
    "europepmc.yaml",
    "openalex.yaml",
    "pubmed.yaml",
    "semanticscholar.yaml",
    "zenodo.yaml",
  ]);
});

test("every shipped endpoint that can be updated says when a record is stale", () => {
  const updated = readdirSync("sources").flatMap((file) => {
    const { source, endpoints } = parse(readFileSync(`sources/${file}`, "utf8")) as Definition;
    const names = Object.keys(endpoints).filter((name) => endpoints[name]?.detail !== undefined);
    return names.map((name) => [source, name] as const);
  });
  expect(updated.length).toBeGreaterThan(5);
  for (const [source, name] of updated) {
    const { update } = compiled(source, name, {}, "UPDATE").snapshot.spec;
    expect(update.staleAfterMs, `${source}/${name}`).toBeGreaterThan(0);
  }
});

test("the definition in docs/sources.md compiles, without warnings", () => {
  const [, example = ""] = /```yaml\n([^]*?)```/.exec(readFileSync("docs/sources.md", "utf8")) ?? [];
  const books = compiledOf(parse(example), { endpointName: "books" });
  expect(books.warnings).toEqual([]);
  const request = requestOf(books, { page: { size: 100, number: 1 }, credential: { value: "k", version: 1 } });
  expect(request.url).toBe(
    "https://api.example.org/v1/books?changed_from=2026-08-20&changed_until=2026-08-20&page=1&size=100",
  );
});

describe("Crossref", () => {
  const works = compiled("crossref", "works");

  test("is asked for a day of deposits, then for the next page of the same cursor", () => {
    expect(requestOf(works, {})).toEqual({
      method: "GET",
      url: "https://api.crossref.org/works?cursor=*&filter=from-update-date%3A2026-08-20%2Cuntil-update-date%3A2026-08-20&rows=1000",
      headers: {},
      secrets: [],
    });
    const next = requestOf(works, { isFirst: false, page: { size: 1_000, token: "DnF1ZXJ5VGhlbkZldGNoJAAA+/==" } });
    expect(next.url).toBe(
      "https://api.crossref.org/works?cursor=DnF1ZXJ5VGhlbkZldGNoJAAA%2B%2F%3D%3D&filter=from-update-date%3A2026-08-20%2Cuntil-update-date%3A2026-08-20&rows=1000",
    );
  });

  test("gets an address on every page where there is one", () => {
    const polite = compiled("crossref", "works", { mailto: "a@example.org" });
    expect(requestOf(polite, {}).url).toContain("&mailto=a%40example.org&");
    expect(requestOf(polite, { isFirst: false, page: { size: 9, token: "x" } }).url).toContain(
      "&mailto=a%40example.org&",
    );
    expect(() => requestOf(polite, { params: { mailto: "nobody" } })).toThrow("does not match the pattern");
  });

  test("is asked for a work by its DOI, whose slashes are encoded, and politely where there is an address", () => {
    const { snapshot } = compiled("crossref", "works", { mailto: "a@example.org" }, "UPDATE");
    const ids = ["10.1103/PhysRevD.100/116010?#%"];
    expect(requestOf({ ...works, snapshot }, { page: { ids } }, snapshot.detail).url).toBe(
      "https://api.crossref.org/works/10.1103%2FPhysRevD.100%2F116010%3F%23%25?mailto=a%40example.org",
    );
  });

  test("warns that a lost page starts the slice again, and of nothing else", () => {
    expect(works.warnings.map(({ field }) => field)).toEqual(["pagination.tokenClass"]);
  });
});

describe("PubMed", () => {
  const esearch = compiled("pubmed", "esearch");
  const credential = { value: "0123456789abcdef", version: 1 };

  test("says in its headers how many requests a second it allows", () => {
    const { spec, detail } = esearch.snapshot;
    for (const one of [spec, detail]) expect(one?.rateLimit.headerWindowMs).toBe(1_000);
  });

  test("is counted, then searched by day in pages", () => {
    const search = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils/esearch.fcgi?db=pubmed&retmax=2000&retmode=json&";
    const term = "term=2026%2F08%2F20%3A2026%2F08%2F20%5Bcrdt%5D&tool=millrace";
    expect(requestOf(esearch, { isProbe: true }).url).toBe(`${search}retstart=0&rettype=count&${term}`);
    expect(requestOf(esearch, {})).toEqual({
      method: "GET",
      url: `${search}retstart=0&${term}`,
      headers: {},
      secrets: [],
    });
    const second = { isFirst: false, page: { size: 2_000, offset: 2_000 }, credential };
    expect(requestOf(esearch, second)).toEqual({
      method: "GET",
      url: `${search}retstart=2000&${term}&api_key=0123456789abcdef`,
      headers: {},
      secrets: ["0123456789abcdef"],
    });
  });

  test("may be restricted to a search", () => {
    const asthma = compiled("pubmed", "esearch", { term: "asthma[mh]", email: "a@example.org" });
    const { searchParams } = new URL(requestOf(asthma, {}).url);
    expect(searchParams.get("term")).toBe("(asthma[mh]) AND 2026/08/20:2026/08/20[crdt]");
    expect(searchParams.get("email")).toBe("a@example.org");
  });

  test("is asked for the records of ids by POST, with the key in the body", () => {
    expect(requestOf(esearch, { page: { ids: ["1", "23"] }, credential }, esearch.snapshot.detail)).toEqual({
      method: "POST",
      url: "https://eutils.ncbi.nlm.nih.gov/entrez/eutils/efetch.fcgi",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: "db=pubmed&id=1%2C23&retmode=xml&tool=millrace&api_key=0123456789abcdef",
      secrets: ["0123456789abcdef"],
    });
  });

  test("is asked faster with a key, and never for more than the 9,999 records of a query", () => {
    const { spec } = esearch.snapshot;
    expect(spec.rateLimit).toMatchObject({ refillRatePerSec: 2.5, refillRateWithCredential: 9 });
    expect(spec.window?.recordsMax).toBe(9_999);
    expect(spec.auth).toMatchObject({ required: false });
  });
});

describe("arXiv", () => {
  test("is asked for a day, then with the token alone", () => {
    const records = compiled("arxiv", "records", { set: "physics:hep-th" });
    expect(requestOf(records, {})).toEqual({
      method: "GET",
      url: "https://oaipmh.arxiv.org/oai?from=2026-08-20&metadataPrefix=arXiv&set=physics%3Ahep-th&until=2026-08-20&verb=ListRecords",
      headers: {},
      secrets: [],
    });
    const token = "verb%3DListRecords%26metadataPrefix%3DarXiv%26skip%3D412";
    expect(requestOf(records, { isFirst: false, page: { token } }).url).toBe(
      "https://oaipmh.arxiv.org/oai?resumptionToken=verb%253DListRecords%2526metadataPrefix%253DarXiv%2526skip%253D412&verb=ListRecords",
    );
    expect(requestOf(compiled("arxiv", "records"), {}).url).not.toContain("set=");
  });

  test("is asked for a record by its identifier, whatever set was harvested", () => {
    const records = compiled("arxiv", "records", { set: "physics:hep-th" }, "UPDATE");
    expect(requestOf(records, { page: { ids: ["oai:arXiv.org:hep-th/9901001"] } }, records.snapshot.detail).url).toBe(
      "https://oaipmh.arxiv.org/oai?identifier=oai%3AarXiv.org%3Ahep-th%2F9901001&metadataPrefix=arXiv&verb=GetRecord",
    );
  });
});

describe("Europe PMC", () => {
  const search = compiled("europepmc", "search");

  test("is asked for the day of an update, then for the page behind a mark", () => {
    const { origin, pathname, searchParams } = new URL(requestOf(search, {}).url);
    expect(origin + pathname).toBe("https://www.ebi.ac.uk/europepmc/webservices/rest/search");
    expect(Object.fromEntries(searchParams)).toEqual({
      query: "UPDATE_DATE:[2026-08-20 TO 2026-08-20]",
      format: "json",
      resultType: "core",
      pageSize: "1000",
      cursorMark: "*",
    });
    const next = requestOf(search, { isFirst: false, page: { size: 1_000, token: "AoIIQYg13Sg1NTE5MTg0MQ==" } });
    expect(next.url).toContain("cursorMark=AoIIQYg13Sg1NTE5MTg0MQ%3D%3D&");
  });

  test("may be restricted to a search, and gets an address where there is one", () => {
    const some = compiled("europepmc", "search", { query: "SRC:PPR OR SRC:MED", email: "a@example.org" });
    const { searchParams } = new URL(requestOf(some, {}).url);
    expect(searchParams.get("query")).toBe("(SRC:PPR OR SRC:MED) AND UPDATE_DATE:[2026-08-20 TO 2026-08-20]");
    expect(searchParams.get("email")).toBe("a@example.org");
  });

  test("is asked for articles by source and id, many at once", () => {
    const { snapshot } = compiled("europepmc", "search", {}, "UPDATE");
    const request = requestOf({ ...search, snapshot }, { page: { ids: ["MED:1", "PPR:PPR2"] } }, snapshot.detail);
    const { pathname, searchParams } = new URL(request.url);
    expect(pathname).toBe("/europepmc/webservices/rest/search");
    expect(Object.fromEntries(searchParams)).toEqual({
      query: "(EXT_ID:1 AND SRC:MED) OR (EXT_ID:PPR2 AND SRC:PPR)",
      format: "json",
      resultType: "core",
      pageSize: "50",
    });
  });

  test("gives up a request that is answered with the version alone at its last attempt", () => {
    const { read } = compileDecoder(search.snapshot.spec);
    const bare = (attempt: number) =>
      read({ status: 200, headers: {}, body: Buffer.from('{"version":"6.9"}'), attempt }).verdict;
    expect([bare(1), bare(4), bare(5)]).toMatchObject([
      { action: "RETRY", level: "L1" },
      { action: "RETRY", level: "L1" },
      { action: "FAIL", level: "L2" },
    ]);
    const refused = '{"errCode":404,"errMsg":"Invalid page size provided. Valid size is between 1 and 1000"}';
    expect(read({ status: 200, headers: {}, body: Buffer.from(refused), attempt: 1 }).verdict).toMatchObject({
      action: "FAIL",
      level: "L2",
    });
  });

  test("warns that its records have no time of their update, and of nothing else", () => {
    expect(search.warnings.map(({ field }) => field)).toEqual(["response.updatedAtPath"]);
  });
});

describe("OpenAlex", () => {
  const works = compiled("openalex", "works");
  const asked = (some: Compiled, context: Partial<RequestContext> = {}) =>
    Object.fromEntries(new URL(requestOf(some, context).url).searchParams);

  test("is asked for a work by the last part of its id, which costs nothing", () => {
    const { snapshot } = compiled("openalex", "published", { filter: "type:article" }, "UPDATE");
    const ids = ["https://openalex.org/W2741809807"];
    const credential = { value: "k3y", version: 1 };
    expect(requestOf({ ...works, snapshot }, { page: { ids }, credential }, snapshot.detail).url).toBe(
      "https://api.openalex.org/works/W2741809807?api_key=k3y",
    );
    expect(snapshot.detail?.rateLimit.priceUsdMicros).toBe(0);
  });

  test("is asked for what was updated until the last microsecond of the window", () => {
    expect(asked(works)).toEqual({
      filter: "from_updated_date:2026-08-20T00:00:00,to_updated_date:2026-08-20T23:59:59.999999",
      per_page: "100",
      cursor: "*",
    });
    const credential = { value: "k3y", version: 1 };
    const next = asked(works, { isFirst: false, page: { size: 100, token: "IlsxNjA5Il0=" }, credential });
    expect(next).toMatchObject({ cursor: "IlsxNjA5Il0=", api_key: "k3y" });
  });

  test("is asked for a day of publications without a paid plan, and may be filtered further", () => {
    const published = compiled("openalex", "published", { filter: "type:article" });
    expect(asked(published)["filter"]).toBe(
      "from_publication_date:2026-08-20,to_publication_date:2026-08-20,type:article",
    );
    expect(published.warnings).toEqual([]);
  });

  test("spends a dollar a day at most, a hundredth of a cent for each list", () => {
    expect(works.snapshot.spec.rateLimit).toMatchObject({
      priceUsdMicros: 100,
      quotas: [{ unit: "usd_micros", window: "P1D", limit: 1_000_000 }],
    });
    expect(works.warnings).toEqual([]);
  });

  test("that refuses a key says which endpoint does without one", () => {
    const { read } = compileDecoder(works.snapshot.spec);
    const said = (status: number, text: string) =>
      read({ status, headers: {}, body: Buffer.from(JSON.stringify({ error: text })), attempt: 1 }).verdict;
    expect(said(403, "Forbidden")).toMatchObject({
      action: "FAIL",
      level: "L4",
      reason: expect.stringContaining("the endpoint published"),
    });
    expect(said(403, "Rate limit, slow down")).toMatchObject({ action: "RATE_LIMITED" });
  });

  test("that has no money left is told from one that is asked too fast", () => {
    const { read } = compileDecoder(works.snapshot.spec);
    const body = Buffer.from('{"error":"Rate limit exceeded","message":"..."}');
    const verdict = (headers: Record<string, string>) => read({ status: 429, headers, body, attempt: 1 }).verdict;
    expect(verdict({ "x-ratelimit-cost-required-usd": "0.0001" })).toMatchObject({
      action: "RATE_LIMITED",
      reason: "the budget of the day is spent",
    });
    expect(verdict({ "x-ratelimit-remaining-usd": "0.4" })).toMatchObject({
      action: "RATE_LIMITED",
      reason: "too many requests",
    });
  });
});

describe("sources that are configuration alone", () => {
  const asked = (some: Compiled, context: Partial<RequestContext> = {}) => {
    const { origin, pathname, searchParams } = new URL(requestOf(some, context).url);
    return { address: origin + pathname, ...Object.fromEntries(searchParams) };
  };

  test("DataCite is asked for times of update by cursor", () => {
    const dois = compiled("datacite", "dois", { mailto: "a@example.org" });
    expect(asked(dois)).toEqual({
      address: "https://api.datacite.org/dois",
      query: "updated:[2026-08-20T00:00:00Z TO 2026-08-20T23:59:59Z]",
      "page[size]": "1000",
      "page[cursor]": "1",
      "disable-facets": "true",
      mailto: "a@example.org",
    });
    expect(dois.warnings).toEqual([]);
  });

  test.each(["biorxiv", "medrxiv"])("%s is asked for a day at an offset, in the path", (server) => {
    const versions = compiled("biorxiv", server);
    expect(requestOf(versions, { page: { offset: 130 } }).url).toBe(
      `https://api.biorxiv.org/details/${server}/2026-08-20/2026-08-20/130/json`,
    );
    expect(versions.warnings).toEqual([]);
  });

  test("ClinicalTrials.gov is asked for the day of the last post, and for the total", () => {
    const studies = compiled("clinicaltrials", "studies", { filter: "AREA[OverallStatus]RECRUITING" });
    expect(asked(studies)).toEqual({
      address: "https://clinicaltrials.gov/api/v2/studies",
      "filter.advanced": "AREA[LastUpdatePostDate]RANGE[2026-08-20,2026-08-20] AND (AREA[OverallStatus]RECRUITING)",
      countTotal: "true",
      pageSize: "200",
      format: "json",
    });
    expect(studies.warnings).toEqual([]);
  });

  test("Semantic Scholar is asked for a day of publications, with the key in a header", () => {
    const papers = compiled("semanticscholar", "papers");
    expect(asked(papers)).toMatchObject({
      address: "https://api.semanticscholar.org/graph/v1/paper/search/bulk",
      publicationDateOrYear: "2026-08-20:2026-08-20",
      sort: "paperId:asc",
    });
    expect(requestOf(papers, { credential: { value: "k3y", version: 1 } }).headers).toEqual({ "x-api-key": "k3y" });
    expect(papers.warnings.map(({ field }) => field)).toEqual(["response.updatedAtPath"]);
  });

  test("Zenodo is asked for times, then with the token alone", () => {
    const records = compiled("zenodo", "records");
    expect(asked(records)).toEqual({
      address: "https://zenodo.org/oai2d",
      verb: "ListRecords",
      metadataPrefix: "oai_dc",
      from: "2026-08-20T00:00:00Z",
      until: "2026-08-20T23:59:59Z",
    });
    expect(asked(records, { isFirst: false, page: { token: ".eJw" } })).toEqual({
      address: "https://zenodo.org/oai2d",
      verb: "ListRecords",
      resumptionToken: ".eJw",
    });
    expect(records.warnings).toEqual([]);
  });
});

describe.skipIf(FOLDER === undefined)("recorded answers", () => {
  /** The records of a page, with their columns. */
  function recordsOf(spec: EndpointSpec, file: string) {
    const decoder = compileDecoder(spec);
    const body = readFileSync(join(FOLDER!, file));
    const { verdict, page } = decoder.read({ status: 200, headers: {}, body, attempt: 1 });
    const output = compileOutput(spec.outputFields);
    const records = (page?.items ?? []).map((record) => {
      if ("quarantine" in record) throw new Error(`${file}: ${record.quarantine.reason}`);
      const { values, rejected } = output(parseRecord(record.dataJson));
      const columns = Object.fromEntries(spec.outputFields.map(({ name }, index) => [name, values[index]]));
      return { ...record, columns, rejected };
    });
    return { verdict, page, records };
  }
  const { spec: works } = compiled("crossref", "works").snapshot;
  const { spec: esearch, detail } = compiled("pubmed", "esearch").snapshot;
  const { spec: arxiv } = compiled("arxiv", "records").snapshot;
  const { spec: europepmc } = compiled("europepmc", "search").snapshot;
  const { spec: openalex } = compiled("openalex", "works").snapshot;

  test("of Crossref become columns of their types", () => {
    for (const file of ["walk-widget-01.json", "cursor-2021-solr-token.json", "from-index-date.json"]) {
      const { records, page } = recordsOf(works, `crossref/${file}`);
      expect(records.length, file).toBeGreaterThan(10);
      expect(page?.total, file).toBeGreaterThan(records.length);
      for (const { columns, rejected, sourceTime } of records) {
        expect(rejected).toEqual([]);
        expect(columns).toMatchObject({ doi: expect.stringContaining("10."), type: expect.any(String) });
        expect(columns["deposited_at"]).toEqual(sourceTime);
        expect(sourceTime).toBeInstanceOf(Date);
      }
    }
  });

  test("of PubMed's search are ids", () => {
    const { records, page } = recordsOf(esearch, "pubmed/pair-bibliometric-esearch.json");
    expect(records.map(({ key }) => key)).toContain("42436953");
    expect(page?.total).toBeGreaterThan(records.length);
  });

  test.each(
    FOLDER === undefined
      ? ["none"]
      : readdirSync(join(FOLDER, "pubmed")).filter((file) => /^(efetch|pair-.*efetch).*\.xml$/.test(file)),
  )("of PubMed's records become columns of their types: %s", (file) => {
    for (const { key, columns, rejected, sourceTime } of recordsOf(detail!, `pubmed/${file}`).records) {
      expect(key).toMatch(/^\d+$/);
      expect(rejected).toEqual([]);
      expect(columns["pmid"]).toBe(key);
      expect(columns["title"]).toEqual(expect.any(String));
      expect(sourceTime).toBeInstanceOf(Date);
      expect(columns["revised"]).toBe(sourceTime?.toISOString().slice(0, 10));
    }
  });

  test("of Europe PMC become columns of their types, under a key of source and id", () => {
    const { records } = recordsOf(europepmc, "europepmc/search-core-2026.json");
    expect(records).toHaveLength(3);
    for (const { key, columns, rejected } of records) {
      expect(rejected).toEqual([]);
      expect(key).toBe(`${String(columns["source"])}:${String(columns["id"])}`);
      expect(columns).toMatchObject({ title: expect.any(String), first_indexed: expect.stringMatching(/^\d{4}-/) });
    }
  });

  test("of OpenAlex become columns of their types", () => {
    for (const file of ["walk-two-works-01.json", "sample-5-2026.json", "page-2-works-2026.json"]) {
      const { records } = recordsOf(openalex, `openalex/${file}`);
      expect(records.length, file).toBeGreaterThan(1);
      for (const { key, columns, rejected, sourceTime } of records) {
        expect(rejected).toEqual([]);
        expect(key).toMatch(/^https:\/\/openalex\.org\/W\d+$/);
        expect(columns).toMatchObject({ id: key, title: expect.any(String), updated_at: sourceTime });
      }
    }
  });

  test("of studies of ClinicalTrials.gov become columns of their types", () => {
    const { spec } = compiled("clinicaltrials", "studies").snapshot;
    const files = ["NCT00763412", "NCT00973089", "NCT03630471"].map((id) => `clinicaltrials/study-${id}.json`);
    const studies = files.map((file) => JSON.parse(readFileSync(join(FOLDER!, file), "utf8")) as unknown);
    // The origin kept single studies. A page is a list of them.
    const body = Buffer.from(JSON.stringify({ studies, totalCount: 3 }));
    const { page } = compileDecoder(spec).read({ status: 200, headers: {}, body, attempt: 1 });
    const output = compileOutput(spec.outputFields);
    for (const record of page?.items ?? []) {
      if ("quarantine" in record) throw new Error(record.quarantine.reason);
      const { values, rejected } = output(parseRecord(record.dataJson));
      expect(rejected).toEqual([]);
      expect(values.slice(0, 2)).toEqual([record.key, expect.any(String)]);
      expect(record.sourceTime).toBeInstanceOf(Date);
    }
    expect(page).toMatchObject({ total: 3, items: [{}, {}, {}] });
  });

  test("of arXiv become columns of their types", () => {
    const { records } = recordsOf(arxiv, "arxiv/listrecords-hep-th-2025-07-01.xml");
    expect(records.length).toBeGreaterThan(10);
    for (const { key, columns, rejected } of records) {
      expect(rejected).toEqual([]);
      expect(key).toBe(`oai:arXiv.org:${String(columns["arxiv_id"])}`);
      expect(columns).toMatchObject({
        title: expect.any(String),
        datestamp: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      });
      expect(JSON.parse(String(columns["authors"]))).toEqual(expect.arrayContaining([expect.any(Object)]));
    }
  });
});
