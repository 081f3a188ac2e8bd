import { describe, expect, test } from "vitest";
import { compileDecoder } from "./index.ts";
import { compilePage } from "./page.ts";
import { endpointSpec, type Given } from "./spec.fixture.ts";

const list: Given = {
  response: { itemsPath: "$.data.list", idPath: "$.id", totalPath: "$.total" },
  pagination: { nextTokenPath: "$.next", hasMorePath: "$.more", nextUrlPath: "$.links.next" },
};
const bodyOf = (document: unknown) => Buffer.from(JSON.stringify(document));
const readOf = (document: unknown, given = list) =>
  compileDecoder(endpointSpec(given)).read({
    status: 200,
    headers: { "content-type": "application/json" },
    body: bodyOf(document),
    attempt: 1,
  });
/** With its items as they are, not as records. */
function pageOf(document: unknown, given = list) {
  const page = compilePage(endpointSpec(given), (item) => item);
  return page.pageOf(page.parse(bodyOf(document), "application/json"));
}

describe("a page", () => {
  test("has its items, and says how many there are and where the next is", () => {
    const document = {
      total: "2509",
      data: { list: [1, 2] },
      next: " abc ",
      more: true,
      links: { next: "https://x/2" },
    };
    expect(pageOf(document)).toEqual({
      document,
      items: [1, 2],
      total: 2509,
      nextToken: "abc",
      nextUrl: "https://x/2",
      hasMore: true,
      warnings: [],
    });
  });

  test.each([
    [{ data: { list: [] } }, { nextToken: null, nextUrl: null }],
    [
      { data: { list: [] }, next: "", more: "no" },
      { nextToken: null, hasMore: false },
    ],
    [
      { data: { list: [] }, next: null, links: {} },
      { nextToken: null, nextUrl: null },
    ],
    [{ data: { list: [] }, next: 5 }, { nextToken: "5" }],
  ])("may be the last: %j", (document, expected) => {
    const page = pageOf(document);
    expect(page).toMatchObject(expected);
    if (!("hasMore" in expected)) expect(page).not.toHaveProperty("hasMore");
    expect(page).not.toHaveProperty("total");
  });

  test.each([
    ["a list", { data: { list: [{ id: 1 }, null] } }, [{ id: 1 }, null]],
    ["one item that is not in a list", { data: { list: { id: 1 } } }, [{ id: 1 }]],
    ["null", { data: { list: null } }, []],
    ["left out of its object", { data: {} }, []],
    ["left out, where the total is 0", { total: 0 }, []],
  ])("has items that are %s", (_, document, items) => {
    expect(pageOf(document).items).toEqual(items);
  });

  test.each([
    ["$.results[*]", { results: [1] }, [1]],
    ["$.results[*]", { results: { a: 1, b: 2 } }, [1, 2]],
    ["$.results[*].id", { results: [{ id: 1 }, { id: 2 }] }, [1, 2]],
    ["$[?@.ok]", [{ ok: true }, {}], [{ ok: true }]],
    ["$", [1, 2], [1, 2]],
    ["$", { id: 1 }, [{ id: 1 }]],
  ])("has its items at %s", (itemsPath, document, items) => {
    expect(pageOf(document, { response: { itemsPath, idPath: "$" } }).items).toEqual(items);
  });

  test.each([
    [{}, list],
    [{ total: 5 }, list],
    [{ error: "no" }, { response: { itemsPath: "$.results", idPath: "$" } }],
    [{ error: "no" }, { response: { itemsPath: "$.results[*]", idPath: "$" } }],
  ])("is not %j", (document, given) => {
    expect(readOf(document, given)).toEqual({
      isReadable: false,
      verdict: { action: "RETRY", reason: expect.stringContaining("no items"), level: "L1" },
    });
  });

  test("has at most 100,000 items, and a token of a sane length", () => {
    const { reason } = readOf({ data: { list: Array.from({ length: 100_001 }, () => 1) } }).verdict;
    expect(reason).toContain("more than 100000 items");
    expect(readOf({ data: { list: [] }, next: "x".repeat(20_000) })).toMatchObject({ verdict: { action: "RETRY" } });
  });
});

describe("a response", () => {
  const oai: Given = {
    family: "OAI",
    response: { format: "XML", itemsPath: "$['OAI-PMH'].ListRecords[0].record", idPath: "$.header[0].identifier[0]" },
    pagination: { nextTokenPath: "$['OAI-PMH'].ListRecords[0].resumptionToken[0]" },
  };
  const read = (given: Given, body: string, status = 200, headers: Record<string, string> = {}) =>
    compileDecoder(endpointSpec(given)).read({ status, headers, body: Buffer.from(body), attempt: 1 });
  const wrapped = (content: string) => `<OAI-PMH>${content}</OAI-PMH>`;

  test("that is a page has one", () => {
    const { verdict, page } = read(
      oai,
      wrapped("<ListRecords><record/><resumptionToken cursor='0'>t</resumptionToken></ListRecords>"),
    );
    expect(verdict.action).toBe("OK");
    expect(page).toMatchObject({ items: [{ quarantine: { code: "MISSING_ID" } }], nextToken: "t" });
  });

  test.each(["<resumptionToken/>", '<resumptionToken cursor="5"/>', "<resumptionToken>\n</resumptionToken>", ""])(
    "with %s is the last",
    (token) => {
      expect(read(oai, wrapped(`<ListRecords><record/>${token}</ListRecords>`)).page?.nextToken).toBeNull();
    },
  );

  test("that says there is nothing is an empty page", () => {
    const { verdict, page } = read(oai, wrapped('<error code="noRecordsMatch"/>'), 422);
    expect(verdict.action).toBe("IGNORE_EMPTY");
    expect(page).toMatchObject({ items: [], nextToken: null });
  });

  test.each([
    ["an error in the shape of a page", oai, wrapped('<error code="badArgument"/>'), 200, "FAIL"],
    ["HTML", oai, "<html><body><p>busy</body></html>", 200, "RETRY"],
    ["another document", oai, "<rss/>", 200, "RETRY"],
    ["half of a document", list, '{"data": {"list": [', 200, "RETRY"],
    ["an error that cannot be read", list, "<html>", 404, "FAIL"],
    ["nothing", list, "", 500, "RETRY"],
  ])("that is %s has none", (_, given, body, status, action) => {
    const { verdict, page } = read(given, body, status);
    expect(verdict.action).toBe(action);
    expect(page).toBeUndefined();
  });

  test("that a rule lets pass, but cannot be read, is tried again", () => {
    const given = { ...list, classifier: [] };
    const spec = { ...endpointSpec(given), classifier: [] };
    const { verdict } = compileDecoder(spec).read({ status: 200, headers: {}, body: Buffer.from("{"), attempt: 1 });
    expect(verdict).toMatchObject({ action: "RETRY", reason: "The body is not JSON (at position 1)." });
  });
});

describe("a probe", () => {
  const probe = { query: {}, totalPath: "$.eSearchResult.Count[0]", format: "XML" } as const;
  const decoder = compileDecoder(endpointSpec({ ...list, family: "NCBI", probe }));
  const answer = (text: string, status = 200) => ({ status, headers: {}, body: Buffer.from(text), attempt: 1 });

  test("has a format and a path of its own", () => {
    const body =
      "<eSearchResult><Count>12</Count><TranslationStack><Count>5</Count></TranslationStack></eSearchResult>";
    expect(decoder.readProbe(answer(body))).toEqual({
      verdict: { action: "OK", reason: "" },
      total: 12,
      isReadable: true,
    });
  });

  test("is classified like a page", () => {
    expect(decoder.readProbe(answer("<eSearchResult><ERROR>x</ERROR></eSearchResult>")).verdict.action).toBe("FAIL");
    expect(decoder.readProbe(answer('{"error":"API rate limit exceeded"}')).verdict.action).toBe("RATE_LIMITED");
  });

  test("counts what a page announces, where there is none", () => {
    expect(compileDecoder(endpointSpec(list)).readProbe(answer('{"total": 7}')).total).toBe(7);
  });
});
