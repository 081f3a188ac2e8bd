/** The cursor of a backfill: whatever completes, in whatever order and at the same time, it never passes a gap and only moves back. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../../test/database.ts";
import { makeSource } from "../../landing/windows.fixture.ts";
import { startOfSuffix } from "./backfill-cursors.ts";
import { cursorsOf, hour } from "./cursors.fixture.ts";

const database = useDatabase();
const harvest = cursorsOf(database, "HARVEST");
const { slice, end, cursorOf, followModel } = cursorsOf(database, "BACKFILL");

test("the start of a suffix is where the first gap ends", () => {
  const ranges = fc.array(fc.tuple(fc.nat(30), fc.integer({ min: 1, max: 4 })), { maxLength: 30 });
  fc.assert(
    fc.property(ranges, fc.integer({ min: 20, max: 34 }), (pairs, until) => {
      const slices = pairs
        .map(([from, width]) => ({ from, to: from + width }))
        .filter(({ from }) => from < until)
        .sort((a, b) => b.to - a.to);
      let expected = until;
      while (slices.some(({ from, to }) => from < expected && expected <= to)) expected -= 1;
      const rows = slices.map(({ from, to }) => ({ window_from: hour(from), window_to: hour(to) }));
      expect(startOfSuffix(hour(until), rows)).toEqual(hour(expected));
    }),
  );
});

describe("the cursor of a backfill", () => {
  test("is what a model says, with slices that end in any order and at the same time", followModel, 120_000);

  test("begins where HARVEST began, counts what HARVEST completed, and leaves its watermark alone", async () => {
    const source = await makeSource(database);
    const planId = await source.plan();
    await harvest.end(source, await harvest.slice(source, planId, 20, 22));
    const early = await slice(source, planId, 10, 12);
    expect(await end(source, early)).toBeUndefined();
    expect(await cursorOf(source)).toBeUndefined();
    expect(await end(source, await slice(source, planId, 16, 20))).toEqual(hour(16));
    expect(await end(source, await slice(source, planId, 12, 16))).toEqual(hour(10));
    expect(await harvest.cursorOf(source)).toEqual(hour(22));
    const events = await database.query(
      `select direction_code as direction, prev_instant as before, new_instant as after from harvest.ing_cursor_event
       where provenance_code = $1 and operation_code = 'BACKFILL' order by new_instant desc`,
      [source.source],
    );
    expect(events).toEqual([
      { direction: "BACKFILL", before: null, after: hour(16) },
      { direction: "BACKFILL", before: hour(16), after: hour(10) },
    ]);
  });

  test("does not begin below a slice that was cancelled without its plan", async () => {
    const source = await makeSource(database);
    const planId = await source.plan();
    const latest = await slice(source, planId, 8, 12);
    await database.query(
      "update harvest.ing_plan_slice set status_code = 'CANCELLED', reason = 'cancelled by ann', ended_at = now() where slice_id = $1",
      [latest.sliceId],
    );
    expect(await end(source, await slice(source, planId, 4, 8))).toBeUndefined();
    expect(await cursorOf(source)).toBeUndefined();
  });

  test("stays where it is when what is later is harvested again", async () => {
    const source = await makeSource(database);
    const planId = await source.plan();
    await end(source, await slice(source, planId, 4, 8));
    expect(await end(source, await slice(source, planId, 8, 12))).toBeUndefined();
    expect(await cursorOf(source)).toEqual(hour(4));
  });
});
