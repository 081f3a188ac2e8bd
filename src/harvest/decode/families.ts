/**
 * The rules by which the sources of a family answer. They follow the rules of a definition in the snapshot. L1 passes by itself,
 * L2 is a mistake in the request, L4 pauses the endpoint.
 *
 * Each rule begins with a condition that needs no CEL (see classifier.ts), and keeps alternatives in parentheses.
 */
import type { ClassifierRule, FAMILIES } from "../definition/policy.ts";

type Family = (typeof FAMILIES)[number];

export function familyRules(family: Family): ClassifierRule[] {
  return [...RULES[family], ...EVERY_FAMILY];
}

const EVERY_FAMILY: readonly ClassifierRule[] = [
  { when: "status == 429", action: "RATE_LIMITED", reason: "too many requests", level: "L1" },
  {
    when: 'status == 503 && "retry-after" in headers',
    action: "RATE_LIMITED",
    reason: "unavailable for a time",
    level: "L1",
  },
  {
    when: 'status == 403 && text.lowerAscii().contains("rate limit")',
    action: "RATE_LIMITED",
    reason: "too many requests",
    level: "L1",
  },
  { when: "status in [401, 403]", action: "FAIL", reason: "access refused", level: "L4" },
  { when: "status in [408, 425]", action: "RETRY", reason: "the source asks to try again", level: "L1" },
  { when: "status >= 500", action: "RETRY", reason: "error of the source", level: "L1" },
  { when: "status >= 400", action: "FAIL", reason: "request refused", level: "L2" },
  { when: "status >= 300", action: "FAIL", reason: "redirect", level: "L2" },
  {
    when: 'body == null && text.lowerAscii().contains("<html")',
    action: "RETRY",
    reason: "an HTML page instead of data",
    level: "L1",
  },
  { when: "has(body.html)", action: "RETRY", reason: "an HTML page instead of data", level: "L1" },
  { when: "body == null", action: "RETRY", reason: "the body is not well-formed", level: "L1" },
];

const RULES: Record<Family, readonly ClassifierRule[]> = {
  REST_JSON: [
    // Crossref: a cursor that has expired or was never valid. 404 since 2026, 400 at times, 500 with a stack trace in 2022.
    {
      when: 'status in [400, 404] && has(body.message) && body.message[0].type == "cursor-invalid"',
      action: "RESTART_SLICE",
      reason: "the cursor is no longer valid",
      level: "L1",
    },
    {
      when: 'status == 500 && "message-type" in body && body["message-type"] == "exception"',
      action: "RESTART_SLICE",
      reason: "the cursor is no longer valid, or the search failed",
      level: "L1",
    },
    // Europe PMC answers errors with 200, and sometimes only its version.
    { when: "status == 200 && has(body.errCode)", action: "FAIL", reason: "the source reports an error", level: "L2" },
    {
      when: "status == 200 && has(body.errorBean)",
      action: "FAIL",
      reason: "the source reports an error",
      level: "L2",
    },
    {
      when: "status == 200 && has(body.version) && size(body) == 1",
      action: "RETRY",
      reason: "an answer without a result",
      level: "L1",
    },
  ],

  NCBI: [
    // The same body is seen with 429 and with 200.
    {
      when: 'has(body.error) && string(body.error).contains("rate limit")',
      action: "RATE_LIMITED",
      reason: "too many requests",
      level: "L1",
    },
    {
      when: 'body == null && text.contains("API rate limit exceeded")',
      action: "RATE_LIMITED",
      reason: "too many requests",
      level: "L1",
    },
    {
      when: 'status == 400 && text.contains("first 9,999 records")',
      action: "SPLIT_SLICE",
      reason: "more records than the source answers",
      level: "L1",
    },
    ...ncbiErrors("body.esearchresult", "body.esearchresult.ERROR"),
    ...["eSearchResult", "eFetchResult", "eSummaryResult", "ePostResult", "eInfoResult", "eLinkResult"].flatMap(
      (root) => ncbiErrors(`body.${root}`, `body.${root}.ERROR[0]`),
    ),
  ],

  OAI: [
    // Some servers answer errors of the protocol with 422. An empty window and a token after the last page are no errors.
    oaiError("noRecordsMatch", "IGNORE_EMPTY", "no records match"),
    oaiError("idDoesNotExist", "IGNORE_EMPTY", "there is no record with this identifier"),
    oaiError("badResumptionToken", "RESTART_SLICE", "the token is no longer valid"),
    {
      when: '"error" in body["OAI-PMH"]',
      action: "FAIL",
      reason: "an error of OAI-PMH",
      level: "L2",
    },
  ],
};

/** An ERROR stands in an answer with 200 or 400. Whether it passes shows only in its text. */
function ncbiErrors(result: string, error: string): ClassifierRule[] {
  const present = `has(${result}.ERROR)`;
  return [
    {
      when: `${present} && (string(${error}).contains("9,999") || string(${error}).contains("9998"))`,
      action: "SPLIT_SLICE",
      reason: "more records than the source answers",
      level: "L1",
    },
    {
      when:
        `${present} && (string(${error}).lowerAscii().contains("timeout") || string(${error}).contains("Search Backend failed") || ` +
        `string(${error}).contains("NCBI C++ Exception") || string(${error}).contains("Empty Response"))`,
      action: "RETRY",
      reason: "error of the source",
      level: "L1",
    },
    {
      when: `${present} && string(${error}).contains("Unable to obtain query")`,
      action: "RESTART_SLICE",
      reason: "the session of the search has ended",
      level: "L1",
    },
    { when: present, action: "FAIL", reason: "the source reports an error", level: "L2" },
  ];
}

function oaiError(code: string, action: ClassifierRule["action"], reason: string): ClassifierRule {
  const when = `"error" in body["OAI-PMH"] && body["OAI-PMH"].error[0]["@code"] == "${code}"`;
  return { when, action, reason, level: "L1" };
}
