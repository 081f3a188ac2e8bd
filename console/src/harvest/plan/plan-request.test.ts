import { expect, test } from "vitest";
import { planRequestOf } from "./plan-request.ts";

test.each([
  [{}, { source: "s", endpoint: "e" }],
  [{ plans: "BACKFILL" }, { source: "s", endpoint: "e", operation: "BACKFILL" }],
  [{ last: "P3D" }, { source: "s", endpoint: "e", window: { last: "P3D" } }],
  [
    { plans: "BACKFILL", from: "2026-01-01", to: "2026-02-01" },
    { source: "s", endpoint: "e", operation: "BACKFILL", window: { from: "2026-01-01", to: "2026-02-01" } },
  ],
  [
    { plans: "UPDATE", last: "P3D" },
    { source: "s", endpoint: "e", operation: "UPDATE" },
  ],
  [
    { plans: "UPDATE", which: "quarantined" },
    { source: "s", endpoint: "e", operation: "UPDATE", quarantined: true },
  ],
  [
    { plans: "UPDATE", which: "ids" },
    { source: "s", endpoint: "e", operation: "UPDATE", ids: ["10.1/a, b", "c"] },
  ],
  [{ from: "2026-01-01", to: "" }, undefined],
] as const)("the form %j asks for %j", (search, expected) => {
  expect(planRequestOf("s", "e", search, { unset: "" }, " 10.1/a, b\n\nc\nc\n")).toEqual(expected);
});

test("an update by ids asks for nothing until one is named", () => {
  expect(planRequestOf("s", "e", { plans: "UPDATE", which: "ids" }, {}, " \n")).toBeUndefined();
});
