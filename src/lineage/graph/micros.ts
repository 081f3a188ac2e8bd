/** Times of events are microseconds since 1970, as numbers: exact until the year 2255. */

const MICROS_PER_SECOND = 1_000_000;

/** Of a clock's milliseconds. */
export const microsOf = (ms: number): number => ms * 1_000;

/** As Postgres and people read it. */
export function isoOf(at: number): string {
  const seconds = Math.floor(at / MICROS_PER_SECOND);
  const micros = at - seconds * MICROS_PER_SECOND;
  return `${new Date(seconds * 1_000).toISOString().slice(0, -5)}.${String(micros).padStart(6, "0")}Z`;
}
