/** The lines of a log, and what is found in them. */
import { describe, expect, it } from "vitest";
import { addressOf, appended, markedLines, matchesIn, ofLevel, patternOf } from "./lines.ts";

const item = (text: string, level = "info") => ({ id: "1", at: "2025-01-01T00:00:00Z", attempt: 1, level, text });

describe("a log", () => {
  it("has a line for each line of its texts, numbered on, without codes for terminals", () => {
    const first = appended([], [item("one\r\ntwo\n"), item("\u001b[31mred\u001b[0m")]);
    expect(appended(first, [item("")]).map(({ no, text }) => [no, text])).toEqual([
      [1, "one"],
      [2, "two"],
      [3, "red"],
      [4, ""],
    ]);
  });

  it("shows warnings with errors, or errors alone", () => {
    const lines = appended([], [item("a"), item("b", "warn"), item("c", "error")]);
    expect(ofLevel(lines, "warn").map(({ text }) => text)).toEqual(["b", "c"]);
    expect(ofLevel(lines, "error").map(({ no }) => no)).toEqual([3]);
  });
});

describe("the search", () => {
  const lines = appended([], [item("GET /a.b"), item("get /axb"), item("")]);

  it("takes a text as it is, in any case, or as a regular expression", () => {
    expect(matchesIn(lines, patternOf("/A.B", false))).toEqual([0]);
    expect(matchesIn(lines, patternOf("/a.b", true))).toEqual([0, 1]);
    expect(matchesIn(lines, patternOf("", true))).toEqual([]);
    expect(() => patternOf("(", true)).toThrow(SyntaxError);
  });

  it("marks each place in a line up to a limit, and none that is empty", () => {
    expect(patternOf("a", false)?.find("banana")).toEqual([
      { from: 1, to: 2 },
      { from: 3, to: 4 },
      { from: 5, to: 6 },
    ]);
    expect(patternOf("x*", true)?.find("abc")).toEqual([]);
    expect(patternOf("a", false)?.find("a".repeat(1_000))).toHaveLength(50);
  });
});

it("the marked lines of an address are one or a range, and nothing else", () => {
  expect(markedLines("L7")).toEqual({ from: 7, to: 7 });
  expect(markedLines("L9-7")).toEqual({ from: 7, to: 9 });
  expect([addressOf(7, 7), addressOf(9, 7)]).toEqual(["L7", "L7-9"]);
  for (const other of [undefined, "", "7", "L", "L1-", "Lx"]) expect(markedLines(other)).toBeUndefined();
});
