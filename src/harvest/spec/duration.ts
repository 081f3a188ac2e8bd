/** ISO 8601 durations of fixed length, from days to seconds, as milliseconds and back. */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../kernel/time/units.ts";

const PARTS = /^P(?!$)(?:(\d+)D)?(?:T(?!$)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/;
/** A hundred years: longer than any window, and far from the end of exact numbers. */
const DURATION_MS_MAX = 36_525 * DAY_MS;

/** Undefined if the text is no duration, or is longer than a hundred years. */
export function durationMs(text: string): number | undefined {
  const match = PARTS.exec(text);
  if (!match) return undefined;
  const [days, hours, minutes, seconds] = match.slice(1).map((digits) => Number(digits ?? 0));
  const ms = days! * DAY_MS + hours! * HOUR_MS + minutes! * MINUTE_MS + seconds! * SECOND_MS;
  return ms <= DURATION_MS_MAX ? ms : undefined;
}

/** What a duration is, to end a sentence. */
export const DURATION_RULE = "an ISO 8601 duration of days, hours, minutes or seconds, such as P3D or PT6H";

const WORDS = /^p?t?(\d{1,9})\s*(w|weeks?|d|days?|h|hours?|m|min|minutes?|s|sec|seconds?)$/i;

/** The duration that a text such as `3d` or `2 weeks` may mean. */
export function similarDuration(text: string): string | undefined {
  const [, count, unit = ""] = WORDS.exec(text.trim()) ?? [];
  if (count === undefined) return undefined;
  const ms = { w: 7 * DAY_MS, d: DAY_MS, h: HOUR_MS, m: MINUTE_MS, s: SECOND_MS }[unit.charAt(0).toLowerCase()] ?? 0;
  const similar = durationText(Number(count) * ms);
  return durationMs(similar) ? similar : undefined;
}

/** The one way to write a whole number of seconds: `PT600S` and `PT10M` are both `PT10M`. */
export function durationText(ms: number): string {
  const units = [
    [Math.floor(ms / HOUR_MS) % 24, "H"],
    [Math.floor(ms / MINUTE_MS) % 60, "M"],
    [Math.floor(ms / SECOND_MS) % 60, "S"],
  ] as const;
  const days = Math.floor(ms / DAY_MS);
  const time = units.flatMap(([count, unit]) => (count > 0 ? [`${count}${unit}`] : [])).join("");
  if (days === 0 && time === "") return "PT0S";
  return `P${days > 0 ? `${days}D` : ""}${time === "" ? "" : `T${time}`}`;
}
