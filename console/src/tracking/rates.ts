/** Shards per minute of each stage, from the totals that the page already polls. The server keeps no history. */
import type { Stage } from "./api.ts";

export interface Sample {
  atMs: number;
  done: Readonly<Partial<Record<Stage, number>>>;
}

const WINDOW_MS = 60_000;
/** Shorter samples give no useful rate. */
const MEASURED_MS_MIN = 5_000;

/** With the new sample, and without those that the window no longer needs. */
export function withSample(samples: readonly Sample[], sample: Sample): readonly Sample[] {
  // The newest of those before the window stays: it is where the window begins.
  const first = samples.findLastIndex(({ atMs }) => atMs <= sample.atMs - WINDOW_MS);
  return [...samples.slice(Math.max(first, 0)), sample];
}

/** Shards per minute, or undefined while there are too few samples. Hints report every change, so nothing is missed between samples. */
export function ratePerMinute(samples: readonly Sample[], stage: Stage, nowMs: number): number | undefined {
  const first = samples.findLast(({ atMs }) => atMs <= nowMs - WINDOW_MS) ?? samples[0];
  const last = samples.at(-1);
  if (!first || !last || nowMs - first.atMs < MEASURED_MS_MIN) return undefined;
  const finished = (last.done[stage] ?? 0) - (first.done[stage] ?? 0);
  return (Math.max(0, finished) * WINDOW_MS) / Math.min(nowMs - first.atMs, WINDOW_MS);
}
