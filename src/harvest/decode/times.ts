/** The times that sources write. A time without a zone is UTC, and what is missing of a date is its first. */

import { isRecord } from "../../kernel/json/is-record.ts";
import { MINUTE_MS } from "../../kernel/time/units.ts";
import { textOf, wordOf } from "./values.ts";

export type TimeFormat = "iso" | "epochMs" | "epochSeconds" | "parts";

const ISO =
  /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?)?)? ?([Zz]|[+-]\d\d(?::?\d\d)?)?$/;
const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
/** The first and last instants of the years 1 to 9999. */
const INSTANT_MIN = -62_135_596_800_000;
const INSTANT_MAX = 253_402_300_799_999;

/** Undefined if the value is no time of the format. */
export function timeOf(value: unknown, format: TimeFormat): Date | undefined {
  switch (format) {
    case "iso":
      return isoTime(wordOf(value) ?? "");
    case "parts":
      return partsTime(value);
    case "epochMs":
      return epochTime(wordOf(value), 1);
    case "epochSeconds":
      return epochTime(wordOf(value), 1_000);
  }
}

function epochTime(word: string | undefined, unitMs: number): Date | undefined {
  if (word === undefined || !/^-?\d+(\.\d+)?$/.test(word)) return undefined;
  return within(Math.trunc(Number(word) * unitMs));
}

export function isoTime(text: string): Date | undefined {
  const found = ISO.exec(text);
  if (!found) return undefined;
  const [, year, month = "01", day = "01", hour = "00", minute = "00", second = "00", fraction = "0", zone = "Z"] =
    found;
  const start = dateOf(Number(year), Number(month), Number(day));
  // A leap second is the first of the next minute.
  if (start === undefined || Number(hour) > 24 || Number(minute) > 59 || Number(second) > 60) return undefined;
  const time = (Number(hour) * 60 + Number(minute)) * MINUTE_MS + Number(second) * 1_000;
  return within(start + time + Math.trunc(Number(`0.${fraction}`) * 1_000) - offsetMs(zone));
}

function offsetMs(zone: string): number {
  const found = /^([+-])(\d\d):?(\d\d)?$/.exec(zone);
  if (!found) return 0;
  const [, sign, hours, minutes = "0"] = found;
  return (Number(hours) * 60 + Number(minutes)) * MINUTE_MS * (sign === "-" ? -1 : 1);
}

/** An object with Year, Month and Day, each a value or a list of one. A month may be written as in `Aug`. */
function partsTime(value: unknown): Date | undefined {
  if (!isRecord(value)) return undefined;
  const year = partOf(value["Year"]);
  const month = partOf(value["Month"]) ?? "1";
  const day = partOf(value["Day"]) ?? "1";
  if (year === undefined || !/^\d{4}$/.test(year) || !/^\d\d?$/.test(day)) return undefined;
  const named = MONTHS.indexOf(month.slice(0, 3).toLowerCase()) + 1;
  const start = dateOf(Number(year), named || (/^\d\d?$/.test(month) ? Number(month) : 0), Number(day));
  return start === undefined ? undefined : within(start);
}

function partOf(value: unknown): string | undefined {
  return textOf(Array.isArray(value) ? value[0] : value)?.trim();
}

function dateOf(year: number, month: number, day: number): number | undefined {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.getTime() : undefined;
}

function within(instant: number): Date | undefined {
  return instant >= INSTANT_MIN && instant <= INSTANT_MAX ? new Date(instant) : undefined;
}
