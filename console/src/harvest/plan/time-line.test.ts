import { expect, test } from "vitest";
import { drawn } from "./time-line.ts";

const span = (fromMs: number, toMs: number) => ({ fromMs, toMs });

test("runs at the same time are in lanes of their own, and a lane is used again when it is free", () => {
  const { lanes, bars } = drawn([span(0, 10), span(5, 12), span(10, 20), span(13, 20)]);
  expect(lanes).toBe(2);
  expect(bars.map(({ lane }) => lane)).toEqual([0, 1, 0, 1]);
  expect(bars[0]).toMatchObject({ left: 0, width: 0.5 });
  expect(bars[2]).toMatchObject({ left: 0.5, width: 0.5 });
});

test("an hour without a run is folded, so that the runs keep their width", () => {
  const { bars, folds } = drawn([span(0, 1_000), span(3_601_000, 3_602_000)]);
  expect(folds).toEqual([{ left: expect.closeTo(1_000 / 2_060), width: expect.closeTo(60 / 2_060), ms: 3_600_000 }]);
  expect(bars.map(({ width }) => width)).toEqual([expect.closeTo(1_000 / 2_060), expect.closeTo(1_000 / 2_060)]);
  expect((bars[1]?.left ?? 0) + (bars[1]?.width ?? 0)).toBeCloseTo(1);
});

test("a short pause stays as long as it was, and a plan without runs is empty", () => {
  expect(drawn([span(0, 1_000), span(1_050, 2_000)]).folds).toEqual([]);
  expect(drawn([])).toEqual({ lanes: 0, bars: [], folds: [] });
});
