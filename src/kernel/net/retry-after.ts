/** What the `Retry-After` header of an answer asks for. */

/** In milliseconds, and no more than `maxMs`. Seconds or an HTTP date; anything else asks for nothing. */
export function retryAfterMs(header: string | undefined, nowMs: number, maxMs: number): number {
  const text = header?.trim() ?? "";
  const isSeconds = /^\d+(\.\d+)?$/.test(text);
  const ms = isSeconds ? Number(text) * 1_000 : /^[A-Z][a-z]{2},? /.test(text) ? Date.parse(text) - nowMs : 0;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), maxMs);
}
