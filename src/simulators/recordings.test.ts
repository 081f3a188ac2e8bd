/**
 * Each simulator answers the recorded requests with the recorded status, keys, types and rate headers. A request goes to the
 * simulator as it was recorded, but for its host, the tokens that only the real service knows, and ids that are put in before.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Recording, recordedBody, recordingsOf } from "../../test/recordings.ts";
import { type Simulator, startArxiv, startCrossref, startEuropepmc, startOpenalex, startPubmed } from "./index.ts";
import { commonPaths, jsonShape, type Shape, union, unknownIn, xmlShape } from "./shapes.fixture.ts";

type Part = "everything" | "rate headers" | "envelope";

/** What the simulators do not copy, and why. `only` limits a row to a part of the comparison. */
const LEFT_OUT: readonly { files: RegExp; only: Part; reason: string }[] = [
  { files: /redirect-/, only: "everything", reason: "A redirect from http to https; simulators speak http only." },
  { files: /crossref\/err-500-cursor-invalid-2022/, only: "everything", reason: "Today the same mistake is a 404." },
  {
    files: /pubmed\/(err-)?(esummary|einfo)|err-200-invalid-uid/,
    only: "everything",
    reason: "ESummary and EInfo are not simulated.",
  },
  { files: /pubmed\/.*pmc|esearch-xml-errorlist/, only: "everything", reason: "Another database than PubMed." },
  { files: /medline\.txt/, only: "everything", reason: "EFetch is simulated for XML only." },
  { files: /update-file/, only: "everything", reason: "A file of NLM's FTP server, not an answer of the E-utilities." },
  {
    files:
      /-(20(16|17|21|22|23))\b|from-index-date|from-update-date|sample0|abstract-jats|work-(title|markup|author|entity)|short-page|facet-license|select-(newline|members)|select-doi/,
    only: "rate headers",
    reason: "Recorded before the pools and limits of July 2026 (3 and 10 a second, polite-array and polite-single).",
  },
  {
    files: /esearch-xml-(retmax|reldate)|esearch-json-(2017|all-ids|past-end)/,
    only: "envelope",
    reason: "ESearch has sent no TranslationStack since the new PubMed of 2020.",
  },
  {
    files: /pubmed\/(efetch-(investigators|several)|esearch-json-(2017|all-ids|past-end))/,
    only: "rate headers",
    reason: "Recorded in 2016 and 2017, before NCBI had keys and stated a rate.",
  },
  { files: /pair-livak-esearch/, only: "envelope", reason: "Stop words, which the simulator does not ignore." },
  {
    files: /openalex\/(walk-two|err-404|work-select|search-title)/,
    only: "rate headers",
    reason: "Recorded in 2025, before requests cost money.",
  },
  {
    files: /openalex\/(walk-two|search-title|page-2|select-ids|group-by)/,
    only: "envelope",
    reason: "Recorded before July 2026, when `meta` had no `x_query`.",
  },
  { files: /europepmc\/walk-citations/, only: "everything", reason: "Citations, of the API of 2016." },
  {
    files: /arxiv\/identify-export/,
    only: "envelope",
    reason: "The old host described itself at length; the new one does not.",
  },
];

const recordings = recordingsOf("crossref", "pubmed", "arxiv", "europepmc", "openalex");
const leftOut = ({ file }: Recording, part: Part) =>
  LEFT_OUT.some(({ files, only }) => (only === "everything" || only === part) && files.test(file));

interface Sent {
  path: string;
  headers: Record<string, string>;
  body?: string | undefined;
}

/** One API: how its recorded requests are repeated, and what its records are. */
interface Api {
  start(): Promise<Simulator>;
  /** Puts in what the request is about. */
  prepare(simulator: Simulator, recording: Recording): void;
  request(recording: Recording): Sent;
  /** Takes the records out of a body. */
  split(text: string): { envelope: Shape; records: { kind: string; shape: Shape }[] };
}

const DAYS = ["2015-01-02", "2015-04-07", "2016-01-01", "2018-01-04", "2020-06-01", "2025-07-01", "2026-11-10"];
const CLOCK = { now: () => Date.parse("2026-11-11T12:00:00Z") };
const data = { days: DAYS, recordsPerDay: 100, clock: CLOCK };

const crossref: Api = {
  start: () => startCrossref(data),
  prepare(simulator, { file, url, status }) {
    const doi = /\/works\/([^?]+)/.exec(url)?.[1] ?? /filter=doi%3A([^&]+)/.exec(url)?.[1];
    if (doi !== undefined && status === 200) add(simulator, decodeURIComponent(doi).toLowerCase());
    if (status === 429) simulator.faults.set({ "http-429": { next: 1 } });
    if (file.includes("short-page")) simulator.faults.set({ "short-page": { next: 1 } });
  },
  request({ url, headers }) {
    const { pathname, search } = new URL(url);
    const pool = headers["x-api-pool"] ?? "public";
    const polite = pool.startsWith("polite") ? { "user-agent": "test (mailto:test@example.org)" } : undefined;
    const plus = pool === "plus" ? { "crossref-plus-api-token": "Bearer test" } : undefined;
    return { path: pathname + search, headers: { ...polite, ...plus } };
  },
  split(text) {
    const body = JSON.parse(text) as { message: Record<string, unknown> };
    const { message } = body;
    const items = (Array.isArray(message["items"]) ? message["items"] : "DOI" in message ? [message] : []) as object[];
    const rest =
      "DOI" in message ? {} : Array.isArray(message) ? message : { ...message, ...(items.length > 0 && { items: [] }) };
    return {
      envelope: jsonShape(JSON.stringify({ ...body, message: rest })),
      records: items.map((item) => ({ kind: "work", shape: jsonShape(JSON.stringify(item)) })),
    };
  },
};

const pubmed: Api = {
  start: () => startPubmed({ ...data, unknownPhrases: ["p.E1317Q", "pt"] }),
  prepare(simulator, recording) {
    const { file, url, status } = recording;
    if (status === 429) simulator.faults.set({ "http-429": { next: 1 } });
    if (status === 400) simulator.faults.set({ "timeout-400": { next: 1 } });
    if (!url.includes("efetch")) return;
    const text = recordedBody(recording).toString();
    for (const id of recordedPmids(text)) {
      // A chapter of a book is every fortieth record.
      if (file.includes("book"))
        while (simulator.records().length % 40 !== 39) simulator.add({ updated: "2026-11-10" });
      add(simulator, id);
    }
  },
  request(recording) {
    const { pathname, searchParams } = new URL(recording.url);
    if (searchParams.get("api_key") === "") searchParams.set("api_key", "EXAMPLE");
    if (searchParams.get("id") === "")
      searchParams.set("id", recordedPmids(recordedBody(recording).toString()).join(","));
    return { path: `${pathname}?${searchParams.toString()}`, headers: {}, body: recording.request_body };
  },
  split(text) {
    if (text.startsWith("{")) return { envelope: jsonShape(text), records: [] };
    return splitXml(text, /<(PubmedArticle|PubmedBookArticle)>[^]*?<\/\1>/g);
  },
};

const arxiv: Api = {
  start: () => startArxiv(data),
  prepare(simulator, { url, status }) {
    const id = /identifier=oai(?:%3A|:)arXiv\.org(?:%3A|:)([^&]+)/.exec(url)?.[1];
    if (id !== undefined && id !== "0000.0000") add(simulator, id);
    if (status === 503) simulator.faults.set({ "http-429": { next: 1 } });
  },
  request({ url }) {
    const { pathname, search } = new URL(url);
    // The origin of one recording kept the verb only.
    return {
      path: pathname + (search === "?verb=ListRecords" ? `${search}&metadataPrefix=arXiv&set=cs` : search),
      headers: {},
    };
  },
  split: (text) => splitXml(text, /<(record)>[^]*?<\/\1>/g),
};

const europepmc: Api = {
  start: () => startEuropepmc(data),
  prepare(simulator, recording) {
    const title = new URL(recording.url).searchParams.get("query")?.split(" AND ")[0] ?? "";
    const hits = Number(/"hitCount":\s*(\d+)/.exec(recordedBody(recording).toString())?.[1] ?? 0);
    const present = simulator.records().filter(({ content }) => content === title).length;
    for (let count = present; count < Math.min(hits, 700); count += 1) simulator.add({ title, updated: "2026-11-10" });
  },
  request({ url }) {
    const { pathname, search } = new URL(url);
    return { path: pathname + search, headers: {} };
  },
  split(text) {
    if (text.startsWith("<")) return splitXml(text, /<(result)>[^]*?<\/\1>/g);
    const body = JSON.parse(text) as { resultList: { result: object[] } };
    return {
      envelope: jsonShape(JSON.stringify({ ...body, resultList: { result: [] } })),
      records: body.resultList.result.map((article) => ({
        kind: "abstractText" in article || "pubTypeList" in article ? "core" : "title" in article ? "lite" : "id",
        shape: jsonShape(JSON.stringify(article)),
      })),
    };
  },
};

const openalex: Api = {
  start: () => startOpenalex({ ...data, budgetsUsd: { "EXAMPLE-KEY-0": 200 } }),
  prepare(simulator, { url, file }) {
    if (file.includes("walk-two")) simulator.faults.set({ "token-on-last-page": { next: 1 } });
    const filter = new URL(url).searchParams.get("filter") ?? "";
    for (const id of filter.match(/W\d+/g) ?? []) add(simulator, `https://openalex.org/${id}`);
    // Works are found by a DOI that is their title here.
    const title = /^(?:doi|title\.search|title_and_abstract\.search):([^,]+)/.exec(filter)?.[1];
    if (title !== undefined && !simulator.records().some(({ content }) => content === title))
      simulator.add({ title, updated: "2009-01-01" });
  },
  request({ file, url, headers, status }) {
    const { pathname, searchParams } = new URL(url);
    if (file.includes("err-401")) searchParams.set("api_key", "UNKNOWN");
    else if (headers["x-ratelimit-limit-usd"] === "1") searchParams.set("api_key", "FREE");
    // A single work is the first of the data set, under whatever name it was recorded.
    const path =
      status === 200 || file.includes("select") ? pathname.replace(/^\/works\/.+/, "/works/W4400000000") : pathname;
    return { path: `${path}?${searchParams.toString()}`, headers: {} };
  },
  split(text) {
    const body = JSON.parse(text) as { results?: object[]; id?: string; meta?: object; open_access?: object };
    const works = body.results ?? (body.meta === undefined && body.open_access ? [body] : []);
    const envelope = works[0] === body ? {} : { ...body, ...(body.results && { results: [] }) };
    return {
      envelope: jsonShape(JSON.stringify(envelope)),
      records: works.map((work) => ({ kind: "work", shape: jsonShape(JSON.stringify(work)) })),
    };
  },
};

function add(simulator: Simulator, id: string): void {
  if (!simulator.records().some((record) => record.id === id)) simulator.add({ id, updated: "2026-11-10" });
}

/** In the order of the records; not those of corrections and references. */
function recordedPmids(text: string): string[] {
  return [...text.matchAll(/<(?:MedlineCitation|BookDocument)[^>]*>\s*<PMID[^>]*>(\d+)</g)].map(([, id = ""]) => id);
}

function splitXml(text: string, pattern: RegExp): ReturnType<Api["split"]> {
  const records = [...text.matchAll(pattern)].map(([whole, name = ""]) => ({
    kind: kindOf(name, whole),
    shape: xmlShape(whole),
  }));
  return { envelope: xmlShape(text.replaceAll(pattern, "<$1/>")), records };
}

function kindOf(name: string, text: string): string {
  return name === "record" ? (/<metadata>\s*<([\w:]+)/.exec(text)?.[1] ?? "deleted") : name;
}

const apis = Object.entries({ crossref, pubmed, arxiv, europepmc, openalex }).filter(([name]) =>
  recordings.some(({ api }) => api === name),
);

describe.each(apis)("the simulator of %s answers as recorded:", (name, api) => {
  const own = recordings.filter((recording) => recording.api === name);
  const compared = own.filter((recording) => !leftOut(recording, "everything"));
  const known = new Map<string, Shape[]>();
  let simulator: Simulator;

  beforeAll(async () => {
    simulator = await api.start();
    for (const recording of compared.filter(({ url }) => !url.includes("select=")))
      for (const { kind, shape } of shapeOf(api, recordedBody(recording).toString())?.records ?? [])
        known.set(kind, [...(known.get(kind) ?? []), shape]);
  });
  afterAll(() => simulator.close());

  test.each(compared)("$file", async (recording) => {
    api.prepare(simulator, recording);
    const { status, headers, text } = await repeat(simulator, api, recording, compared);
    const recorded = recordedBody(recording).toString();
    expect(status).toBe(recording.status);
    expect(mediaType(headers.get("content-type"))).toBe(
      mediaType(recording.headers["content-type"]) ?? mediaType(headers.get("content-type")),
    );
    if (!leftOut(recording, "rate headers"))
      expect(rateHeaders(Object.fromEntries(headers), recording)).toEqual(rateHeaders(recording.headers, recording));
    const [ours, theirs] = [shapeOf(api, text), shapeOf(api, recorded)];
    expect(ours === undefined).toBe(theirs === undefined);
    if (!ours || !theirs) return expect(saying(text)).toBe(saying(recorded));

    if (!leftOut(recording, "envelope")) expect(plain(ours.envelope)).toEqual(plain(theirs.envelope));
    expect(new Set(ours.records.map(({ kind }) => kind))).toEqual(new Set(theirs.records.map(({ kind }) => kind)));
    for (const { kind, shape } of ours.records) {
      const all = recording.url.includes("select=")
        ? theirs.records.map((record) => record.shape)
        : (known.get(kind) ?? []);
      expect(unknownIn(shape, union(all))).toEqual([]);
      // A selection has one author with or without an ORCID; only its own fields are what was selected.
      const needed = commonPaths(all).filter((path) => !recording.url.includes("select=") || /^\.[^.[]+$/.test(path));
      expect(needed.filter((path) => !shape.has(path))).toEqual([]);
    }
  });
});

/** Undefined for a body that is neither JSON nor XML. */
function shapeOf(api: Api, text: string): ReturnType<Api["split"]> | undefined {
  return /^\s*(\{|<\?xml)/.test(text) && !text.includes("<html") ? api.split(text) : undefined;
}

/** What a page of HTML says, or the text. */
function saying(text: string): string {
  return /<h1>([^]*?)<\/h1>/.exec(text)?.[1] ?? text.trim();
}

function plain(shape: Shape): Record<string, string[]> {
  return Object.fromEntries(
    [...shape].sort(([one], [other]) => (one < other ? -1 : 1)).map(([path, types]) => [path, [...types]]),
  );
}

/** The earlier pages of a walk are asked for too: only then does the service know the token. */
async function repeat(simulator: Simulator, api: Api, recording: Recording, all: readonly Recording[]) {
  let token: string | undefined;
  const before = all.filter(
    ({ walk, seq = 0 }) => walk !== undefined && walk === recording.walk && seq < (recording.seq ?? 0),
  );
  for (const earlier of before) {
    const { text } = await send(simulator, api, earlier, token);
    token = /"next[-_]?[cC]ursor(?:Mark)?":"([^"]+)"/.exec(text)?.[1];
  }
  return send(simulator, api, recording, token);
}

async function send(simulator: Simulator, api: Api, recording: Recording, token: string | undefined) {
  const { path, headers, body } = api.request(recording);
  simulator.traffic.reset();
  const url =
    simulator.origin +
    (token === undefined ? path : path.replace(/(cursor(?:Mark)?)=[^&]+/, `$1=${encodeURIComponent(token)}`));
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const response = await fetch(url, {
    method: recording.method,
    headers: { ...headers, ...(body === undefined ? {} : form) },
    body: body ?? null,
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

function mediaType(value: string | null | undefined): string | undefined {
  return value?.split(";")[0];
}

/** What is left depends on what came before, and on the time of day. */
function rateHeaders(headers: Record<string, string>, { headers: recorded }: Recording): Record<string, string> {
  if (Object.keys(recorded).length === 0) return {}; // The origin kept none.
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => /^(x-rate-?limit-|x-concurrency-limit|x-api-pool|retry-after)/.test(name))
      .map(([name, value]) => [name, /-(remaining(-usd)?|reset)$/.test(name) ? "some" : value]),
  );
}

test.runIf(recordings.length > 0)("every row of the table of what is left out concerns a recording", () => {
  for (const { files, reason } of LEFT_OUT)
    expect(
      recordings.filter(({ file }) => files.test(file)),
      reason,
    ).not.toEqual([]);
});
