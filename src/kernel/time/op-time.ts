/**
 * opTime: the business date of a table, a run or a KPI value. An opTime of one of the three grains below has neighbours, so
 * ranges and "the previous day" are defined; any other opTime is only a name.
 *
 * The opTimes of a grain are labels of wall time without a time zone: every day has 24 hour labels, also a day on which the
 * clocks change. Partitions are named like that, so ranges use the same labels.
 */

import { invalid } from "../errors.ts";
import { DAY_MS, HOUR_MS, SECOND_MS } from "./units.ts";

/** For schemas; other code uses `isOpTime`. */
export const OP_TIME_PATTERN = "^[A-Za-z0-9_.:-]{1,255}$";

export const GRAINS = ["hour", "day", "month"] as const;
export type Grain = (typeof GRAINS)[number];

/** The limit of one range: more than a year of hours, or 27 years of days. */
export const OP_TIMES_MAX = 10_000;

const FORMS = { hour: "yyyyMMddHH", day: "yyyyMMdd", month: "yyyyMM" } as const satisfies Record<Grain, string>;

const QUARTER_HOUR_MS = 900_000;

const opTimePattern = new RegExp(OP_TIME_PATTERN);

export function isOpTime(text: string): boolean {
  return opTimePattern.test(text);
}

/** The grain that `opTime` has the form of, if it is a valid date: `20240230` has none. */
export function grainOf(opTime: string): Grain | undefined {
  return GRAINS.find((grain) => isOf(grain, opTime));
}

/** `yyyyMMdd` for a day. */
export function formOf(grain: Grain): string {
  return FORMS[grain];
}

/**
 * The opTime of the grain that was probably meant: `20251101` by `2025-11-01`, and the last day of its month by `20251131`.
 * Undefined for an opTime of the grain, and for what resembles none.
 */
export function nearestOpTime(text: string, grain: Grain): string | undefined {
  if (isOf(grain, text)) return undefined;
  const digits = text.replaceAll(/[^0-9]/g, "").slice(0, FORMS[grain].length);
  if (digits.length < FORMS[grain].length || !/^\d{4}/.test(text)) return undefined;
  // A month of 31 days that is too long by up to three, or the hour 24.
  const [month, day, hour] = [digits.slice(0, 6), digits.slice(6, 8), digits.slice(8)];
  const days = day === "" ? [""] : [day, "30", "29", "28"].filter((one) => one <= day);
  const hours = hour === "" ? [""] : [hour, "23"].filter((one) => one <= hour);
  return days.flatMap((one) => hours.map((other) => `${month}${one}${other}`)).find((one) => isOf(grain, one));
}

/** " (did you mean `20251130`?)", to append to a sentence about an opTime that is not of the grain, or nothing. */
export function meantOpTime(opTime: string, grain: Grain): string {
  const meant = nearestOpTime(opTime, grain);
  return meant === undefined ? "" : ` (did you mean \`${meant}\`?)`;
}

/** All opTimes of the grain from `from` to `to`, inclusive, in order. Throws VALIDATION_FAILED for an invalid range. */
export function opTimesBetween(from: string, to: string, grain: Grain): string[] {
  for (const [name, opTime] of Object.entries({ from, to })) {
    if (isOf(grain, opTime)) continue;
    const rule = `The range's \`${name}\` must be a valid ${grain} like ${FORMS[grain]}`;
    throw invalid(`${rule}, not \`${opTime}\`${meantOpTime(opTime, grain)}`);
  }
  const first = positionOf(from, grain);
  const count = positionOf(to, grain) - first + 1;
  if (count < 1) throw invalid(`The range's \`to\` (${to}) is before its \`from\` (${from})`);
  if (count > OP_TIMES_MAX) {
    throw invalid(
      `The range ${from} to ${to} has ${count} ${grain}s, more than the ${OP_TIMES_MAX} of one range: split it`,
    );
  }
  return Array.from({ length: count }, (_, index) => labelAt(first + index, grain));
}

/**
 * The hour, day or month of the time zone that contains the instant, moved by `offset`: -1 is the previous one.
 *
 * Days and months move on the calendar. Hours move along the labels that the zone's clock actually shows, so that an hourly
 * schedule with -1 covers every hour: with label arithmetic, 03:05 after clocks jump from 02:00 to 03:00 would give hour 02,
 * which does not exist, and no schedule would give hour 01. Costs 20 us for each hour of the offset.
 */
export function opTimeAt(instantMs: number, grain: Grain, timeZone: string, offset: number): string {
  if (grain === "hour") return movedHour(instantMs, timeZone, offset);
  const label = opTimeAround(labelAt(hourShown(instantMs, timeZone), "hour"), grain);
  const moved = movedOpTime(label, grain, offset);
  if (moved === undefined)
    throw new RangeError(`${offset} ${grain}s from ${label} is outside the years of four digits.`);
  return moved;
}

/** The opTime `offset` labels later, or earlier if negative; undefined outside the years of four digits. */
export function movedOpTime(opTime: string, grain: Grain, offset: number): string | undefined {
  const moved = labelAt(positionOf(opTime, grain) + offset, grain);
  return isOf(grain, moved) ? moved : undefined;
}

/** The opTime of the same or a coarser grain whose period contains `opTime`. */
export function opTimeAround(opTime: string, grain: Grain): string {
  return opTime.slice(0, FORMS[grain].length);
}

/** The opTimes of the same or a finer grain in the period of `opTime`, in order. */
export function opTimesWithin(opTime: string, grain: Grain): string[] {
  const labels: string[] = [];
  for (let position = positionOf(opTime, grain); ; position += 1) {
    const label = labelAt(position, grain);
    if (!label.startsWith(opTime)) return labels;
    labels.push(label);
  }
}

/**
 * The instant from which the zone's clock no longer shows a time of the period. An hour that is repeated when clocks go back
 * ends after the second time; one that is skipped when they go forward ends at the jump, like the hour before it.
 */
export function endOfOpTime(opTime: string, grain: Grain, timeZone: string): number {
  const nextStartMs = startOf(positionOf(opTime, grain) + 1, grain).getTime();
  // No zone is a day away from UTC, so these are the offsets before and after a clock change near the end.
  const offsetBefore = utcOffset(nextStartMs - DAY_MS, timeZone);
  const offsetAfter = utcOffset(nextStartMs + DAY_MS, timeZone);

  const endAfter = nextStartMs - offsetAfter;
  if (utcOffset(endAfter - 1, timeZone) === offsetAfter) return endAfter;
  const endBefore = nextStartMs - offsetBefore;
  if (utcOffset(endBefore - 1, timeZone) === offsetBefore) return endBefore;

  // The clocks jump over the end of the period: search for the instant of the jump.
  let [beforeJump, afterJump] = [endAfter - 1, endBefore - 1];
  while (afterJump - beforeJump > 1) {
    const middle = Math.floor((beforeJump + afterJump) / 2);
    if (utcOffset(middle, timeZone) === offsetBefore) beforeJump = middle;
    else afterJump = middle;
  }
  return afterJump;
}

function movedHour(instantMs: number, timeZone: string, offset: number): string {
  // A clock change can leave a quarter of an hour: on the Chatham Islands the clocks go from 02:45 to 03:45.
  const stepMs = Math.sign(offset) * QUARTER_HOUR_MS;
  let atMs = instantMs;
  let hour = hourShown(atMs, timeZone);
  for (let hoursLeft = Math.abs(offset); hoursLeft > 0; ) {
    atMs += stepMs;
    const next = hourShown(atMs, timeZone);
    if (next !== hour) hoursLeft -= 1;
    hour = next;
  }
  return labelAt(hour, "hour");
}

/** The position of the hour that the zone's clock shows. */
function hourShown(instantMs: number, timeZone: string): number {
  return Math.floor(wallClock(instantMs, timeZone) / HOUR_MS);
}

/** The zone's UTC offset at the instant, in ms. */
function utcOffset(instantMs: number, timeZone: string): number {
  return wallClock(instantMs, timeZone) - Math.floor(instantMs / SECOND_MS) * SECOND_MS;
}

/** Cached for each of about 600 time zones: creating a formatter takes a hundred times as long as using it. */
const formatters = new Map<string, Intl.DateTimeFormat>();

/** The zone's wall time, to the second, as the instant at which UTC has the same wall time. */
function wallClock(instantMs: number, timeZone: string): number {
  let formatter = formatters.get(timeZone);
  if (!formatter) {
    formatter = new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
    formatters.set(timeZone, formatter);
  }
  const parts = formatter.formatToParts(instantMs);
  const shown = (type: Intl.DateTimeFormatPartTypes) => Number(parts.find((part) => part.type === type)?.value);
  const wall = new Date(0);
  wall.setUTCFullYear(shown("year"), shown("month") - 1, shown("day"));
  return wall.setUTCHours(shown("hour"), shown("minute"), shown("second"));
}

function isOf(grain: Grain, opTime: string): boolean {
  if (opTime.length !== FORMS[grain].length) return false;
  const position = positionOf(opTime, grain);
  // Date.parse turns February 30 into March 1, so the label differs.
  return !Number.isNaN(position) && labelAt(position, grain) === opTime;
}

/** The number of the hour, day or month, so that neighbours differ by one; NaN if it is not a date. */
function positionOf(opTime: string, grain: Grain): number {
  const [, year, month, day, hour] =
    /^(\d{4})(\d\d)(\d\d)(\d\d)$/.exec(opTime + "0000010100".slice(opTime.length)) ?? [];
  const startMs = Date.parse(`${year}-${month}-${day}T${hour}:00:00Z`);
  switch (grain) {
    case "hour":
      return startMs / HOUR_MS;
    case "day":
      return startMs / DAY_MS;
    case "month":
      return Number.isNaN(startMs) ? Number.NaN : Number(year) * 12 + Number(month) - 1;
  }
}

function labelAt(position: number, grain: Grain): string {
  const text = startOf(position, grain).toISOString();
  // The sign before a year without four digits is kept, so that the label is not a valid opTime by accident.
  return text.replace(/(?!^)\D/g, "").slice(0, FORMS[grain].length);
}

function startOf(position: number, grain: Grain): Date {
  switch (grain) {
    case "hour":
      return new Date(position * HOUR_MS);
    case "day":
      return new Date(position * DAY_MS);
    case "month": {
      const start = new Date(0);
      // Not Date.UTC, which maps the years 0 to 99 to the 20th century.
      start.setUTCFullYear(Math.floor(position / 12), position % 12);
      return start;
    }
  }
}
