/** Writes intervals as ISO 8601 durations, as Postgres does: `P1Y2M3DT4H5M6.5S`, each part with its own sign, `PT0S` for none. */

const SECOND = 1_000_000n;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;

export interface Interval {
  months?: number;
  days?: number;
  micros?: bigint;
}

/** Months become years, and microseconds hours and minutes; days stay days, since they may have 23 hours. */
export function isoDuration({ months = 0, days = 0, micros = 0n }: Interval): string {
  const date = part(Math.trunc(months / 12), "Y") + part(months % 12, "M") + part(days, "D");
  const time = part(micros / HOUR, "H") + part((micros % HOUR) / MINUTE, "M") + seconds(micros % MINUTE);
  if (date + time === "") return "PT0S";
  return `P${date}${time === "" ? "" : `T${time}`}`;
}

function part(count: number | bigint, unit: string): string {
  return Number(count) === 0 ? "" : `${count}${unit}`;
}

/** With its fraction, whose zeros at the end are dropped. */
function seconds(micros: bigint): string {
  if (micros === 0n) return "";
  const size = micros < 0n ? -micros : micros;
  const fraction = String(size % SECOND)
    .padStart(6, "0")
    .replace(/0+$/, "");
  return `${micros < 0n ? "-" : ""}${size / SECOND}${fraction === "" ? "" : `.${fraction}`}S`;
}
