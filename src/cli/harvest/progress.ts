/** How far a plan is, how fast it goes, and when it will be done, estimated from what the server answered lately. */

import { clockTime } from "../chain/run-text.ts";
import type { PlanDetail } from "./api.ts";
import { hasEnded } from "./api.ts";
import { inThousands } from "./plan-text.ts";

export interface PlanProgress {
  slicesDone: number;
  /** As far as the window is sliced. */
  slicesAll: number;
  isSliced: boolean;
  records: number;
  /** What the source announces for all slices, estimated while some have not begun; null if it announces nothing. */
  total: number | null;
  isEstimated: boolean;
  /** From 0 to 1. */
  share: number;
  perSecond: number | null;
  leftMs: number | null;
}

/** Speeds are those of the last seconds: pages come in bursts, and limits change. */
const RECENT_MS = 15_000;
/** A speed over less time is noise. */
const MEASURED_MS_MIN = 1_000;
/** Of a plan that has not ended: slices that have just begun have announced nothing yet. */
const OPEN_SHARE_MAX = 0.99;

/** Call it with each state of one plan; `now` is in milliseconds. */
export function createProgressMeter(): (plan: PlanDetail, now: number) => PlanProgress {
  let recent: { at: number; records: number; share: number }[] = [];
  return (plan, now) => {
    const current = progressOf(plan);
    const { records, share } = current;
    const first = recent.findLastIndex(({ at }) => at <= now - RECENT_MS);
    recent = [...recent.slice(Math.max(0, first)), { at: now, records, share }];
    const [oldest] = recent;
    const elapsedMs = oldest ? now - oldest.at : 0;
    if (!oldest || elapsedMs < MEASURED_MS_MIN) return current;
    const gained = share - oldest.share;
    return {
      ...current,
      // A slice that starts again or is split takes its records with it.
      perSecond: Math.max(0, (records - oldest.records) / (elapsedMs / 1_000)),
      leftMs: gained > 0 ? ((1 - share) / gained) * elapsedMs : null,
    };
  };
}

function progressOf(plan: PlanDetail): PlanProgress {
  const { slices, tasks, reconciliation, unslicedFrom, window } = plan;
  const { COMPLETE = 0, INCOMPLETE = 0, FAILED = 0, CANCELLED = 0, READY = 0 } = slices;
  const slicesDone = COMPLETE + INCOMPLETE + FAILED + CANCELLED;
  const slicesAll = slicesDone + READY;
  const records = reconciliation.received + reconciliation.quarantined;
  const { expected } = reconciliation;
  // Slices that have not begun are taken to be as large as the others.
  const begun = slicesDone + (tasks.EXECUTING ?? 0);
  const total = expected === null || begun === 0 ? expected : expected * (slicesAll / begun);
  const byRecords = total ? records / total : 0;
  const bySlices = slicesAll === 0 ? 0 : slicesDone / slicesAll;
  const sliced =
    unslicedFrom && window
      ? (Date.parse(unslicedFrom) - Date.parse(window.from)) / (Date.parse(window.to) - Date.parse(window.from))
      : 1;
  const share = hasEnded(plan) ? 1 : Math.min(OPEN_SHARE_MAX, Math.max(bySlices, byRecords) * sliced);
  return {
    slicesDone,
    slicesAll,
    isSliced: unslicedFrom === null,
    records,
    total,
    isEstimated: begun < slicesAll || unslicedFrom !== null,
    share,
    perSecond: null,
    leftMs: null,
  };
}

/** `1/2 slices, 5,403 of 10,000 records, 1,240/s, about 0:05 left`. */
export function progressText(progress: PlanProgress): string {
  const { slicesDone, slicesAll, isSliced, records, perSecond, leftMs, share } = progress;
  return [
    `${inThousands(slicesDone)}/${inThousands(slicesAll)}${isSliced ? "" : "+"} slices`,
    `${inThousands(records)}${ofTotal(progress)} records`,
    perSecond === null || share === 1 ? "" : `${inThousands(Math.round(perSecond))}/s`,
    leftMs === null || share === 1 ? "" : `about ${clockTime(Math.ceil(leftMs / 1_000) * 1_000)} left`,
  ]
    .filter((part) => part !== "")
    .join(", ");
}

function ofTotal({ total, isEstimated }: PlanProgress): string {
  if (total === null) return "";
  return isEstimated ? ` of about ${inThousands(Number(total.toPrecision(2)))}` : ` of ${inThousands(total)}`;
}
