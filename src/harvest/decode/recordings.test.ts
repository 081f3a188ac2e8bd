/** Answers that others recorded from the real services, beside what they are known to be. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { compileDecoder, type DecodedRecord, type Decoder, type Page } from "./index.ts";
import { parseRecord } from "./json.ts";
import { compileOutput } from "./output.ts";
import { EXPECTED, type Expected } from "./recordings.expected.fixture.ts";
import { KINDS } from "./recordings.kinds.fixture.ts";
import { endpointSpec } from "./spec.fixture.ts";

const FOLDER = process.env["MILLRACE_HARVEST_DATA"];
if (FOLDER === undefined) console.warn("MILLRACE_HARVEST_DATA is not set: recorded answers are not read");

interface Recording {
  file: string;
  status: number;
  headers: Record<string, string> | null;
  url: string | null;
  walk?: string;
  seq?: number;
}

const recordings =
  FOLDER === undefined ? [] : (JSON.parse(readFileSync(join(FOLDER, "index.json"), "utf8")) as Recording[]);
const kindOf = new Map(EXPECTED.map(({ file, kind }) => [file, kind]));

function bodyOf(file: string): Buffer {
  const bytes = readFileSync(join(FOLDER!, file));
  return file.endsWith(".gz") ? gunzipSync(bytes) : bytes;
}

const decoders = new Map<string, Decoder>();
function decoderOf(kind: string): Decoder {
  const decoder = decoders.get(kind) ?? compileDecoder(KINDS[kind]!);
  decoders.set(kind, decoder);
  return decoder;
}

function read(file: string, kind = kindOf.get(file)!) {
  const { status, headers } = recordings.find((recording) => recording.file === file)!;
  const decoder = decoderOf(kind);
  const { verdict, page } = decoder.read({ status, headers: headers ?? {}, body: bodyOf(file), attempt: 1 });
  const outcomes = page?.items ?? [];
  const records = outcomes.filter((outcome): outcome is DecodedRecord => "key" in outcome);
  return { verdict, page, records, quarantined: outcomes.length - records.length };
}

function nextOf({ nextToken, nextUrl }: Page): string {
  if (nextToken === undefined && nextUrl === undefined) return "single";
  const next = nextToken ?? nextUrl;
  return next ? (next.startsWith("http") ? next.split("?").at(-1)! : next).slice(0, 12) : "end";
}

/** The same columns as the table has. */
function found({ file, kind }: Expected): Expected {
  const { verdict, page, records, quarantined } = read(file);
  if (verdict.action !== "OK") return { file, kind, action: verdict.action };
  const keys = createHash("sha256").update(records.map(({ key }) => key).join("\n"));
  return {
    file,
    kind,
    action: "OK",
    items: page!.items.length,
    next: nextOf(page!),
    ...(page!.total !== undefined && { total: page!.total }),
    deleted: records.filter(({ deleted }) => deleted).length,
    quarantined,
    keys: keys.digest("hex").slice(0, 8),
  };
}

test("every kind of the table is known, and every file is there once", () => {
  expect(new Set(EXPECTED.map(({ kind }) => kind))).toEqual(new Set(Object.keys(KINDS)));
  expect(new Set(EXPECTED.map(({ file }) => file)).size).toBe(287);
});

describe.skipIf(FOLDER === undefined)("recorded answers", () => {
  test("have an expectation each", () => {
    expect(recordings.map(({ file }) => file).sort()).toEqual(EXPECTED.map(({ file }) => file).sort());
  });

  test.each(EXPECTED)("$file", (expected) => {
    expect(found(expected)).toEqual(expected);
  });

  test("are walked by the token of the page before", () => {
    const pages = recordings.filter(({ walk }) => walk !== undefined);
    const steps = pages.flatMap((page) => {
      const after = pages.find(({ walk, seq }) => walk === page.walk && seq === page.seq! + 1);
      return after?.url ? [{ file: page.file, url: after.url }] : [];
    });
    const followed = steps.filter(({ file, url }) => {
      const token = read(file).page?.nextToken;
      return token && [url, decodeURIComponent(url)].some((form) => form.includes(token));
    });
    const others = steps.filter(({ file }) => !followed.some((step) => step.file === file)).map(({ file }) => file);
    const withoutToken = [
      "crossref-events/walk-events-01.json", // A count probe.
      "arxiv/503-then-200-01.txt",
      "orcid/search-page1.json", // By offset.
      ...["attention", "bibliometric", "livak"].map((pair) => `pubmed/pair-${pair}-esearch.json`), // By ids.
      ...["01", "02", "03"].map((page) => `europepmc/walk-citations-2016-${page}.json`), // By number.
    ];
    expect(others.sort()).toEqual(withoutToken.sort());
    expect(followed.length).toBeGreaterThan(60);
  });

  const keysOf = (file: string, kind?: string) => read(file, kind).records.map(({ key }) => key);

  test("repeat one token on pages with other records", () => {
    const pages = ["01", "02", "03"].map((page) => `crossref/walk-widget-${page}.json`);
    expect(new Set(pages.map((file) => read(file).page!.nextToken)).size).toBe(1);
    expect(new Set(pages.flatMap((file) => keysOf(file))).size).toBe(60);
  });

  test("have several rows of one id, which its version tells apart", () => {
    const keys = keysOf("biorxiv/details-biorxiv-2024.json");
    expect(new Set(keys).size).toBe(100);
    expect(new Set(keys.map((key) => key.split(":")[0])).size).toBe(79);
  });

  test("of another shape than the definition says are no empty pages", () => {
    expect(read("openalex/group-by-cursor.json", "openalex").verdict).toMatchObject({ action: "RETRY" });
    expect(read("crossref/abstract-jats.json", "openalex").verdict).toMatchObject({ action: "RETRY" });
    expect(read("pubmed/efetch-two-1.xml", "oai-records").verdict).toMatchObject({ action: "RETRY" });
  });

  test("say what was repaired", () => {
    expect(read("oai/puc-rio-not-well-formed.xml").page!.warnings).toEqual([
      "characters that XML does not allow were dropped",
    ]);
    const warned = EXPECTED.filter(({ file }) => (read(file).page?.warnings ?? []).length > 0);
    expect(warned.map(({ file }) => file)).toEqual(["oai/puc-rio-not-well-formed.xml"]);
  });

  test("resolve entities that only a DTD defines", () => {
    const { records } = read("others/dblp-latin1-doctype-entities.xml");
    expect(records[0]!.dataJson).toContain("Michael H. Böhlen");
    expect(records[1]!.dataJson).toContain("Antoni Olivé");
  });

  test("list the deleted citations of PubMed", () => {
    const file = "pubmed/update-file-with-deletecitation.xml.gz";
    const spec = endpointSpec({
      family: "NCBI",
      response: { format: "XML", itemsPath: "$.PubmedArticleSet.DeleteCitation[0].PMID", idPath: "$" },
    });
    const deleted = bodyOf(file).toString().split("<DeleteCitation>")[1]!;
    const decoder = compileDecoder(spec);
    const { page } = decoder.read({ status: 200, headers: {}, body: bodyOf(file), attempt: 1 });
    const keys = page!.items.map((record) => ("key" in record ? record.key : undefined));
    expect(keys).toEqual([...deleted.matchAll(/<PMID[^>]*>(\d+)</g)].map(([, id]) => id));
    expect(keys.length).toBeGreaterThan(1);
  });

  test("fill the columns of the definitions that are shipped", () => {
    for (const kind of ["crossref-list", "efetch", "arxiv", "europepmc", "openalex", "datacite", "biorxiv", "zenodo"]) {
      const output = compileOutput(KINDS[kind]!.outputFields);
      const rows = EXPECTED.filter((one) => one.kind === kind).flatMap(({ file }) =>
        read(file).records.map(({ dataJson }) => ({ file, ...output(parseRecord(dataJson)) })),
      );
      expect(
        rows.filter(({ rejected }) => rejected.length > 0).map(({ file, rejected }) => ({ file, rejected })),
      ).toEqual([]);
      for (const [index, { name }] of KINDS[kind]!.outputFields.entries()) {
        expect(rows.filter(({ values }) => values[index] !== null).length, `${kind} ${name}`).toBeGreaterThan(0);
      }
    }
  });

  test("keep the whole text of mixed content", () => {
    let texts = 0;
    for (const { file } of EXPECTED.filter(({ kind, items }) => kind === "efetch" && items)) {
      const { records } = read(file, "efetch");
      const abstracts = compileOutput([{ name: "texts", path: "$..AbstractText[*]", type: "json", required: false }]);
      const decoded = records
        .flatMap(({ dataJson }) => JSON.parse(abstracts(parseRecord(dataJson)).values[0] as string) as unknown[])
        .map(elementText);
      const raw = [
        ...bodyOf(file)
          .toString()
          .matchAll(/<AbstractText[^>]*?(?:\/>|>([^]*?)<\/AbstractText>)/g),
      ];
      expect(decoded, file).toEqual(raw.map(([, text = ""]) => plain(text)));
      texts += raw.length;
    }
    expect(texts).toBeGreaterThan(100);
  });
});

function elementText(value: unknown): string {
  const text = typeof value === "string" ? value : ((value as { "#text"?: string })["#text"] ?? "");
  return text.replaceAll("\r\n", "\n");
}

/** Markup removed, entities resolved: another way to the same text. */
function plain(xml: string): string {
  const text = xml
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll(/&#x([0-9a-f]+);/gi, (_, digits: string) => String.fromCodePoint(Number.parseInt(digits, 16)))
    .replaceAll(/&#(\d+);/g, (_, digits: string) => String.fromCodePoint(Number(digits)))
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&apos;", "'")
    .replaceAll("&amp;", "&")
    .replaceAll("\r\n", "\n");
  return /\S/.test(text) ? text : "";
}
