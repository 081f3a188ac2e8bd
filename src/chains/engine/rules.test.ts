import { describe, expect, test } from "vitest";
import { RUN_WHEN } from "../definitions/dag.ts";
import { type Decision, decide } from "./rules.ts";

type Counts = [waiting: number, failed: number, skipped: number];
const counts = ([waiting, failed, skipped]: Counts) => ({ waiting, failed, skipped });

describe("all_success", () => {
  test.each<[Counts, Decision]>([
    [[0, 0, 0], "run"],
    [[1, 0, 0], "wait"],
    [[2, 1, 0], "skip"],
    [[2, 0, 1], "skip"],
    [[0, 1, 1], "skip"],
  ])("with %j waiting, failed and skipped parents: %s", (parents, decision) => {
    expect(decide("all_success", counts(parents))).toBe(decision);
  });
});

describe("all_done", () => {
  test.each<[Counts, Decision]>([
    [[0, 0, 0], "run"],
    [[0, 2, 1], "run"],
    [[1, 2, 1], "wait"],
  ])("with %j waiting, failed and skipped parents: %s", (parents, decision) => {
    expect(decide("all_done", counts(parents))).toBe(decision);
  });
});

describe("one_failed", () => {
  test.each<[Counts, Decision]>([
    [[0, 0, 0], "skip"],
    [[0, 0, 3], "skip"],
    [[1, 0, 3], "wait"],
    [[1, 1, 0], "run"],
    [[0, 1, 0], "run"],
  ])("with %j waiting, failed and skipped parents: %s", (parents, decision) => {
    expect(decide("one_failed", counts(parents))).toBe(decision);
  });
});

describe.each(RUN_WHEN)("%s, with any number of parents,", (rule) => {
  const few = [0, 1, 2, 3];
  const all = few.flatMap((waiting) => few.flatMap((failed) => few.map((skipped) => ({ waiting, failed, skipped }))));

  test("waits only while a parent has not ended", () => {
    expect(all.filter((parents) => decide(rule, parents) === "wait" && parents.waiting === 0)).toEqual([]);
  });

  test("does not change its decision when one more parent ends", () => {
    for (const parents of all.filter(({ waiting }) => waiting > 0)) {
      const decision = decide(rule, parents);
      if (decision === "wait") continue;
      const waiting = parents.waiting - 1;
      expect(decide(rule, { ...parents, waiting })).toBe(decision);
      expect(decide(rule, { ...parents, waiting, failed: parents.failed + 1 })).toBe(decision);
      expect(decide(rule, { ...parents, waiting, skipped: parents.skipped + 1 })).toBe(decision);
    }
  });
});
