/** Geometry of the activity chart: ticks, buckets, bar heights and the dragged range. */
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

/** Round times in the chosen zone, as many as labels fit. `offsetAt` is the zone's offset from UTC. */
export function ticksOf(
  { from, to }: Axis,
  offsetAt: (atMs: number) => number,
): readonly { atMs: number; share: number }[] {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  const step = TICK_STEPS_MS.find((one) => (end - start) / one <= TICKS_MAX) ?? 7 * DAY_MS;
  const first = Math.ceil((start + offsetAt(start)) / step) * step;
  const count = Math.max(0, Math.floor((end - start) / step) + 2);
  return Array.from({ length: count }, (_, index) => {
    const atMs = instantOf(first + index * step, offsetAt);
    return { atMs, share: (atMs - start) / (end - start) };
  }).filter(({ share }) => share >= 0 && share <= 1);
}

/** The offset of a zone from UTC, by the function that writes times in it. */
export function offsetIn(time: (atMs: number) => string): (atMs: number) => number {
  return (atMs) => Date.parse(`${time(atMs).replace(" ", "T")}Z`) - atMs;
}

/** The instant of a local time, which is given as if it were in UTC. */
export function instantOf(localMs: number, offsetAt: (atMs: number) => number): number {
  return localMs - offsetAt(localMs - offsetAt(localMs));
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

/** Heights of the parts of a bar, from 0 to 1. Square-root scale: 1 stays visible next to 100. */
export function barOf({ ended, failed, stopped }: Omit<Cell, "bucket" | "failedId">, most: number) {
  const height = Math.max(0.25, Math.sqrt(ended / Math.max(most, 1)));
  const failedPart = failed === 0 ? 0 : Math.max(0.15, (height * failed) / ended);
  const stoppedPart = (height * stopped) / ended;
  return { failed: failedPart, stopped: stoppedPart, succeeded: Math.max(0, height - failedPart - stoppedPart) };
}

/** The time range between two positions, rounded to whole buckets. */
export function brushed(axis: Axis, one: number, other: number): { from: string; to: string } {
  const start = Date.parse(axis.from);
  const whole = Date.parse(axis.to) - start;
  const bucketAt = (share: number) => (Math.min(Math.max(share, 0), 1) * whole) / axis.bucketMs;
  const first = Math.floor(bucketAt(Math.min(one, other)));
  const last = Math.max(first + 1, Math.ceil(bucketAt(Math.max(one, other))));
  const at = (bucket: number) => new Date(Math.min(start + bucket * axis.bucketMs, start + whole)).toISOString();
  return { from: at(first), to: at(last) };
}
