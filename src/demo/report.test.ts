import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { nextSteps, report, reportJson, timed } from "./report.ts";

const CHECKS = [
  { what: "runs of WORKS", found: "7 SUCCESS", expected: "7 SUCCESS", source: "GET /a" },
  { what: "files through all stages", found: "5 of 6 shards", expected: "5 of 5 shards", source: "GET /b" },
];

test("a check that fails is marked in the table, and listed below it with what was expected", () => {
  const text = stripVTControlCharacters(report(CHECKS, 31.26, 80));
  expect(text).toMatch(/^✓ {2}runs of WORKS +7 SUCCESS +GET \/a$/m);
  expect(text).toMatch(/^✗ {2}files through all stages +5 of 6 shards/m);
  expect(text).toContain("\n1 of 2 checks failed:\n  files through all stages: 5 of 5 shards expected, 5 of 6");
  expect(JSON.parse(reportJson(CHECKS, 31.26, {}))).toMatchObject({
    passed: false,
    checks: [{ passed: true }, { passed: false }],
  });
});

test("a table that is too wide for the terminal is shown without the calls that were read", () => {
  const widths = (text: string) =>
    stripVTControlCharacters(text)
      .split("\n")
      .map((row) => row.length);
  const width = Math.max(...widths(report(CHECKS.slice(0, 1), 1, 200)).values());
  expect(report(CHECKS.slice(0, 1), 1, width)).toContain("GET /a");
  expect(report(CHECKS.slice(0, 1), 1, width - 1)).not.toContain("GET /a");
});

test("a line is broken at words, and goes on below its first one", () => {
  expect(timed(3.92, "orders: fetch failed, and is tried again", 30)).toBe(
    "  3.9 s  orders: fetch failed,\n         and is tried again",
  );
  expect(timed(3.92, "orders: fetch failed, and is tried again", Number.POSITIVE_INFINITY)).not.toContain("\n");
});

test("nothing that is copied from the next steps is broken in 80 columns", () => {
  const url = "http://127.0.0.1:35891";
  const signIn = `${url}/login?to=/?range=hour#k${"x".repeat(43)}`;
  const pages = [{ name: "A retried run", path: "/chains/runs/01990000-0000-7000-8000-000000000000" }];
  const given = { url, key: `mlr_${"x".repeat(43)}`, links: { signIn, pages }, opTime: "20261112" };
  const narrow = nextSteps({ ...given, columns: 80 });
  expect(narrow.split("\n").filter((row) => row.length > 80)).toEqual([]);
  expect(narrow).toContain(`\n  ${url}/login#kx`);
  expect(nextSteps({ ...given, columns: 120 })).toContain(`\n  ${signIn}\n`);
});
