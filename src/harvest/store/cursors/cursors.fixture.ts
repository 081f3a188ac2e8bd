/** What the tests of both cursors share: slices that end as an executor ends them, and a model of where the cursor has to be. */
import fc from "fast-check";
import { expect } from "vitest";
import type { TestDatabase } from "../../../../test/database.ts";
import type { Queryable } from "../../../kernel/data/db.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import { makeSource, type TestSlice, type TestSource } from "../../landing/windows.fixture.ts";
import { endSlice } from "../plans/slices.ts";
import { advanceCursor } from "./backfill-cursors.ts";
import { readWatermark } from "./cursors.ts";

const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;

export const hour = (n: number) => new Date(Date.UTC(2026, 7, 1) + n * HOUR_MS);

/** The slices and the cursor of one operation. */
export function cursorsOf(database: TestDatabase, operation: "HARVEST" | "BACKFILL") {
  const isForward = operation === "HARVEST";
  const scope = isForward ? "EXPR" : "CUSTOM";
  const namespaceOf = ({ source }: TestSource) => ({
    provenance_code: source,
    operation_code: operation,
    cursor_key: "updated",
    namespace_scope_code: scope,
    namespace_key: "works",
  });

  async function slice(source: TestSource, planId: string, from: number, to: number): Promise<TestSlice> {
    const made = await source.slice(planId, hour(from), hour(to));
    await database.query(
      "update harvest.ing_plan_slice set operation_code = $2, namespace_scope_code = $3 where slice_id = $1",
      [made.sliceId, operation, scope],
    );
    return made;
  }

  async function endIn(tx: Queryable, source: TestSource, { sliceId, planId }: TestSlice, isComplete = true) {
    const key = { sliceId, generation: 1 };
    await endSlice(tx, key, isComplete ? "COMPLETE" : "INCOMPLETE", isComplete ? null : "too many records");
    if (!isComplete) return undefined;
    return advanceCursor(tx, {
      ...namespaceOf(source),
      ...key,
      endpointId: source.endpointId,
      planMonth: "2026-08-01",
      planId,
      scheduleInstanceId: planId,
      taskId: "1",
      runId: "1",
      exprHash: "",
      maxWindowMs: 4 * HOUR_MS,
      observedMax: null,
    });
  }

  const end = (source: TestSource, ended: TestSlice, isComplete = true) =>
    database.db.tx((tx) => endIn(tx, source, ended, isComplete));
  const cursorOf = (source: TestSource) => readWatermark(database.db, namespaceOf(source));

  /** Slices that end in any order and at the same time: the cursor never passes a gap, and moves one way only. */
  async function followModel(): Promise<void> {
    const width = fc.integer({ min: 1, max: 3 });
    const drawnSlice = fc.record({
      width,
      isComplete: fc.double({ min: 0, max: 1 }).map((n) => n < 0.85),
      order: fc.nat(),
    });
    const drawn = fc.array(drawnSlice, { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(drawn, fc.integer({ min: 1, max: 4 }), async (windows, together) => {
        const source = await makeSource(database);
        const planId = await source.plan();
        const slices: { slice: TestSlice; from: number; to: number; order: number; isComplete: boolean }[] = [];
        let top = 0;
        for (const one of windows) {
          const to = top + one.width;
          slices.push({ ...one, slice: await slice(source, planId, top, to), from: top, to });
          top = to;
        }
        const ordered = slices.toSorted((a, b) => a.order - b.order);
        const [start, step] = isForward ? [0, 1] : [top, -1];
        let last = start;
        for (let first = 0; first < ordered.length; first += together) {
          const some = ordered.slice(first, first + together);
          await Promise.all(some.map((one) => end(source, one.slice, one.isComplete)));
          const covering = ordered.slice(0, first + together).filter(({ isComplete }) => isComplete);
          // The hour behind the cursor, on the side that it moves to.
          const isCovered = (at: number) =>
            covering.some(({ from, to }) => (isForward ? from <= at && at < to : from < at && at <= to));
          let reached = start;
          while (isCovered(reached)) reached += step;
          expect(await cursorOf(source)).toEqual(reached === start ? undefined : hour(reached));
          expect((reached - last) * step).toBeGreaterThanOrEqual(0);
          last = reached;
        }
      }),
      { numRuns: LONG ? 300 : 15 },
    );
  }

  return { slice, end, endIn, cursorOf, followModel };
}
