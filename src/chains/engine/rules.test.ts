import { describe, expect, test } from "vitest";
import { RUN_WHEN } from "../definitions/dag.ts";
import { judge, type Verdict } from "./rules.ts";

type Counts = [waiting: number, failed: number, skipped: number];
const counts = ([waiting, failed, skipped]: Counts) => ({ waiting, failed, skipped });

describe("all_success", () => {
  test.each<[Counts, Verdict]>([
    [[0, 0, 0], "run"],
    [[1, 0, 0], "wait"],
    [[2, 1, 0], "skip"],
    [[2, 0, 1], "skip"],
    [[0, 1, 1], "skip"],
  ])("with %j waiting, failed and skipped parents: %s", (parents, verdict) => {
    expect(judge("all_success", counts(parents))).toBe(verdict);
  });
});

describe("all_done", () => {
  test.each<[Counts, Verdict]>([
    [[0, 0, 0], "run"],
    [[0, 2, 1], "run"],
    [[1, 2, 1], "wait"],
  ])("with %j waiting, failed and skipped parents: %s", (parents, verdict) => {
    expect(judge("all_done", counts(parents))).toBe(verdict);
  });
});

describe("one_failed", () => {
  test.each<[Counts, Verdict]>([
    [[0, 0, 0], "skip"],
    [[0, 0, 3], "skip"],
    [[1, 0, 3], "wait"],
    [[1, 1, 0], "run"],
    [[0, 1, 0], "run"],
  ])("with %j waiting, failed and skipped parents: %s", (parents, verdict) => {
    expect(judge("one_failed", counts(parents))).toBe(verdict);
  });
});

describe.each(RUN_WHEN)("%s, with any number of parents,", (rule) => {
  const few = [0, 1, 2, 3];
  const all = few.flatMap((waiting) => few.flatMap((failed) => few.map((skipped) => ({ waiting, failed, skipped }))));

  test("waits only while there is something to wait for", () => {
    expect(all.filter((parents) => judge(rule, parents) === "wait" && parents.waiting === 0)).toEqual([]);
  });

  test("does not change its mind when one more parent ends", () => {
    for (const parents of all.filter(({ waiting }) => waiting > 0)) {
      const verdict = judge(rule, parents);
      if (verdict === "wait") continue;
      const waiting = parents.waiting - 1;
      expect(judge(rule, { ...parents, waiting })).toBe(verdict);
      expect(judge(rule, { ...parents, waiting, failed: parents.failed + 1 })).toBe(verdict);
      expect(judge(rule, { ...parents, waiting, skipped: parents.skipped + 1 })).toBe(verdict);
    }
  });
});
