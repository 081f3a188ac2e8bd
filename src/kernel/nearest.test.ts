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

  test("stays silent when nothing is near, since a wrong hint is worse than none", () => {
    expect(nearest("url", ["key"])).toBeUndefined();
    expect(nearest("banana", WORDS)).toBeUndefined();
    expect(nearest("", WORDS)).toBeUndefined();
  });

  test("counts a swap of neighbours as one slip", () => {
    expect(nearest("ab", ["ba"])).toBe("ba");
  });

  test("takes the earlier of two candidates that are as near", () => {
    expect(nearest("cat", ["bat", "hat"])).toBe("bat");
  });

  test("prefers an exact match over an earlier near one", () => {
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

  test("answers at once for input of a megabyte", () => {
    const long = "x".repeat(1_000_000);
    expect(nearest(long, [...WORDS, `${long}y`])).toBeUndefined();
  });
});

test("didYouMean is a sentence to append, or nothing", () => {
  expect(didYouMean("prot", WORDS)).toBe(" Did you mean `port`?");
  expect(didYouMean("banana", WORDS)).toBe("");
});
