/** How fast stages finish shards, from the exact totals that the page reads anyway: the server keeps no history for it. */
import type { Stage } from "./api.ts";

export interface Sample {
  atMs: number;
  done: Readonly<Partial<Record<Stage, number>>>;
}

const WINDOW_MS = 60_000;
/** A shorter time says nothing. */
const MEASURED_MS_MIN = 5_000;

/** With the new sample, and without those that the window no longer needs. */
export function withSample(samples: readonly Sample[], sample: Sample): readonly Sample[] {
  // The newest of those before the window stays: it is where the window begins.
  const first = samples.findLastIndex(({ atMs }) => atMs <= sample.atMs - WINDOW_MS);
  return [...samples.slice(Math.max(first, 0)), sample];
}

/** Shards per minute, or undefined while too little was seen. Between two samples nothing changed unseen: hints tell of changes. */
export function ratePerMinute(samples: readonly Sample[], stage: Stage, nowMs: number): number | undefined {
  const first = samples.findLast(({ atMs }) => atMs <= nowMs - WINDOW_MS) ?? samples[0];
  const last = samples.at(-1);
  if (!first || !last || nowMs - first.atMs < MEASURED_MS_MIN) return undefined;
  const finished = (last.done[stage] ?? 0) - (first.done[stage] ?? 0);
  return (Math.max(0, finished) * WINDOW_MS) / Math.min(nowMs - first.atMs, WINDOW_MS);
}
