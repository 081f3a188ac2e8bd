/**
 * What a backfill takes: the window that was asked for, or what lies between the earliest record of the source and the time at which
 * HARVEST began. What HARVEST or another backfill has completed is left out of the latter.
 */
import type { Queryable } from "../../kernel/data/db.ts";
import { invalid } from "../../kernel/errors.ts";
import type { WindowSpec } from "../spec/snapshot.ts";
import { firstWindow } from "../store/cursors/cursors.ts";
import { missingRanges, NO_PLAN } from "../store/plans/plans.ts";
import { chooseRange, shownTime } from "./range.ts";
import { type Choice, landingNotes, type Nothing, namespaceOf, type Resolved, widestOf } from "./request.ts";
import { refuseTooMany } from "./slices.ts";
import { closedUntil, instantOf, inWholeUnits } from "./window.ts";

export async function chooseBackfill(
  reader: Queryable,
  resolved: Resolved,
  window: WindowSpec,
  now: Date,
): Promise<Choice | Nothing> {
  const { request, snapshot } = resolved;
  if (request.window) {
    const chosen = chooseRange(window, request.window, { now, watermark: undefined });
    if ("nothing" in chosen) return chosen;
    const { range } = chosen;
    refuseTooMany(snapshot, [range]);
    return { window: range, ranges: [range], strategy: "TIME", notes: [...chosen.notes, ...landingNotes(resolved)] };
  }
  const earliest = window.earliest === undefined ? undefined : instantOf(window.earliest, window.timezone);
  if (!earliest) {
    throw invalid(
      "A backfill needs a start: give `window` (`from` and `to`), or declare `window.earliest` in the definition",
    );
  }
  const namespace = namespaceOf(resolved);
  const began = await firstWindow(reader, { ...namespace, operation: "HARVEST", scope: "EXPR" });
  const whole = inWholeUnits(window, { from: earliest, to: began ?? closedUntil(window, now) });
  if (whole.from >= whole.to) {
    return { nothing: `HARVEST began at ${shownTime(whole.to)}, and the source has nothing older`, closesAt: null };
  }
  const ranges = await missingRanges(reader, namespace, { ...whole, widestMs: widestOf(snapshot) }, NO_PLAN);
  const [first, last] = [ranges[0], ranges.at(-1)];
  if (!first || !last) {
    const shown = `${shownTime(whole.from)} to ${shownTime(whole.to)}`;
    return { nothing: `What lies before HARVEST began, ${shown}, is complete or under way`, closesAt: null };
  }
  refuseTooMany(snapshot, ranges);
  return { window: { from: first.from, to: last.to }, ranges, strategy: "MISSING", notes: landingNotes(resolved) };
}
