/** Where the time of a source goes, as a sentence and as shares. */
import type { Pace } from "../api.ts";

export interface Shares {
  wait: number;
  answer: number;
  own: number;
}

/** Of the time of all runs. The parts overlap a little, because a page is asked for while the one before it is stored. */
export function sharesOf({ busyMs, waitMs, answerMs }: Pick<Pace, "busyMs" | "waitMs" | "answerMs">): Shares {
  const whole = Math.max(busyMs, waitMs + answerMs);
  if (whole <= 0) return { wait: 0, answer: 0, own: 0 };
  const [wait, answer] = [waitMs / whole, answerMs / whole];
  return { wait, answer, own: Math.max(0, 1 - wait - answer) };
}

export type Cause = "none" | "throttled" | "gate" | "source" | "own";

/** What slows a source down most. Refusals come first: they say that the limit is the source's. */
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
