/** Writes dates and times in the one form of all engines: ISO 8601, without zeros at the end of a fraction. */

/** Of a fraction of a second. */
export function withoutZeros(text: string): string {
  return text.replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");
}

/** A wall time `2026-01-31 01:02:03`, with `.5` or nothing, as the moment in UTC that it is at this offset. */
export function utcText(wall: string, fraction: string, offsetMs: number): string {
  const utc = new Date(wallMs(wall) - offsetMs).toISOString().slice(0, -".000Z".length);
  return `${withoutZeros(utc + fraction)}Z`;
}

export function wallMs(wall: string): number {
  return Date.parse(`${wall.replace(" ", "T")}Z`);
}

/** `+05:30`, `-03`, `+00:53:28`. */
export function offsetMsOf(text: string): number {
  const [, sign = "+", hours = 0, minutes = 0, seconds = 0] = /([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?/.exec(text) ?? [];
  return (sign === "-" ? -1 : 1) * ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000;
}

/** A time of day with its offset: `01:02:03.500+02` as `01:02:03.5+02:00`, and `Z` where the offset is none. */
export function zonedTime(text: string): string {
  const [, time = text, offset = ""] = /^(.+?)([+-]\d\d(?::\d\d)*)$/.exec(text) ?? [];
  if (offset === "") return text;
  const isUtc = offsetMsOf(offset) === 0;
  return withoutZeros(time) + (isUtc ? "Z" : offset.length === "+02".length ? `${offset}:00` : offset);
}
