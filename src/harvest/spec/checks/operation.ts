/** The operation, and what the trigger says, fit the endpoint. */
import { durationMs } from "../duration.ts";
import type { CheckInput, Finding } from "./check.ts";

const trigger = (reason: string): Finding => ({ field: "operation", reason, table: "trigger" });

/** 4.17, number 8: UPDATE asks for the records of ids. */
export function* updateAsksForIds({ operation, endpoint, isDetail, answersIds }: CheckInput): Iterable<Finding> {
  if (isDetail || answersIds || operation !== "UPDATE" || endpoint.detail !== undefined) return;
  yield trigger("UPDATE asks for the records of ids: the endpoint needs `detail`, the endpoint that answers them.");
}

export function* updateIsReadable({ policy: { update } }: CheckInput): Iterable<Finding> {
  const { staleAfter } = update;
  if (staleAfter === undefined) return;
  const ms = durationMs(staleAfter);
  if (ms === undefined)
    yield { field: "update.staleAfter", reason: "It is not a duration of at most a hundred years." };
  else if (ms === 0) yield { field: "update.staleAfter", reason: "It is zero." };
}

/** A total that is announced is reconciled, and by NoCount there is none. */
export function* noCountCountsNothing({ policy, isDetail }: CheckInput): Iterable<Finding> {
  const { enumerator, response, window } = policy;
  if (isDetail || enumerator !== "NoCount") return;
  const reason =
    "The enumerator NoCount is for a source that announces no total, and what this finds would be reconciled. Remove it, or choose another enumerator.";
  if (response.totalPath !== undefined) yield { field: "response.totalPath", reason };
  if (window?.probe !== undefined) yield { field: "window.probe", reason };
}

/** 4.17, number 8: BACKFILL goes back through windows of time. */
export function* backfillGoesBack({ operation, policy, isDetail }: CheckInput): Iterable<Finding> {
  if (isDetail || operation !== "BACKFILL") return;
  if (policy.enumerator === "ExistingSet") {
    yield { field: "enumerator", reason: "ExistingSet reads known records again; BACKFILL looks for older ones." };
  } else if (!policy.window) {
    yield trigger(
      "BACKFILL goes back through windows of time, and the endpoint has no `window`: HARVEST reads all of it.",
    );
  }
}

/** 4.17, number 8 and 3.3.3: HARVEST goes forward, by windows of time or by the source's own cursor. */
export function* harvestGoesForward({ operation, policy, isDetail }: CheckInput): Iterable<Finding> {
  if (isDetail || operation !== "HARVEST") return;
  const { enumerator, window } = policy;
  if (enumerator === "ExistingSet") {
    yield { field: "enumerator", reason: "ExistingSet reads known records again; HARVEST looks for new ones." };
    return;
  }
  if (window || enumerator === "ScanByCursor" || enumerator === "NoCount") return;
  yield { field: "window.watermarkKey", reason: `HARVEST with ${enumerator} needs a window to go forward.` };
}
