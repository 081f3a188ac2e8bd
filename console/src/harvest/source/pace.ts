/** Run time of a source by cause, as shares and as a verdict. */
import type { Pace } from "../api.ts";

export interface Shares {
  wait: number;
  answer: number;
  own: number;
}

/** Shares of total run time. They overlap slightly: a page is requested while the previous one is stored. */
export function sharesOf({ busyMs, waitMs, answerMs }: Pick<Pace, "busyMs" | "waitMs" | "answerMs">): Shares {
  const whole = Math.max(busyMs, waitMs + answerMs);
  if (whole <= 0) return { wait: 0, answer: 0, own: 0 };
  const [wait, answer] = [waitMs / whole, answerMs / whole];
  return { wait, answer, own: Math.max(0, 1 - wait - answer) };
}

export type Cause = "none" | "throttled" | "gate" | "source" | "own";

/** The main cause of slowness. 429 responses come first: they show that the source is the limit. */
export function causeOf(pace: Pick<Pace, "runs" | "requests" | "throttled" | "busyMs" | "waitMs" | "answerMs">): Cause {
  if (pace.runs === 0) return "none";
  if (pace.throttled > 0 && pace.throttled >= pace.requests / 20) return "throttled";
  const { wait, answer, own } = sharesOf(pace);
  if (wait >= answer && wait >= own) return "gate";
  return answer >= own ? "source" : "own";
}

/** The average of each bucket; null where nothing was asked. */
export function perRequest(
  { since, bucketSec, buckets }: Pick<Pace, "since" | "bucketSec" | "buckets">,
  untilMs: number,
): { x: number[]; wait: (number | null)[]; answer: (number | null)[] } {
  const byTime = new Map(buckets.map((bucket) => [Date.parse(bucket.at), bucket]));
  const x: number[] = [];
  for (let at = Date.parse(since); at <= untilMs; at += bucketSec * 1_000) x.push(at);
  const each = (name: "waitMs" | "answerMs") =>
    x.map((at) => {
      const bucket = byTime.get(at);
      return bucket && bucket.requests > 0 ? bucket[name] / bucket.requests : null;
    });
  return { x, wait: each("waitMs"), answer: each("answerMs") };
}
