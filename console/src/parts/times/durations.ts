/** Durations and ages as text: pure functions, apart from the page. */
import type { common } from "../../words/common.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `850 ms`, `2.3 s`, `12 s`, `4 m 5 s`, `3 h 12 m`, `5 d 2 h`: the same in every language. */
export function durationText(ms: number): string {
  if (ms < 0) return durationText(0);
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.round(ms / SECOND)} s`;
  if (ms < HOUR) return twoUnits(ms, MINUTE, "m", SECOND, "s");
  if (ms < DAY) return twoUnits(ms, HOUR, "h", MINUTE, "m");
  return twoUnits(ms, DAY, "d", HOUR, "h");
}

/** Below this a time is the present: the clocks of two machines do not agree better. */
const PRESENT_MS = 2 * SECOND;

/** Of a time that is `aheadMs` from now; only what is due can be ahead. */
export function relativeText(aheadMs: number, isDue: boolean, text: typeof common.en): string {
  if (!isDue) return aheadMs > -PRESENT_MS ? text.justNow : text.ago(durationText(-aheadMs));
  if (aheadMs > 0) return text.inTime(durationText(aheadMs));
  return aheadMs > -PRESENT_MS ? text.dueNow : text.dueSince(durationText(-aheadMs));
}

/** `50%`, of a share from 0 to 1. */
export function percentText(share: number): string {
  return `${Math.round(share * 100)}%`;
}

function twoUnits(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % large) / small);
  const first = `${Math.floor(ms / large)} ${largeName}`;
  return rest === 0 ? first : `${first} ${rest} ${smallName}`;
}
