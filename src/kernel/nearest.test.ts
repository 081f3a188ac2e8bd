import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { didYouMean, nearest } from "./nearest.ts";

const WORDS = ["port", "host", "roles", "data-dir", "log-level", "shard-splitter", "shard-worker"];

describe("nearest", () => {
  test.each([
    ["prot", "port"],
    ["pot", "port"],
    ["hosts", "host"],
    ["PORT", "port"],
    ["dataDir", "data-dir"],
    ["log_levle", "log-level"],
    ["shard-spliter", "shard-splitter"],
  ])("finds what `%s` was meant to be", (typed, meant) => {
    expect(nearest(typed, WORDS)).toBe(meant);
  });

  test("finds nothing when no candidate is similar", () => {
    expect(nearest("url", ["key"])).toBeUndefined();
    expect(nearest("banana", WORDS)).toBeUndefined();
    expect(nearest("", WORDS)).toBeUndefined();
  });

  test("counts a swap of neighbours as one edit", () => {
    expect(nearest("ab", ["ba"])).toBe("ba");
  });

  test("returns the first of equally similar candidates", () => {
    expect(nearest("cat", ["bat", "hat"])).toBe("bat");
  });

  test("prefers an exact match to an earlier similar one", () => {
    expect(nearest("hat", ["bat", "hat"])).toBe("hat");
  });

  test("always finds a long word after one deletion", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 4, maxLength: 30 }), fc.nat(), (word, place) => {
        const cut = place % word.length;
        expect(nearest(word.slice(0, cut) + word.slice(cut + 1), [word])).toBe(word);
      }),
    );
  });

  test("is fast for input of a megabyte", () => {
    const long = "x".repeat(1_000_000);
    expect(nearest(long, [...WORDS, `${long}y`])).toBeUndefined();
  });
});

test("didYouMean is a sentence to append, or nothing", () => {
  expect(didYouMean("prot", WORDS)).toBe(" Did you mean `port`?");
  expect(didYouMean("banana", WORDS)).toBe("");
});
