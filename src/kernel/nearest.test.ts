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

  test("counts the same edits as a whole table of both words", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 9, maxLength: 14 });
    fc.assert(
      fc.property(word, word, (typed, known) => {
        expect(nearest(typed, [known]) === known).toBe(editDistance(typed, known) <= 3);
      }),
      { numRuns: 2_000 },
    );
  });

  test("ignores input of a megabyte", () => {
    const long = "x".repeat(1_000_000);
    expect(nearest(long, [...WORDS, `${long}y`])).toBeUndefined();
  });
});

describe("the work of a search", () => {
  const PULLED_MAX = 300_000;

  /** Takes candidates until it is full, and returns how many it took. */
  function pulled(word: string, candidate: (index: number) => string): number {
    let count = 0;
    function* endless(): Generator<string> {
      for (; count < PULLED_MAX; count += 1) yield candidate(count);
    }
    nearest(word, endless());
    return count;
  }
  const digits = (index: number) => String(index).padStart(7, "0");

  test("is small for each unrelated candidate, however long it is", () => {
    const meant = `b${"x".repeat(59)}`;
    const unrelated = Array.from({ length: 5_000 }, (_, index) => digits(index) + "y".repeat(53));
    expect(nearest(`B${"x".repeat(58)}`, [...unrelated, meant])).toBe(meant);
  });

  test("is small for each candidate with the same prefix", () => {
    const prefix = "warehouse_daily_revenue_by_region_and_product_line_of_";
    const others = Array.from({ length: 5_000 }, (_, index) => prefix + digits(index));
    expect(nearest(`${prefix}customers`, [...others, `${prefix}costumers`])).toBe(`${prefix}costumers`);
  });

  test("ends, however many candidates there are", () => {
    expect(pulled("x".repeat(60), () => "short")).toBeLessThan(PULLED_MAX);
  });

  test("ends earlier if each candidate is as expensive as possible", () => {
    // One edit at the start and three at the end: all rows but the last are within the limit.
    const expensive = (length: number) => () => `y${"x".repeat(length - 4)}yyy`;
    expect(pulled("x".repeat(60), expensive(60))).toBeLessThan(1_000);
    expect(pulled("x".repeat(240), expensive(240))).toBeLessThan(250);
  });

  test("ends with an exact match", () => {
    expect(pulled("port", () => "port")).toBe(0);
  });
});

/** The definition of the distance, with the whole table. */
function editDistance(a: string, b: string): number {
  const table = Array.from({ length: a.length + 1 }, (_, row) =>
    Array.from({ length: b.length + 1 }, (__, column) => (row === 0 ? column : row)),
  );
  const at = (row: number, column: number) => table[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let row = 1; row <= a.length; row += 1) {
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = at(row - 1, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const isSwap = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapped = isSwap ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY;
      (table[row] ?? [])[column] = Math.min(at(row - 1, column) + 1, at(row, column - 1) + 1, replaced, swapped);
    }
  }
  return at(a.length, b.length);
}

test("didYouMean is a sentence to append, or nothing", () => {
  expect(didYouMean("prot", WORDS)).toBe(" Did you mean `port`?");
  expect(didYouMean("banana", WORDS)).toBe("");
});
