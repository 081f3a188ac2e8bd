/**
 * The time of an event in microseconds since 1970. Producers write it in more ways than RFC 3339 has: without a zone (then it
 * is UTC), with nanoseconds, without seconds, with the zone's name in brackets.
 */

const TIME =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?\s?(?:[Zz]|([+-])(\d\d):?(\d\d)?)?(?:\[[^\]]*\])?$/;
const FRACTION_DIGITS = 6;
const FIRST_YEAR = 1970;

/** Undefined for what is no time, or one before 1970 or too late for microseconds to be counted exactly. */
export function timeOf(text: string): number | undefined {
  const parts = TIME.exec(text);
  if (!parts) return undefined;
  const [, year, month, day, hour, minute, second = "0", fraction = "", sign, zoneHours = "0", zoneMinutes = "0"] =
    parts;
  // Date.UTC takes the years 0 to 99 for those of the 20th century, and makes the 1st of March of the 30th of February.
  if (Number(year) < FIRST_YEAR) return undefined;
  const dayStart = Date.UTC(Number(year), Number(month) - 1, Number(day));
  const date = new Date(dayStart);
  if (date.getUTCDate() !== Number(day) || date.getUTCMonth() !== Number(month) - 1) return undefined;
  // A 60th second is real, now and then.
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined;
  const zone = (Number(zoneHours) * 60 + Number(zoneMinutes)) * (sign === "-" ? -1 : 1);
  const seconds = (Number(hour) * 60 + Number(minute) - zone) * 60 + Number(second);
  const at =
    (dayStart + seconds * 1_000) * 1_000 + Number(fraction.slice(0, FRACTION_DIGITS).padEnd(FRACTION_DIGITS, "0"));
  return at >= 0 && Number.isSafeInteger(at) ? at : undefined;
}
