import fc from "fast-check";
import { expect, test } from "vitest";
import type { CoverKind } from "../store/cursors/coverage.ts";
import { stretchesOf } from "./coverage.ts";

const day = (n: number) => new Date(Date.UTC(2026, 7, n));
const row = (kind: CoverKind, from: number, to: number, slice: number | null = null) => ({
  kind,
  from: day(from),
  to: day(to),
  plan_id: slice === null ? null : "p",
  slice_id: slice === null ? null : String(slice),
  reason: slice === null ? null : `reason of ${slice}`,
});
const shown = (rows: Parameters<typeof stretchesOf>[0], from: number, to: number) =>
  stretchesOf(rows, day(from), day(to)).map((one) => [
    one.kind,
    one.from.getUTCDate(),
    one.to.getUTCDate(),
    one.sliceId,
  ]);

test("a time line goes from its beginning to its end, with what no plan asked for between the slices", () => {
  expect(shown([row("complete", 2, 4), row("gap", 5, 6, 1)], 1, 7)).toEqual([
    ["none", 1, 2, null],
    ["complete", 2, 4, null],
    ["none", 4, 5, null],
    ["gap", 5, 6, 1],
    ["none", 6, 7, null],
  ]);
});

test("what was completed in parts is no gap there, and the rest of the gap stays", () => {
  expect(shown([row("gap", 1, 5, 1), row("complete", 2, 3)], 1, 5)).toEqual([
    ["gap", 1, 2, 1],
    ["complete", 2, 3, null],
    ["gap", 3, 5, 1],
  ]);
});

test("a gap that is harvested again is under way, and of two failures the newer one says why", () => {
  expect(shown([row("gap", 1, 2, 1), row("open", 1, 2, 3), row("gap", 2, 3, 1), row("gap", 2, 3, 2)], 1, 3)).toEqual([
    ["open", 1, 2, 3],
    ["gap", 2, 3, 2],
  ]);
});

test("slices that reach over the edges are cut there, and neighbours of the same kind are one", () => {
  expect(shown([row("complete", 1, 4), row("complete", 4, 9)], 2, 8)).toEqual([["complete", 2, 8, null]]);
});

test("of slices that overlap at random each instant has the best kind, and of that the newest slice", () => {
  const slice = fc.record({
    kind: fc.constantFrom<CoverKind>("complete", "accepted", "open", "gap"),
    from: fc.integer({ min: 1, max: 20 }),
    days: fc.integer({ min: 1, max: 8 }),
  });
  fc.assert(
    fc.property(fc.array(slice, { maxLength: 12 }), (slices) => {
      const rows = slices.map(({ kind, from, days }, at) => row(kind, from, from + days, at + 1));
      const found = stretchesOf(rows, day(3), day(25));
      expect([found[0]?.from, found.at(-1)?.to]).toEqual([day(3), day(25)]);
      for (let at = 3; at < 25; at += 1) {
        const covering = rows.filter(({ from, to }) => from <= day(at) && to >= day(at + 1));
        const best = (["complete", "accepted", "open", "gap"] as const).find((kind) =>
          covering.some((one) => one.kind === kind),
        );
        const newest = covering.findLast(({ kind }) => kind === best);
        const stretch = found.find(({ from, to }) => from <= day(at) && to >= day(at + 1));
        expect([stretch?.kind, stretch?.sliceId]).toEqual([best ?? "none", newest ? Number(newest.slice_id) : null]);
      }
    }),
  );
});

test("a time line of many slices looks at each a few times, not once for each edge", () => {
  let looks = 0;
  class CountedDate extends Date {
    override getTime(): number {
      looks += 1;
      return super.getTime();
    }
  }
  const SLICES = 500;
  const rows = Array.from({ length: SLICES }, (_, n) => ({
    ...row("gap", 1, 2, n + 1),
    from: new CountedDate(n * 1_000),
    to: new CountedDate(n * 1_000 + 1_500),
  }));
  expect(stretchesOf(rows, new Date(0), new Date(SLICES * 1_000))).toHaveLength(SLICES);
  expect(looks).toBeLessThan(20 * SLICES);
});
