/** Ranges of pages: how a long list is divided into parts that are read side by side. */
import type { EndpointSpec } from "../spec/snapshot.ts";
import type { CountedPart } from "./divide.ts";
import { PAGES, type PageRange } from "./parts.ts";

/** Behind the last page of any list. */
const PAGE_LAST = 1_000_000_000;

/** The parts of a list of so many records; undefined if it is short enough for one slice, or is not divided by pages. */
export function intoPages({ slicing, pagination }: EndpointSpec, total: number): CountedPart[] | undefined {
  const { pageSize, maxPage = PAGE_LAST } = pagination;
  const pages = slicing?.by === "PAGE" ? slicing.pages : undefined;
  if (pages === undefined || total <= pages * pageSize) return undefined;
  const parts: CountedPart[] = [];
  const count = Math.ceil(total / pageSize);
  for (let from = 1; from <= count; from += pages) {
    // The last one has no end: what is added to the list meanwhile comes with it.
    const range = { from, until: from + pages > count ? maxPage : from + pages - 1 };
    parts.push({ part: { [PAGES]: range }, total: recordsOn(range, pageSize, total) });
  }
  return parts;
}

/** How many of the records of the list are on these pages. */
export function recordsOn({ from, until }: PageRange, pageSize: number, total: number): number {
  return Math.max(0, Math.min(total, until * pageSize) - (from - 1) * pageSize);
}
