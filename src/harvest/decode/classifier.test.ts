import { describe, expect, test } from "vitest";
import { compileExpression } from "../../kernel/expressions/cel.ts";
import type { ClassifierRule } from "../definition/policy.ts";
import { type Answer, CLASSIFIER_VARIABLES, compileClassifier } from "./classifier.ts";
import { familyRules } from "./families.ts";

function answer(given: Partial<Answer>): Answer {
  return { status: 200, headers: {}, body: {}, text: "", attempt: 1, ...given };
}
const oai = (code: string) => ({ "OAI-PMH": { error: [{ "@code": code, "#text": "..." }] } });
const ncbi = (error: string) => ({ eFetchResult: { ERROR: [error] } });
const TOO_FAR = "Search Backend failed: Exception:\n'retstart' cannot be larger than 9998. For PubMed, ...";
const CURSOR = { status: "failed", message: [{ type: "cursor-invalid" }] };

describe("an answer of the family", () => {
  test.each([
    ["REST_JSON", { status: 200, body: { message: { items: [] } } }, "OK"],
    ["REST_JSON", { status: 200, body: [] }, "OK"],
    ["REST_JSON", { status: 404, body: CURSOR }, "RESTART_SLICE"],
    ["REST_JSON", { status: 400, body: CURSOR }, "RESTART_SLICE"],
    ["REST_JSON", { status: 500, body: { "message-type": "exception", message: {} } }, "RESTART_SLICE"],
    ["REST_JSON", { status: 404, body: null, text: "Resource not found." }, "FAIL"],
    ["REST_JSON", { status: 404, body: { message: "none" } }, "FAIL"],
    ["REST_JSON", { status: 200, body: { errCode: 404, errMsg: "Invalid page size provided." } }, "FAIL"],
    ["REST_JSON", { status: 200, body: { version: "6.9" } }, "RETRY"],
    ["REST_JSON", { status: 200, body: { version: "6.9", hitCount: 0 } }, "OK"],
    ["REST_JSON", { status: 429, body: null, text: "<html>" }, "RATE_LIMITED"],
    [
      "REST_JSON",
      { status: 403, body: { error: "Rate limit, slow down" }, text: "Rate limit, slow down" },
      "RATE_LIMITED",
    ],
    ["REST_JSON", { status: 403 }, "FAIL"],
    ["REST_JSON", { status: 401 }, "FAIL"],
    ["REST_JSON", { status: 301, body: null }, "FAIL"],
    ["REST_JSON", { status: 200, body: null, text: "<!DOCTYPE HTML><HTML>" }, "RETRY"],
    ["REST_JSON", { status: 200, body: null, text: '{"a":' }, "RETRY"],
    ["REST_JSON", { status: 500, body: null }, "RETRY"],
    ["REST_JSON", { status: 408 }, "RETRY"],
    ["REST_JSON", { status: 425 }, "RETRY"],
    ["NCBI", { status: 200, body: { esearchresult: { count: "1", idlist: ["1"] } } }, "OK"],
    ["NCBI", { status: 200, body: { error: "API rate limit exceeded", "api-key": "k" } }, "RATE_LIMITED"],
    ["NCBI", { status: 200, body: null, text: '{"error":"API rate limit exceeded"' }, "RATE_LIMITED"],
    ["NCBI", { status: 200, body: { esearchresult: { ERROR: TOO_FAR } } }, "SPLIT_SLICE"],
    ["NCBI", { status: 400, body: ncbi(TOO_FAR) }, "SPLIT_SLICE"],
    ["NCBI", { status: 400, body: null, text: "can only retrieve the first 9,999 records" }, "SPLIT_SLICE"],
    ["NCBI", { status: 400, body: ncbi("External viewer error: Empty Response. Status: Timeout") }, "RETRY"],
    ["NCBI", { status: 200, body: ncbi("NCBI C++ Exception: ...") }, "RETRY"],
    ["NCBI", { status: 200, body: { eSearchResult: { ERROR: ["Invalid db name specified: x"] } } }, "FAIL"],
    ["NCBI", { status: 400, body: ncbi("Unable to obtain query #1") }, "RESTART_SLICE"],
    ["NCBI", { status: 500, body: null, text: "<html>WWW Error 500 Diagnostic" }, "RETRY"],
    ["OAI", { status: 200, body: { "OAI-PMH": { ListRecords: [""] } } }, "OK"],
    ["OAI", { status: 200, body: oai("noRecordsMatch") }, "IGNORE_EMPTY"],
    ["OAI", { status: 422, body: oai("noRecordsMatch") }, "IGNORE_EMPTY"],
    ["OAI", { status: 200, body: oai("badResumptionToken") }, "RESTART_SLICE"],
    ["OAI", { status: 422, body: oai("badResumptionToken") }, "RESTART_SLICE"],
    ["OAI", { status: 200, body: oai("badArgument") }, "FAIL"],
    ["OAI", { status: 503, headers: { "retry-after": "10" }, body: null }, "RATE_LIMITED"],
    ["OAI", { status: 503, body: null }, "RETRY"],
    ["OAI", { status: 200, body: { html: { body: ["busy"] } } }, "RETRY"],
  ] as const)("%s, %j: %s", (family, given, action) => {
    expect(compileClassifier(familyRules(family))(answer(given as Partial<Answer>)).action).toBe(action);
  });

  test("that refuses access stops the source, and one that refuses the request does not", () => {
    const classify = compileClassifier(familyRules("REST_JSON"));
    expect(classify(answer({ status: 403 })).level).toBe("L4");
    expect(classify(answer({ status: 400 })).level).toBe("L2");
    expect(classify(answer({ status: 302 }))).toMatchObject({ reason: "redirect" });
  });
});

describe("rules", () => {
  const rule = (when: string, action: ClassifierRule["action"] = "RETRY"): ClassifierRule => ({
    when,
    action,
    reason: when,
  });

  test("apply in their order", () => {
    const classify = compileClassifier([rule("status == 404", "IGNORE_EMPTY"), ...familyRules("REST_JSON")]);
    expect(classify(answer({ status: 404 })).action).toBe("IGNORE_EMPTY");
    expect(classify(answer({ status: 405 })).action).toBe("FAIL");
  });

  test("that fail do not apply", () => {
    const classify = compileClassifier([
      rule("body.a.b == 1"),
      rule('headers["x"] == "1"'),
      rule("size(body) > attempt"),
    ]);
    expect(classify(answer({ body: null })).action).toBe("OK");
  });

  test("know the attempt, and carry their cooldown", () => {
    const classify = compileClassifier([{ ...rule("attempt > 2 && status == 200", "RATE_LIMITED"), cooldownSec: 30 }]);
    expect(classify(answer({ attempt: 2 })).action).toBe("OK");
    expect(classify(answer({ attempt: 3 }))).toMatchObject({ action: "RATE_LIMITED", cooldownSec: 30 });
  });

  test("leave no status beside 2xx undecided", () => {
    expect(compileClassifier([])(answer({ status: 204 })).action).toBe("OK");
    expect(compileClassifier([])(answer({ status: 404 }))).toMatchObject({ action: "FAIL" });
  });

  // What is checked without CEL must be what CEL says.
  const answers = [200, 204, 301, 400, 401, 403, 404, 408, 422, 429, 500, 503].flatMap((status) =>
    [
      null,
      [],
      "text",
      {},
      { html: "" },
      { error: "rate limit" },
      { error: { code: 1 } },
      CURSOR,
      { message: {}, "message-type": "exception" },
      { version: "6.9" },
      { errCode: 1 },
      { "OAI-PMH": "" },
      oai("noRecordsMatch"),
      oai("badVerb"),
      ncbi(TOO_FAR),
      ncbi("timeout"),
      { esearchresult: null },
      { esearchresult: { ERROR: "x" } },
    ].flatMap((body) =>
      [{}, { "retry-after": "1" }].map((headers) => answer({ status, body, headers, text: "<HTML>" })),
    ),
  );

  test.each([
    ...new Set(
      (["REST_JSON", "NCBI", "OAI"] as const).flatMap((family) => familyRules(family).map(({ when }) => when)),
    ),
    'status == 404 || has(body.error) && body.error == "rate limit"',
    "status == 200 && has(body.error) || status == 404",
    'status == 200 && (status == 404 || has(body.errCode)) && "retry-after" in headers',
    "status == 200 ? has(body.errCode) : status == 404",
    "status < 300 && body != null",
    "status in [200, 404] && status > 200",
  ])("decide as CEL does: %s", (when) => {
    const applies = compileClassifier([rule(when)]);
    const expression = compileExpression(when, CLASSIFIER_VARIABLES);
    const expected = answers.map((one) => {
      try {
        return expression.evaluate({ ...one }) === true;
      } catch {
        return false;
      }
    });
    expect(answers.map((one) => applies(one).reason === when)).toEqual(expected);
  });
});
