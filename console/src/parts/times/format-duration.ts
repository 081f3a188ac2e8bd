/** Formats durations and ages in a language. Pure functions. */
import type { common } from "../../words/common.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

type Text = typeof common.en;

/** `850 ms`, `2.3 s`, `12 s`, `4 m 5 s`, `3 h 12 m`, `5 d 2 h`. */
export function formatDuration(ms: number, text: Text): string {
  if (ms < 0) return formatDuration(0, text);
  if (ms < SECOND) return text.inMs(Math.round(ms));
  if (ms < 10 * SECOND) return text.inSeconds((ms / SECOND).toFixed(1));
  if (ms < MINUTE) return text.inSeconds(Math.round(ms / SECOND));
  if (ms < HOUR) return twoUnits(ms, [MINUTE, text.inMinutes], [SECOND, text.inSeconds]);
  if (ms < DAY) return twoUnits(ms, [HOUR, text.inHours], [MINUTE, text.inMinutes]);
  return twoUnits(ms, [DAY, text.inDays], [HOUR, text.inHours]);
}

/** Below this a time is the present: the clocks of two machines do not agree better. */
const PRESENT_MS = 2 * SECOND;

/** Of a time that is `aheadMs` from now; only what is due can be ahead. */
export function relativeText(aheadMs: number, isDue: boolean, text: Text): string {
  if (!isDue) return aheadMs > -PRESENT_MS ? text.justNow : text.ago(formatDuration(-aheadMs, text));
  if (aheadMs > 0) return text.inTime(formatDuration(aheadMs, text));
  return aheadMs > -PRESENT_MS ? text.dueNow : text.dueSince(formatDuration(-aheadMs, text));
}

type Unit = readonly [ms: number, textOf: (n: number) => string];

function twoUnits(ms: number, [large, largeText]: Unit, [small, smallText]: Unit): string {
  const rest = Math.floor((ms % large) / small);
  const first = largeText(Math.floor(ms / large));
  return rest === 0 ? first : `${first} ${smallText(rest)}`;
}
