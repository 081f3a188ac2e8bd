import { expect, test } from "vitest";
import { inPlace } from "./held-rows.ts";

/** Rows by letter; a digit is what the row says. */
function held(shown: string, rows: string) {
  const split = (text: string) => text.split(" ").filter(Boolean);
  const found = inPlace(split(shown), split(rows), (row) => row.slice(0, 1));
  return { rows: found.rows.join(" "), waiting: found.waiting, gone: [...found.gone].join(" ") };
}

test("rows keep their places and say what is true now", () => {
  expect(held("a1 b1 c1", "c2 a2 b1")).toEqual({ rows: "a2 b1 c2", waiting: 0, gone: "" });
});

test("new rows wait, unless they come behind all others", () => {
  expect(held("b1 d1", "a1 b1 c1 d1 e1 f1")).toEqual({ rows: "b1 d1 e1 f1", waiting: 2, gone: "" });
});

test("rows that are gone stay, and are named as such unless new rows may have moved them to another page", () => {
  expect(held("b1 c1 d1 e1", "a1 b1 d1")).toEqual({ rows: "b1 c1 d1 e1", waiting: 1, gone: "c" });
});

test("a list of which nothing is left is shown as it is", () => {
  expect(held("a1 b1", "c1 d1")).toEqual({ rows: "c1 d1", waiting: 0, gone: "" });
  expect(held("a1 b1", "")).toEqual({ rows: "", waiting: 0, gone: "" });
});
