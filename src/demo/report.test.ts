import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { report, reportJson } from "./report.ts";

const CHECKS = [
  { what: "runs of WORKS", found: "7 SUCCESS", expected: "7 SUCCESS", source: "GET /a" },
  { what: "files through all stages", found: "5 of 6 shards", expected: "5 of 5 shards", source: "GET /b" },
];

test("a check that fails is marked in the table, and listed below it with what was expected", () => {
  const text = stripVTControlCharacters(report(CHECKS, 31.26));
  expect(text).toMatch(/^✓ {2}runs of WORKS +7 SUCCESS/m);
  expect(text).toMatch(/^✗ {2}files through all stages +5 of 6 shards/m);
  expect(text).toContain("\n1 of 2 checks failed:\n  files through all stages: 5 of 5 shards expected, 5 of 6");
  expect(JSON.parse(reportJson(CHECKS, 31.26, {}))).toMatchObject({
    passed: false,
    checks: [{ passed: true }, { passed: false }],
  });
});
