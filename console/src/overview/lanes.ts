/** Where the parts of the chart of lanes are. */
import type { Activity, Cell } from "./api.ts";

type Axis = Pick<Activity, "from" | "to" | "bucketMs" | "buckets">;

const TICKS_MAX = 7;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TICK_STEPS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 3, 4, 6, 12].map((hours) => hours * HOUR_MS),
  ...[1, 2, 5, 7].map((days) => days * DAY_MS),
];

/** Times within the range that are round in the chosen zone, few enough for their labels. `offsetAt` is how far it is ahead of UTC. */
export function ticksOf(
  { from, to }: Axis,
  offsetAt: (atMs: number) => number,
): readonly { atMs: number; share: number }[] {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  const step = TICK_STEPS_MS.find((one) => (end - start) / one <= TICKS_MAX) ?? 7 * DAY_MS;
  const first = Math.ceil((start + offsetAt(start)) / step) * step;
  const count = Math.max(0, Math.floor((end - start) / step) + 2);
  return Array.from({ length: count }, (_, index) => {
    const local = first + index * step;
    const atMs = local - offsetAt(local - offsetAt(start));
    return { atMs, share: (atMs - start) / (end - start) };
  }).filter(({ share }) => share >= 0 && share <= 1);
}

/** The times of a bucket. The last one may be cut by the end of the range. */
export function timesOf({ from, to, bucketMs }: Axis, bucket: number): readonly [fromMs: number, toMs: number] {
  const start = Date.parse(from) + bucket * bucketMs;
  return [start, Math.min(start + bucketMs, Date.parse(to))];
}

/** Where a bucket is drawn, as shares of the width. */
export function placeOf(axis: Axis, bucket: number): { left: number; width: number } {
  const [start, end] = timesOf(axis, bucket);
  const whole = Date.parse(axis.to) - Date.parse(axis.from);
  return { left: (start - Date.parse(axis.from)) / whole, width: (end - start) / whole };
}

/** Heights of the parts of a bar, of 1. By the root: beside a hundred, one is still seen. */
export function barOf({ ended, failed, stopped }: Omit<Cell, "bucket" | "failedId">, most: number) {
  const height = Math.max(0.25, Math.sqrt(ended / Math.max(most, 1)));
  const failedPart = failed === 0 ? 0 : Math.max(0.15, (height * failed) / ended);
  const stoppedPart = (height * stopped) / ended;
  return { failed: failedPart, stopped: stoppedPart, succeeded: Math.max(0, height - failedPart - stoppedPart) };
}

/** The range of times between two places, in whole buckets. */
export function brushed(axis: Axis, one: number, other: number): { from: string; to: string } {
  const start = Date.parse(axis.from);
  const whole = Date.parse(axis.to) - start;
  const bucketAt = (share: number) => (Math.min(Math.max(share, 0), 1) * whole) / axis.bucketMs;
  const first = Math.floor(bucketAt(Math.min(one, other)));
  const last = Math.max(first + 1, Math.ceil(bucketAt(Math.max(one, other))));
  const at = (bucket: number) => new Date(Math.min(start + bucket * axis.bucketMs, start + whole)).toISOString();
  return { from: at(first), to: at(last) };
}
