/** Parses the `Retry-After` header of a response. */

/** The wait in milliseconds, at most `maxMs`. Accepts seconds or an HTTP date; anything else is 0. */
export function retryAfterMs(header: string | undefined, nowMs: number, maxMs: number): number {
  const text = header?.trim() ?? "";
  const isSeconds = /^\d+(\.\d+)?$/.test(text);
  const ms = isSeconds ? Number(text) * 1_000 : /^[A-Z][a-z]{2},? /.test(text) ? Date.parse(text) - nowMs : 0;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), maxMs);
}
