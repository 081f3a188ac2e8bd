/** The texts of `millrace harvest pause`, `check` and `why`. */
import { expect, test } from "vitest";
import { checkText } from "./check.ts";
import { pausesText, resumedText } from "./pauses.ts";
import { whyText } from "./why.ts";

test("what is paused is listed with who, since when and why", () => {
  const pause = { source: "crossref", at: "2026-11-16T18:02:56.123Z", by: "ann", automatic: false };
  const items = [
    { ...pause, endpoint: null, operation: null, reason: "maintenance" },
    { ...pause, endpoint: "works", operation: "BACKFILL", reason: null },
    { ...pause, endpoint: "dois", operation: null, by: "Millrace", reason: "GET / answered 401", automatic: true },
  ];
  expect(pausesText({ items })).toBe(
    [
      "crossref is paused by ann since 2026-11-16T18:02:56Z: maintenance",
      "crossref/works BACKFILL is paused by ann since 2026-11-16T18:02:56Z",
      "crossref/dois is paused by Millrace (access is refused) since 2026-11-16T18:02:56Z: GET / answered 401",
    ].join("\n"),
  );
  expect(resumedText({ items })).toMatch(
    /^Still paused, each until it is resumed with the flags.*:\ncrossref is paused by ann/,
  );
  expect(resumedText({ resumed: items[2], items: [] })).toBe(
    [
      "Resumed crossref/dois, which was paused by Millrace (access is refused) since 2026-11-16T18:02:56Z: GET / answered 401",
      "Nothing of the source is paused any more.",
    ].join("\n"),
  );
  expect(resumedText({ resumed: null, items })).toMatch(
    /^What was named is not paused: nothing was resumed\.\nStill paused/,
  );
});

test("a check has a line for each finding, with what to do below it", () => {
  const lines = [
    { name: "address", verdict: "ok", found: "api.crossref.org is 1.2.3.4.", advice: null },
    { name: "credential", verdict: "fail", found: "It was refused.", advice: "Replace it." },
  ] as const;
  expect(checkText({ source: "crossref", endpoint: "works", verdict: "fail", lines: [...lines] })).toBe(
    "crossref/works\nok    address     api.crossref.org is 1.2.3.4.\nfail  credential  It was refused.\n                  Replace it.",
  );
});

test("why has the causes in their order, with their times", () => {
  const causes = [
    { code: "SOURCE_DOWN", sentence: "It answers 503.", since: "2026-11-16T18:00:00Z", until: "2026-11-16T18:30:00Z" },
  ];
  expect(whyText({ sliceId: 7, status: "READY", causes })).toBe(
    "Slice 7 is READY.\nSOURCE_DOWN: It answers 503. Since 2026-11-16T18:00:00Z. Until 2026-11-16T18:30:00Z.",
  );
});
