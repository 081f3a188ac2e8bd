/** Dividing by what a source counts: the parts share no record and leave none out, or it is said that they would. */
import { describe, expect, test } from "vitest";
import { type Random, seededRandom } from "../../../test/random.ts";
import type { DimensionSpec } from "../spec/snapshot.ts";
import { type Divided, divide } from "./divide.ts";
import { nextStep, type Part, type PartRange } from "./parts.ts";

interface Item {
  id: number;
  day: string;
  code: string;
}

const DAYS: DimensionSpec = {
  name: "day",
  type: "DATE",
  fragment: "",
  from: "1999-12-01",
  until: "2000-03-31",
  format: "",
};
const NUMBERS: DimensionSpec = { name: "id", type: "NUMBER", fragment: "", from: 1, until: 5_000 };
const LETTERS = ["a", "b", "c"];
const PREFIXES: DimensionSpec = {
  name: "code",
  type: "PREFIX",
  fragment: "",
  values: LETTERS,
  depth: 4,
  rest: "of the prefix alone",
};
const VALUES: DimensionSpec = { name: "first", type: "VALUES", fragment: "", values: ["a", "b"], rest: "others" };

/** Whether a correct source would have the item among those of the range. */
function isIn(dimension: DimensionSpec, item: Item, range: PartRange): boolean {
  switch (dimension.type) {
    case "DATE":
    case "NUMBER": {
      const { from, until } = range as { from: string | number; until: string | number };
      const value = dimension.type === "DATE" ? item.day : item.id;
      return value >= from && value <= until;
    }
    case "PREFIX":
      if ("value" in range) return item.code.startsWith(range.value);
      return "rest" in range && item.code === range.rest; // No longer prefix finds it.
    case "VALUES":
      if ("value" in range) return item.code[0] === range.value;
      return !dimension.values.includes(item.code[0] ?? "");
  }
}

function itemsOf(items: readonly Item[], ladder: readonly DimensionSpec[], part: Part): Item[] {
  const used = ladder.filter(({ name }) => Object.hasOwn(part, name));
  return items.filter((item) => used.every((dimension) => isIn(dimension, item, part[dimension.name]!)));
}

function randomItems(random: Random): Item[] {
  const crowded = random.chance(0.5);
  return Array.from({ length: random.between(1, 400) }, (_, index) => ({
    id: index * 12 + random.between(1, 12),
    day: new Date(Date.UTC(2000, 0, crowded ? random.between(1, 4) : random.between(-20, 80)))
      .toISOString()
      .slice(0, 10),
    code: Array.from({ length: random.between(1, 5) }, () => LETTERS[random.between(0, 2)]).join(""),
  }));
}

async function divided(items: readonly Item[], ladder: readonly DimensionSpec[], cap: number): Promise<Divided<never>> {
  const count = async (part: Part) => ({ total: itemsOf(items, ladder, part).length });
  return divide({ ladder, cap, tolerance: 0, count }, { part: {}, total: items.length });
}

describe("the parts of random data", () => {
  const random = seededRandom();
  test.each(Array.from({ length: 150 }, (_, run) => run))(
    `share no record, leave none out and keep to the cap (seed ${random.seed}, run %i)`,
    async () => {
      const items = randomItems(random);
      const all = [DAYS, NUMBERS, PREFIXES, VALUES];
      const ladder = all.filter(() => random.chance(0.6));
      if (ladder.length === 0) ladder.push(NUMBERS);
      const cap = random.between(1, 50);
      const result = await divided(items, ladder, cap);
      if (!("parts" in result)) throw new Error(result.problem);
      const found = result.parts.map(({ part, total }) => ({ part, total, items: itemsOf(items, ladder, part) }));
      expect(found.flatMap((one) => one.items.map(({ id }) => id)).sort((a, b) => a - b)).toEqual(
        items.map(({ id }) => id).sort((a, b) => a - b),
      );
      for (const { part, total, items: own } of found) {
        expect(own.length, "what is counted is what is there").toBe(total);
        expect(total <= cap || nextStep(ladder, part) === undefined).toBe(true);
      }
    },
  );
});

test("266,421 records are divided below 9,999 with a count for about every second part", async () => {
  const items = Array.from({ length: 266_421 }, (_, index) => ({ id: 1 + index * 2, day: "", code: "" }));
  const ladder: DimensionSpec[] = [{ name: "id", type: "NUMBER", fragment: "", from: -1_000_000, until: 40_000_000 }];
  let counts = 0;
  const count = async (part: Part) => {
    counts += 1;
    const { from, until } = part["id"] as { from: number; until: number };
    const below = (bound: number) => Math.min(items.length, Math.max(0, Math.floor(bound / 2)));
    return { total: below(until + 1) - below(from) };
  };
  const result = await divide({ ladder, cap: 9_999, tolerance: 0, count }, { part: {}, total: items.length });
  if (!("parts" in result)) throw new Error(result.problem);
  expect(result.parts.reduce((sum, { total }) => sum + total, 0)).toBe(266_421);
  expect(result.parts.every(({ total }) => total <= 9_999)).toBe(true);
  expect(counts).toBeLessThan(result.parts.length + 20);
});

describe("parts that do not add up", () => {
  const items: Item[] = Array.from({ length: 20 }, (_, id) => ({ id: id + 1, day: "2000-01-01", code: "a" }));

  test("a record outside of the dimension is noticed before anything is fetched", async () => {
    const outside = [...items, { id: 99_999, day: "2000-01-01", code: "a" }];
    expect(await divided(outside, [NUMBERS], 5)).toEqual({
      problem: "the parts by id have 20 of the 21 records of the window",
    });
  });

  test("values that records have several of are refused", async () => {
    const count = async () => ({ total: 15 });
    expect(await divide({ ladder: [VALUES], cap: 5, tolerance: 0, count }, { part: {}, total: 20 })).toEqual({
      problem: "the parts by first have 30 records, more than the 20 of the window",
    });
  });

  test("without a rest, the values have to be all", async () => {
    const { rest: _, ...values } = VALUES;
    const others = [...items, { id: 500, day: "2000-01-01", code: "z" }];
    expect(await divided(others, [values], 5)).toEqual({
      problem: "the parts by first have 20 of the 21 records of the window",
    });
  });

  test("a few records may differ, if the definition says so", async () => {
    const outside = [...items, { id: 99_999, day: "2000-01-01", code: "a" }];
    const count = async (part: Part) => ({ total: itemsOf(outside, [NUMBERS], part).length });
    const result = await divide({ ladder: [NUMBERS], cap: 5, tolerance: 1, count }, { part: {}, total: 21 });
    expect(result).toMatchObject({ parts: expect.any(Array) });
  });
});

test("what cannot be counted any more leaves parts that are still the whole", async () => {
  const items: Item[] = Array.from({ length: 64 }, (_, id) => ({ id: id * 70 + 1, day: "", code: "" }));
  let left = 6;
  const result = await divide(
    {
      ladder: [NUMBERS],
      cap: 4,
      tolerance: 0,
      count: async (part) => {
        left -= 1;
        return left < 0 ? { stop: "the quota is spent" } : { total: itemsOf(items, [NUMBERS], part).length };
      },
    },
    { part: {}, total: items.length },
  );
  if (!("parts" in result)) throw new Error(result.problem);
  expect(result.stop).toBe("the quota is spent");
  const ids = result.parts.flatMap(({ part }) => itemsOf(items, [NUMBERS], part).map(({ id }) => id));
  expect(ids.sort((a, b) => a - b)).toEqual(items.map(({ id }) => id));
});
