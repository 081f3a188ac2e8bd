/** A range of time in buckets of a round length, so that a chart of any range has as many points as it can show. */
import { invalid } from "../errors.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../time/units.ts";

export interface Range {
  /** The start of the first bucket. */
  from: Date;
  to: Date;
  bucketMs: number;
  buckets: number;
}

export const BUCKETS_MAX = 64;
export const HOURS_MAX = 31 * 24;
const STEPS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR_MS),
];

/** Without `to`, until now; without `from`, the hours before that. */
export function rangeOf(
  asked: { from?: string | undefined; to?: string | undefined; hours: number },
  nowMs: number,
): Range {
  const toMs = asked.to === undefined ? nowMs : Date.parse(asked.to);
  const fromMs = asked.from === undefined ? toMs - asked.hours * HOUR_MS : Date.parse(asked.from);
  if (fromMs >= toMs) throw invalid("The parameter `from` must be earlier than `to`");
  if (toMs - fromMs > HOURS_MAX * HOUR_MS)
    throw invalid(`The range from \`from\` to \`to\` is at most ${HOURS_MAX / 24} days`);
  const bucketMs = STEPS_MS.find((step) => bucketsIn(fromMs, toMs, step) <= BUCKETS_MAX) ?? DAY_MS;
  return {
    from: new Date(floor(fromMs, bucketMs)),
    to: new Date(toMs),
    bucketMs,
    buckets: bucketsIn(fromMs, toMs, bucketMs),
  };
}

function bucketsIn(fromMs: number, toMs: number, step: number): number {
  return Math.ceil((toMs - floor(fromMs, step)) / step);
}

function floor(ms: number, step: number): number {
  return Math.floor(ms / step) * step;
}
