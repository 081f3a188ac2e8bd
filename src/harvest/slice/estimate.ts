/**
 * How many records a slice may have, before all of them have come. What the source announces is best, then what it hints at, then what
 * its first page shows, then what earlier slices had. An estimate makes slices smaller or larger and decides nothing else: whether one
 * is complete is decided by the end of its list and by counts.
 */

import type { EndpointSpec, WindowSpec } from "../spec/snapshot.ts";
import { ALIGN_MS } from "../spec/window-defaults.ts";

/** From the most reliable on. */
export const ESTIMATE_BASES = ["TOTAL", "HINT", "SAMPLE", "HISTORY"] as const;
export type EstimateBasis = (typeof ESTIMATE_BASES)[number];

export interface Estimate {
  records: number;
  basis: EstimateBasis;
}

/** What is known of the size of a slice, by where it is known from. */
export type KnownSizes = Partial<Record<Lowercase<EstimateBasis>, number | undefined>>;

export function estimateOf(known: KnownSizes): Estimate | undefined {
  for (const basis of ESTIMATE_BASES) {
    const records = known[basis.toLowerCase() as Lowercase<EstimateBasis>];
    if (records !== undefined) return { records, basis };
  }
  return undefined;
}

/** The most records that the source answers for one query, by number or by pages. */
export function capOf({
  window,
  pagination,
}: Pick<EndpointSpec, "window" | "pagination">): { records: number; rule: string } | undefined {
  const { type, maxPage, pageSize } = pagination;
  const recordsMax = window?.recordsMax ?? Number.POSITIVE_INFINITY;
  // A page by time is a query of its own.
  const inPages = maxPage === undefined || type === "TIME" ? Number.POSITIVE_INFINITY : maxPage * pageSize;
  if (inPages < recordsMax) return { records: inPages, rule: `serves no more than ${maxPage} pages of ${pageSize}` };
  if (window?.recordsMax === undefined) return undefined;
  return { records: recordsMax, rule: `answers no more than ${recordsMax} for one query` };
}

/** What a slice of time should have at most: what one slice may have, and what the source answers. */
export function limitOf(spec: Pick<EndpointSpec, "window" | "pagination">): number | undefined {
  const limit = Math.min(
    spec.window?.sliceRecords ?? Number.POSITIVE_INFINITY,
    capOf(spec)?.records ?? Number.POSITIVE_INFINITY,
  );
  return Number.isFinite(limit) ? limit : undefined;
}

/** A first page that goes on for so many times its own length is far over any limit, whatever the number is. */
const PAGES_MAX = 10_000;

export interface FirstPage {
  records: number;
  /** The times of its records. */
  earliest: Date | undefined;
  latest: Date | undefined;
}

/**
 * What the first of several pages lets expect of a window whose list is in the order of time: it has as many records in the same time.
 * Undefined where its records do not tell: no order, no times, or all of them at one end of the window.
 */
export function sampledSize(
  { monotone, order }: Pick<WindowSpec, "monotone" | "order">,
  window: { from: Date; to: Date },
  { records, earliest, latest }: FirstPage,
): number | undefined {
  if (!monotone || !earliest || !latest || earliest < window.from || latest > window.to) return undefined;
  const spanMs =
    order === "descending" ? window.to.getTime() - earliest.getTime() : latest.getTime() - window.from.getTime();
  if (spanMs <= 0) return undefined;
  const pages = (window.to.getTime() - window.from.getTime()) / spanMs;
  return Math.ceil(records * Math.min(PAGES_MAX, Math.max(1, pages)));
}

/** Whether the first answer of a slice tells its size, or may: then nothing has to be guessed before it is asked. */
export function isMeasured({ window, response }: Pick<EndpointSpec, "window" | "response">): boolean {
  if (response.totalPath !== undefined || window?.probe || window?.hint) return true;
  return (window?.monotone ?? false) && response.updatedAtPath !== undefined;
}

/**
 * The width of the slices of a window in which so many records are expected in a millisecond: `maxWindow`, or an equal part of it that has
 * at most `limit`. Parts are whole units of the source and no narrower than `minWindow`.
 */
export function widthFor(window: WindowSpec, perMs: number, limit: number): number {
  const { maxWindowMs, minWindowMs, granularityMs, align } = window;
  const unitMs = Math.max(granularityMs, ALIGN_MS[align]);
  const wanted = Math.ceil((perMs * maxWindowMs) / limit);
  const most = Math.floor(maxWindowMs / minWindowMs);
  for (let parts = Math.max(1, Math.min(wanted, most)); parts <= most; parts += 1) {
    const widthMs = maxWindowMs / parts;
    if (widthMs % unitMs === 0 && widthMs >= minWindowMs) return widthMs;
  }
  // No part fits evenly: the narrowest one that may be.
  return wanted > 1 && minWindowMs % unitMs === 0 ? minWindowMs : maxWindowMs;
}
