/**
 * The shipped sources that have no simulator, each against a small server that answers in the recorded shapes: what the server has is
 * what is stored, and what its service does oddly is in the script.
 */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { applySource, endOf, plan } from "../harvest.fixture.ts";
import { type Asked, type Said, type Script, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

async function harvested(name: string, script: Script, change: Record<string, unknown> = {}, days = 1) {
  harvests.server.on(name, script);
  const source = await applySource(harvests.api, name, { baseUrl: `${harvests.server.origin}/${name}` }, change);
  const window = { from: "2026-08-01", to: `2026-08-0${1 + days}` };
  const { planId } = await plan(harvests.api, { source, window });
  return { source, ...(await endOf(harvests.api, planId)) };
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

describe("DataCite", () => {
  const dois = numbers(25).map((number) => ({
    id: `10.5072/${number + 100}`,
    type: "dois",
    attributes: {
      doi: `10.5072/${number + 100}`,
      titles: [{ title: `Data ${number}` }],
      types: { resourceTypeGeneral: "Dataset" },
      viewCount: 0,
      updated: `2026-08-01T${String(number % 24).padStart(2, "0")}:00:00Z`,
    },
    relationships: { client: { data: { id: "test.client", type: "clients" } } },
  }));
  /** By cursor. The URL of the next page names only what the service knows. */
  const script =
    (name: string, views = 0): Script =>
    ({ query }) => {
      const [, from = "", until = ""] = /^updated:\[(\S+) TO (\S+)\]$/.exec(query.get("query") ?? "") ?? [];
      const found = dois.filter(({ attributes: { updated } }) => updated >= from && updated <= until);
      const start = Number(query.get("page[cursor]")) - 1;
      const size = Number(query.get("page[size]"));
      const params = new URLSearchParams({ query: query.get("query") ?? "", "page[size]": String(size) });
      params.set("page[cursor]", String(start + size + 1));
      const next = `${harvests.server.origin}/${name}/dois?${params.toString()}`;
      const data = found.slice(start, start + size);
      for (const { attributes } of data) attributes.viewCount = views;
      const links = { self: "", ...(start + size < found.length ? { next } : {}) };
      return { body: { data, meta: { total: found.length, totalPages: 3, page: 1 }, links } };
    };

  test("is followed by the URL of the next page, and views are no change", async () => {
    const pages = { pagination: { pageSize: 10 } };
    const first = await harvested("datacite", script("datacite"), pages);
    expect(first).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 25, received: 25, gaps: 0 } });
    expect(await harvests.keys(first.source)).toEqual(dois.map(({ id }) => id));
    harvests.server.on("datacite", script("datacite", 7));
    const window = { from: "2026-08-01", to: "2026-08-02" };
    const again = await endOf(harvests.api, (await plan(harvests.api, { source: first.source, window })).planId);
    expect(again).toMatchObject({ reconciliation: { received: 25, unchanged: 25 } });
  });

  test("is split in time where a day has too many", async () => {
    const many = await harvested("datacite", script("datacite"), { window: { sliceRecords: 15 } });
    expect(many).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 25, received: 25 } });
    expect((await harvests.slices(many.planId)).map(({ status }) => status)).toContain("SPLIT");
  });
});

describe("bioRxiv", () => {
  const rows = numbers(70).map((number) => ({
    doi: `10.1101/${100 + Math.floor(number / 2)}`,
    version: String(1 + (number % 2)),
    title: `Preprint ${number}`,
    date: "2026-08-01",
    published: "NA",
    server: "bioRxiv",
  }));
  const script =
    (pageSize: number): Script =>
    ({ path }) => {
      const [, from, until, cursor] = /^\/details\/biorxiv\/([\d-]+)\/([\d-]+)\/(\d+)\/json$/.exec(path) ?? [];
      if (from !== until || from !== "2026-08-01")
        return { body: { messages: [{ status: "no posts found" }], collection: [] } };
      const collection = rows.slice(Number(cursor), Number(cursor) + pageSize);
      const counts = { count: collection.length, count_new_papers: "35", total: String(rows.length) };
      return { body: { messages: [{ status: "ok", cursor: Number(cursor), ...counts }], collection } };
    };

  // A step of 100, the length of today's pages, would leave out 70 of each 100 rows of shorter ones, with 200.
  test.each([30, 100])("is read in steps of its own pages, of %i rows, and has every version", async (pageSize) => {
    const ended = await harvested("biorxiv", script(pageSize), {}, 2);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 70, received: 70, gaps: 0 } });
    expect(await harvests.keys(ended.source)).toEqual(rows.map(({ doi, version }) => `${doi}:${version}`).sort());
  });
});

describe("ClinicalTrials.gov", () => {
  const studies = numbers(25).map((number) => ({
    protocolSection: {
      identificationModule: { nctId: `NCT000001${String(number).padStart(2, "0")}`, briefTitle: `Study ${number}` },
      statusModule: { overallStatus: "COMPLETED", lastUpdatePostDateStruct: { date: "2026-08-01", type: "ACTUAL" } },
    },
    hasResults: false,
  }));

  /** The total is on the first page alone, and nobody says that the last page is the last. */
  function page({ query }: Asked): Said {
    const start = Number(query.get("pageToken")?.slice(1) ?? 0);
    const size = Number(query.get("pageSize"));
    return {
      body: {
        studies: studies.slice(start, start + size),
        ...(start === 0 && query.get("countTotal") === "true" ? { totalCount: studies.length } : {}),
        ...(start + size < studies.length ? { nextPageToken: `t${start + size}` } : {}),
      },
    };
  }

  test("is read by tokens to the total of its first page", async () => {
    const ended = await harvested("clinicaltrials", page, { pagination: { pageSize: 10 } });
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 25, received: 25, gaps: 0 } });
    const [first] = harvests.server.asked("clinicaltrials");
    expect(first?.query.get("filter.advanced")).toBe("AREA[LastUpdatePostDate]RANGE[2026-08-01,2026-08-01]");
    expect(first?.query.has("pageToken")).toBe(false);
  });

  test("starts again where a token is refused", async () => {
    let isRefused = false;
    const ended = await harvested(
      "clinicaltrials",
      (request) => {
        if (request.query.get("pageToken") !== "t20" || isRefused) return page(request);
        isRefused = true;
        return { status: 400, headers: { "content-type": "text/plain" }, body: "`pageToken` is invalid" };
      },
      { pagination: { pageSize: 10 } },
    );
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 25, gaps: 0 } });
    expect(await harvests.slices(ended.planId)).toMatchObject([{ generation: 2 }]);
  });
});

describe("Semantic Scholar", () => {
  const papers = numbers(2_027).map((number) => ({
    paperId: number.toString(16).padStart(40, "0"),
    title: `Paper ${number}`,
    publicationDate: number === 0 ? null : "2026-08-01",
    citationCount: number,
  }));
  /** A thousand a page, whatever is asked for; without papers there is no `data`. */
  const script: Script = ({ query }) => {
    if (query.get("publicationDateOrYear") !== "2026-08-01:2026-08-01") return { body: { total: 0, token: null } };
    const start = Number(query.get("token")?.slice(4) ?? 0);
    const token = start + 1_000 < papers.length ? `PCOA${start + 1_000}` : null;
    return { body: { total: papers.length, token, data: papers.slice(start, start + 1_000) } };
  };

  test("is read by tokens, a thousand papers a page, and a day without papers is empty", async () => {
    const ended = await harvested("semanticscholar", script, {}, 2);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { expected: 2_027, received: 2_027, gaps: 0 } });
    expect(await harvests.keys(ended.source)).toEqual(papers.map(({ paperId }) => paperId));
    expect(harvests.server.asked("semanticscholar")).toHaveLength(4);
  });
});

describe("Zenodo", () => {
  const CLOCK = "2026-08-10T00:00:00Z";
  const stamps = numbers(24 * 5).map((number) => new Date(Date.UTC(2026, 7, 1) + number * 720_000).toISOString());
  const envelope = (content: string) =>
    `<?xml version='1.0' encoding='UTF-8'?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>${CLOCK}</responseDate>` +
    `<request verb="ListRecords">https://zenodo.org/oai2d</request>${content}</OAI-PMH>`;
  const record = (stamp: string) =>
    `<record><header><identifier>oai:zenodo.org:${Date.parse(stamp) / 1_000}</identifier><datestamp>${stamp.replace(".000", "")}</datestamp></header>` +
    `<metadata><oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T</dc:title></oai_dc:dc></metadata></record>`;
  /** Every answer has the header, as it was recorded. */
  const headers = { "content-type": "text/xml; charset=utf-8", "retry-after": "49" };
  const error = (code: string) => ({ status: 422, headers, xml: envelope(`<error code="${code}">no</error>`) });
  const PAGE = 20;

  function list({ query }: Asked): Said {
    const token = query.get("resumptionToken");
    const [from = "", until = "", start = "0"] = token?.split("|") ?? [
      query.get("from") ?? "",
      query.get("until") ?? "",
    ];
    const at = (text: string) => Date.parse(text);
    const found = stamps.filter((stamp) => at(stamp) >= at(from) && at(stamp) <= at(until));
    if (found.length === 0) return error("noRecordsMatch");
    const shown = Number(start) + PAGE;
    const next = shown < found.length ? `${from}|${until}|${shown}` : "";
    const whole =
      found.length > PAGE
        ? `<resumptionToken cursor="${start}" completeListSize="${found.length}">${next}</resumptionToken>`
        : "";
    const records = found.slice(Number(start), shown).map(record).join("");
    return { headers, xml: envelope(`<ListRecords>${records}${whole}</ListRecords>`) };
  }

  test("is complete although every answer has Retry-After, and an empty window is a 422", async () => {
    const ended = await harvested("zenodo", list, { window: { sliceRecords: 1_000 } }, 3);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: stamps.length, gaps: 0 } });
    expect((await harvests.slices(ended.planId)).map(({ status, received }) => [status, received])).toEqual([
      ["COMPLETE", 120],
      ["COMPLETE", 0],
      ["COMPLETE", 0],
    ]);
  });

  test("starts a slice again whose token has expired, and splits a day of many pages", async () => {
    let expiries = 0;
    const script: Script = (request) => {
      if (request.query.get("resumptionToken")?.endsWith("|40") !== true || expiries > 0) return list(request);
      expiries += 1;
      return error("badResumptionToken");
    };
    const ended = await harvested("zenodo", script, { window: { sliceRecords: 100 } });
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 120, gaps: 0 } });
    const slices = await harvests.slices(ended.planId);
    expect(slices.map(({ status }) => status).sort()).toEqual(["COMPLETE", "COMPLETE", "SPLIT"]);
    expect(Math.max(...slices.map(({ generation }) => generation))).toBe(2);
  });

  test("fails at any other error of the protocol", async () => {
    const ended = await harvested("zenodo", () => error("badArgument"));
    expect(ended).toMatchObject({ status: "FAILED", reconciliation: { gaps: 1 } });
    const [slice] = await harvests.slices(ended.planId);
    expect(slice?.reason).toContain("answered 422: an error of OAI-PMH");
    expect(harvests.server.asked("zenodo").at(-1)?.query.get("from")).toBe("2026-08-01T00:00:00Z");
  });
});
