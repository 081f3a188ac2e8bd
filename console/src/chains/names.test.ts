import { expect, test } from "vitest";
import { attemptText, runNameOf } from "./names.ts";

test("runs of one minute have names that differ, and an opTime is the better name", () => {
  const [one, other] = ["0198f434-0001-7000-8000-00000000000a", "0198f434-0002-7000-8000-00000000000b"] as const;
  expect(runNameOf({ opTime: null, runId: one })).not.toBe(runNameOf({ opTime: null, runId: other }));
  expect(runNameOf({ opTime: "20260401", runId: one })).toBe("20260401");
});

test("an attempt after a retry by hand is not counted against the budget that it has left behind", () => {
  expect(attemptText({ attempt: 2, maxAttempts: 3 })).toBe("2/3");
  expect(attemptText({ attempt: 2, maxAttempts: 1 })).toBe("2");
});
