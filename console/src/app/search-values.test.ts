/** What an address says of a page, as it is written and read. */
import { expect, test } from "vitest";
import { count, isInPlace, parseSearch, type Search, stringifySearch, text, texts } from "./search-values.ts";

test("values are written as a person would write them, and read back as they were", () => {
  const address = stringifySearch({
    at: "20261113",
    tenant: "1",
    q: "true",
    shard: 7,
    start: true,
    row: "0012",
    gone: undefined,
  });
  expect(address).toBe("?at=20261113&tenant=1&q=true&shard=7&start=true&row=0012");
  const search: Search = parseSearch(address);
  expect(["at", "tenant", "q", "row"].map((name) => text(search[name]))).toEqual(["20261113", "1", "true", "0012"]);
  expect(count(search["shard"])).toBe(7);
  expect(search["start"]).toBe(true);
  for (const odd of ["12345678901234567890", "1e3", '"quoted"', "{}", "null", "-0", " 5"])
    expect(texts(parseSearch(stringifySearch({ q: odd })), ["q"]).q).toBe(odd);
});

test("opening a drawer is a step back in the history, changing what it shows or closing it is not", () => {
  const opens = (before: { id?: string; q?: string }, change: { id?: string | undefined; q?: string }) =>
    !isInPlace<{ id?: string | undefined; q?: string }>(before, change, "id");
  expect(opens({}, { id: "1" })).toBe(true);
  expect(opens({ id: "1" }, { id: "2" })).toBe(false);
  expect(opens({ id: "1" }, { id: undefined })).toBe(false);
  expect(opens({}, { q: "x" })).toBe(false);
});
