/**
 * Windows of time, between the half-open instants `[from, to)` of plans and slices and the bounds that a source understands.
 *
 * A source filters in units of its granularity. The units start again at the beginning of each of its days, so a day on which
 * the clocks change has 23 or 25 units of an hour, and every day begins with a unit. A window is a row of whole units: its
 * inclusive bounds are its first and its last unit, so neighbours share no unit and leave none out.
 */

import { endOfOpTime, movedOpTime, opTimeAt } from "../../kernel/time/op-time.ts";
import { DAY_MS, HOUR_MS } from "../../kernel/time/units.ts";
import type { WindowSpec } from "../spec/snapshot.ts";
import { formatTime } from "../spec/time-format.ts";
import { ALIGN_MS } from "../spec/window-defaults.ts";

export interface Range {
  from: Date;
  to: Date;
}

/** As a request has them: the first unit, the last unit, and the first unit after it. */
export interface Bounds {
  from: string;
  until: string;
  to: string;
}

type Units = Pick<WindowSpec, "granularityMs" | "timezone">;
type Grain = "hour" | "day";

export function boundsOf(window: Units & Pick<WindowSpec, "format">, from: Date, to: Date): Bounds {
  const { granularityMs, timezone } = window;
  const write = (ms: number) => formatTime(ms, window.format, timezone);
  for (const bound of [from, to]) {
    if (unitStart(bound.getTime(), granularityMs, timezone) === bound.getTime()) continue;
    throw new RangeError(`${bound.toISOString()} is not the start of a unit of ${granularityMs} ms in ${timezone}`);
  }
  if (from >= to) throw new RangeError("a window ends after it starts");
  return {
    from: write(from.getTime()),
    until: write(unitStart(to.getTime() - 1, granularityMs, timezone)),
    to: write(to.getTime()),
  };
}

/** The last instant up to which a window can be closed now. */
export function closedUntil(window: Units & Pick<WindowSpec, "align" | "safetyLagMs">, now: Date): Date {
  const { granularityMs, timezone } = window;
  const aligned = unitStart(now.getTime() - window.safetyLagMs, ALIGN_MS[window.align], timezone);
  return new Date(unitStart(aligned, granularityMs, timezone));
}

/** When the first unit of a window that starts at `from` can be closed. */
export function closesAt(window: Units & Pick<WindowSpec, "align" | "safetyLagMs">, from: Date): Date {
  const unitEnd = nextUnit(from.getTime(), window.granularityMs, window.timezone);
  return new Date(unitCeil(unitEnd, ALIGN_MS[window.align], window.timezone) + window.safetyLagMs);
}

/** The instant that is written as a date-time with an offset, or as a date of the source's time zone; undefined if it is neither. */
export function instantOf(text: string, timeZone: string): Date | undefined {
  const [, date, time] =
    /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/i.exec(text) ?? [];
  if (date === undefined || Number.isNaN(Date.parse(date))) return undefined;
  const label = date.replaceAll("-", "");
  const before = movedOpTime(label, "day", -1);
  // Date.parse turns February 30 into March 1.
  if (before === undefined || movedOpTime(before, "day", 1) !== label) return undefined;
  if (time === undefined) return new Date(startOfDay(label, timeZone));
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : new Date(ms);
}

/** The smallest row of whole units that contains the range. */
export function inWholeUnits({ granularityMs, timezone }: Units, { from, to }: Range): Range {
  return {
    from: new Date(unitStart(from.getTime(), granularityMs, timezone)),
    to: new Date(unitCeil(to.getTime(), granularityMs, timezone)),
  };
}

/** The range of this width that ends at `to`, or a little more. Whole days are counted on the calendar of the source. */
export function rangeBefore({ granularityMs, timezone }: Units, to: Date, widthMs: number): Range {
  const days = Math.floor(widthMs / DAY_MS);
  const fromMs = sameTime(to.getTime(), -days, timezone) - (widthMs - days * DAY_MS);
  return { from: new Date(unitStart(fromMs, granularityMs, timezone)), to };
}

/**
 * Cuts a range of whole units into slices of at most `maxWindow`. Whole days are days of the calendar; shorter slices start
 * again at the beginning of each day, so two plans cut the same day alike. No slice crosses the end of a period of `grain`.
 */
export function* slicesOf(
  window: Units & Pick<WindowSpec, "maxWindowMs">,
  { from, to }: Range,
  grain?: Grain,
): Generator<Range> {
  const { granularityMs, maxWindowMs, timezone } = window;
  const toMs = to.getTime();
  let startMs = from.getTime();
  while (startMs < toMs) {
    const days = Math.floor(maxWindowMs / DAY_MS);
    const widest = days > 0 ? daysLater(startMs, days, timezone) : nextUnit(startMs, maxWindowMs, timezone);
    const periodEnd = grain ? periodAt(timezone, grain, new Date(startMs)).to.getTime() : widest;
    const cut = unitStart(Math.min(toMs, widest, periodEnd), granularityMs, timezone);
    const endMs = cut > startMs ? cut : nextUnit(startMs, granularityMs, timezone);
    yield { from: new Date(startMs), to: new Date(endMs) };
    startMs = endMs;
  }
}

/**
 * The same slices from the newest on: cut from the end of the range, at the same places of a day. Where a slice has several days,
 * they are counted from the end.
 */
export function* slicesBackwards(
  window: Units & Pick<WindowSpec, "maxWindowMs">,
  { from, to }: Range,
  grain?: Grain,
): Generator<Range> {
  const { granularityMs, maxWindowMs, timezone } = window;
  const fromMs = from.getTime();
  let endMs = to.getTime();
  while (endMs > fromMs) {
    const lastMs = endMs - 1;
    const days = Math.floor(maxWindowMs / DAY_MS);
    const widest = days > 0 ? daysLater(lastMs, 1 - days, timezone) : unitStart(lastMs, maxWindowMs, timezone);
    const periodStart = grain ? periodAt(timezone, grain, new Date(lastMs)).from.getTime() : widest;
    const cut = unitCeil(Math.max(fromMs, widest, periodStart), granularityMs, timezone);
    const startMs = cut < endMs ? cut : unitStart(lastMs, granularityMs, timezone);
    yield { from: new Date(startMs), to: new Date(endMs) };
    endMs = startMs;
  }
}

/** Where to cut the range in two, so that both parts have at least `minWindow`; undefined if it is too narrow for that. */
export function middleOf(window: Units & Pick<WindowSpec, "minWindowMs">, { from, to }: Range): Date | undefined {
  const { granularityMs, minWindowMs, timezone } = window;
  const [fromMs, toMs] = [from.getTime(), to.getTime()];
  const before = unitStart((fromMs + toMs) / 2, granularityMs, timezone);
  const middle = [before, nextUnit(before, granularityMs, timezone)].find(
    (ms) =>
      ms > fromMs &&
      ms < toMs &&
      isAtLeast(minWindowMs, fromMs, ms, timezone) &&
      isAtLeast(minWindowMs, ms, toMs, timezone),
  );
  return middle === undefined ? undefined : new Date(middle);
}

/** The hour or day of the source that contains the instant, with its opTime. A repeated hour is one period of two hours. */
export function periodAt(timeZone: string, grain: Grain, at: Date): Range & { opTime: string } {
  const { label, startMs, endMs } = grain === "day" ? dayAt(at.getTime(), timeZone) : hourAt(at.getTime(), timeZone);
  return { opTime: label, from: new Date(startMs), to: new Date(endMs) };
}

/** The opTimes of the periods at the edges of the range that it has only a part of. */
export function partPeriods(timeZone: string, grain: Grain, { from, to }: Range): string[] {
  const edges = [periodAt(timeZone, grain, from), periodAt(timeZone, grain, new Date(to.getTime() - 1))];
  return [...new Set(edges.filter((edge) => edge.from < from || edge.to > to).map(({ opTime }) => opTime))];
}

/** The start of the unit that contains the instant. Units of several days are counted from 1970. */
function unitStart(ms: number, unitMs: number, timeZone: string): number {
  const day = dayAt(ms, timeZone);
  if (unitMs < DAY_MS) return day.startMs + Math.floor((ms - day.startMs) / unitMs) * unitMs;
  const days = Math.floor(unitMs / DAY_MS);
  return days === 1 ? day.startMs : startOfDay(moved(day.label, "day", -daysIntoUnit(day.label, days)), timeZone);
}

/** The start of the first unit after the instant. */
function nextUnit(ms: number, unitMs: number, timeZone: string): number {
  const startMs = unitStart(ms, unitMs, timeZone);
  if (unitMs < DAY_MS) return Math.min(startMs + unitMs, dayAt(ms, timeZone).endMs);
  return daysLater(startMs, Math.floor(unitMs / DAY_MS), timeZone);
}

function unitCeil(ms: number, unitMs: number, timeZone: string): number {
  return unitStart(ms, unitMs, timeZone) === ms ? ms : nextUnit(ms, unitMs, timeZone);
}

function daysIntoUnit(label: string, days: number): number {
  const day = Date.parse(dashed(label)) / DAY_MS;
  return day - Math.floor(day / days) * days;
}

/** The same time since the start of the day, so many days later. */
function sameTime(ms: number, days: number, timeZone: string): number {
  return daysLater(ms, days, timeZone) + (ms - dayAt(ms, timeZone).startMs);
}

/** The start of the day that is so many days later. */
function daysLater(ms: number, days: number, timeZone: string): number {
  return startOfDay(moved(dayAt(ms, timeZone).label, "day", days), timeZone);
}

/** A day of 23 hours is as wide as any other. */
function isAtLeast(widthMs: number, fromMs: number, toMs: number, timeZone: string): boolean {
  if (toMs - fromMs >= widthMs) return true;
  const days = widthMs / DAY_MS;
  return Number.isInteger(days) && toMs >= sameTime(fromMs, days, timeZone);
}

interface Period {
  label: string;
  startMs: number;
  endMs: number;
}

/** The last day that was asked for in each time zone. Slices are cut in the order of time, and the next day costs half as much. */
const lastDays = new Map<string, Period>();

function dayAt(ms: number, timeZone: string): Period {
  const last = lastDays.get(timeZone);
  if (last && ms >= last.startMs && ms < last.endMs) return last;
  const day = (last && dayAfter(last, ms, timeZone)) ?? periodOf(ms, "day", timeZone, startOfDay);
  lastDays.set(timeZone, day);
  return day;
}

/** The day after `last`, if it starts at this instant. */
function dayAfter(last: Period, ms: number, timeZone: string): Period | undefined {
  if (ms !== last.endMs) return undefined;
  const label = moved(last.label, "day", 1);
  const endMs = startOfDay(moved(label, "day", 1), timeZone);
  return endMs > ms ? { label, startMs: ms, endMs } : undefined; // A zone that crosses the date line skips a day.
}

function hourAt(ms: number, timeZone: string): Period {
  const day = dayAt(ms, timeZone);
  if (day.endMs - day.startMs === DAY_MS) {
    const hour = Math.floor((ms - day.startMs) / HOUR_MS);
    const startMs = day.startMs + hour * HOUR_MS;
    return { label: day.label + String(hour).padStart(2, "0"), startMs, endMs: startMs + HOUR_MS };
  }
  return periodOf(ms, "hour", timeZone, (label) => endOfOpTime(moved(label, "hour", -1), "hour", timeZone));
}

function periodOf(
  ms: number,
  grain: Grain,
  timeZone: string,
  startOf: (label: string, timeZone: string) => number,
): Period {
  let label = labelAt(ms, grain, timeZone);
  // Where clocks go back just after midnight, the first minutes of the new day come before the end of the old one.
  if (ms < startOf(label, timeZone)) label = moved(label, grain, -1);
  return { label, startMs: startOf(label, timeZone), endMs: startOf(moved(label, grain, 1), timeZone) };
}

function labelAt(ms: number, grain: Grain, timeZone: string): string {
  if (timeZone !== "UTC") return opTimeAt(ms, grain, timeZone, 0);
  const text = new Date(ms).toISOString().replace(/\D/g, "");
  return text.slice(0, grain === "day" ? 8 : 10);
}

function startOfDay(label: string, timeZone: string): number {
  if (timeZone === "UTC") return Date.parse(dashed(label));
  return endOfOpTime(moved(label, "day", -1), "day", timeZone);
}

function moved(label: string, grain: Grain, offset: number): string {
  const opTime = movedOpTime(label, grain, offset);
  if (opTime === undefined)
    throw new RangeError(`${offset} ${grain}s from ${label} is outside the years of four digits`);
  return opTime;
}

/** `20260820` as `2026-08-20`. */
function dashed(label: string): string {
  return `${label.slice(0, 4)}-${label.slice(4, 6)}-${label.slice(6, 8)}`;
}
