/** The watermark: whatever completes, in whatever order and at the same time, it never passes a gap and never moves back. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../../test/database.ts";
import { makeSource } from "../../landing/windows.fixture.ts";
import { listCursorEvents } from "./cursor-reads.ts";
import { cursorsOf, hour } from "./cursors.fixture.ts";
import { endOfPrefix } from "./cursors.ts";

const database = useDatabase();
const { slice, end, endIn, followModel } = cursorsOf(database, "HARVEST");

test("the end of a prefix is where the first gap begins", () => {
  const ranges = fc.array(fc.tuple(fc.nat(30), fc.integer({ min: 1, max: 4 })), { maxLength: 30 });
  fc.assert(
    fc.property(ranges, fc.nat(10), (pairs, start) => {
      const slices = pairs
        .map(([from, width]) => ({ from, to: from + width }))
        .filter(({ to }) => to > start)
        .sort((a, b) => a.from - b.from);
      let expected = start;
      while (slices.some(({ from, to }) => from <= expected && expected < to)) expected += 1;
      const rows = slices.map(({ from, to }) => ({ window_from: hour(from), window_to: hour(to) }));
      expect(endOfPrefix(hour(start), rows)).toEqual(hour(expected));
    }),
  );
});

describe("the watermark", () => {
  test("is what a model says, with slices that end in any order and at the same time", followModel, 120_000);

  test("passes a gap once another plan completes its window, with one event for each step", async () => {
    const source = await makeSource(database);
    const planId = await source.plan();
    const [a, b, c] = [
      await slice(source, planId, 0, 1),
      await slice(source, planId, 1, 2),
      await slice(source, planId, 2, 3),
    ];
    expect(await end(source, c)).toBeUndefined();
    expect(await end(source, b, false)).toBeUndefined();
    expect(await end(source, a)).toEqual(hour(1));
    const again = await slice(source, await source.plan(), 1, 2);
    expect(await end(source, again)).toEqual(hour(3));
    const events = await database.query(
      `select prev_instant as before, new_instant as after from harvest.ing_cursor_event where provenance_code = $1
       order by new_instant`,
      [source.source],
    );
    expect(events).toEqual([
      { before: null, after: hour(1) },
      { before: hour(1), after: hour(3) },
    ]);
  });

  test("lists its events in the order of its moves, also when the transaction of the later one began first", async () => {
    const source = await makeSource(database);
    const planId = await source.plan();
    const a = await slice(source, planId, 0, 1);
    const b = await slice(source, planId, 1, 2);
    await database.db.tx(async (tx) => {
      await end(source, a);
      await endIn(tx, source, b);
    });
    const events = await listCursorEvents(
      database.db,
      { source: source.source, operation: "HARVEST", namespace: "works" },
      10,
    );
    expect(events.map(({ new_value }) => new_value)).toEqual([hour(2).toISOString(), hour(1).toISOString()]);
  });

  test("passes more complete slices at once than are read together", async () => {
    const source = await makeSource(database);
    const planId = await source.plan();
    const first = await slice(source, planId, 0, 1);
    await database.query(
      `insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
         namespace_key, window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code, ended_at)
       select $1, n + 100000, $2, $3, 'HARVEST', 'EXPR', 'works', $4::timestamptz + make_interval(hours => n),
         $4::timestamptz + make_interval(hours => n + 1), '{}', 'many ' || n, '', '{}', 'COMPLETE', now()
       from generate_series(1, 10500) n`,
      [planId, source.source, source.endpointId, hour(0)],
    );
    expect(await end(source, first)).toEqual(hour(10_501));
  });
});
