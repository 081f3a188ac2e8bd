/** Sizes and divisions of slices as people read them. */
import { expect, test } from "vitest";
import { planWords } from "../plan-words.ts";
import { divisionText, estimateText, expectedText, ladderText, partText } from "./sizes.ts";

const text = planWords.en;
const number = (count: number) => count.toLocaleString("en");

test("an estimate says that it is one, and by what", () => {
  expect(estimateText(text, number, null)).toBe("");
  expect(estimateText(text, number, { records: 1_200, basis: "TOTAL" })).toBe("1,200");
  expect(expectedText(text, number, { records: 1_200, basis: "SAMPLE" })).toBe(
    "about 1,200 records, from the first page",
  );
});

test.each([
  [
    { edat: { from: "2026-01-01", until: "2026-03-31" }, kind: { value: "book" } },
    "edat 2026-01-01 – 2026-03-31, kind book",
  ],
  [{ kind: { rest: "" } }, "kind other values"],
  [{ pages: { from: 3, until: 3 } }, "pages 3"],
  [{ quarantined: { from: "a", until: "b" } }, "quarantined a – b"],
])("the part %j is %s", (part, shown) => {
  expect(partText(text, part)).toBe(shown);
});

test("a division says what divides the window, and into what", () => {
  const first = [
    { name: "kind book", records: 15 },
    { name: "kind article", records: null },
  ];
  expect(divisionText(text, number, { by: "kind", parts: 2, first, isKnown: true })).toBe(
    "previously divided by kind into 2 parts: kind book: 15; kind article",
  );
  expect(divisionText(text, number, { by: "TIME", parts: 4, first: [], isKnown: false })).toMatch(
    /^divided by time into at least 4 parts/,
  );
  expect(divisionText(text, number, { by: "NONE", parts: 0, first: [], isKnown: false })).toContain(
    "cannot be divided",
  );
  expect(ladderText(text, { name: "kind", type: "VALUES", kind: "list", parts: ["kind book"], count: 3 })).toBe(
    "kind, 3 parts: kind book",
  );
});
