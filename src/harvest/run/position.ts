/**
 * Where a page begins, and where the next one does. Pure, so that every rule of pagination is in one place.
 *
 * A short page is not the end: sources leave records out of full lists. A token on a page does not mean that another page
 * follows: many sources send one with the last page. So a list ends where the source says so (`hasMorePath`, no token, no URL,
 * the announced total), or with an empty page.
 */
import type { Counted } from "../slice/divide.ts";
import type { PageRange } from "../slice/parts.ts";
import type { EndpointSpec } from "../spec/snapshot.ts";

/** Stored with the slice as JSON. */
export interface Position {
  /** The number of the page in this generation, from 1. */
  pageNo: number;
  offset?: number;
  token?: string;
  url?: string;
  /** RFC 3339. The page begins at this time instead of the beginning of the window. */
  time?: string;
  /** The list is read to its end. With two phases, the records of its ids are being fetched. */
  isListed?: true;
  /** No request was under way when the last run ended, so a token that can be used once can still be used. */
  isClean?: boolean;
  /** Of a run that stopped while it divided the slice, in its checkpoint only. */
  counted?: Counted;
}

/** What a page tells of its list. */
export interface PageFacts {
  items: number;
  /** How many records the page says that it stands for. */
  count?: number | undefined;
  total: number | undefined;
  nextToken: string | null | undefined;
  nextUrl: string | null | undefined;
  hasMore: boolean | undefined;
  /** The latest time of its records, for TIME. */
  latest: Date | undefined;
}

export type Next = { kind: "page"; position: Position } | { kind: "end" } | { kind: "too deep"; reason: string };

/** Of the list, or of a part of its pages. */
export function firstPosition({ pagination }: Pick<EndpointSpec, "pagination">, pages?: PageRange): Position {
  switch (pagination.type) {
    case "OFFSET":
    case "PAGE":
      return pages ? { pageNo: pages.from, offset: (pages.from - 1) * pagination.pageSize } : { pageNo: 1, offset: 0 };
    case "TOKEN":
      return { pageNo: 1, ...(pagination.initial === undefined ? {} : { token: pagination.initial }) };
    case "URL":
    case "TIME":
      return { pageNo: 1 };
  }
}

export function nextPosition(
  { pagination, window }: Pick<EndpointSpec, "pagination" | "window">,
  position: Position,
  facts: PageFacts,
  pages?: PageRange,
): Next {
  const { type, pageSize, maxPage } = pagination;
  if (facts.hasMore === false || facts.items === 0) return { kind: "end" };
  if (type === "TIME" && !facts.latest && facts.items >= pageSize) {
    return { kind: "too deep", reason: "the records of a full page have no time to go on from" };
  }
  const following = follow();
  if (!following || (pages && position.pageNo >= pages.until)) return { kind: "end" };
  if (maxPage !== undefined && position.pageNo >= maxPage) {
    return { kind: "too deep", reason: `the list goes on after page ${maxPage}, the last that the source serves` };
  }
  return { kind: "page", position: { pageNo: position.pageNo + 1, ...following } };

  function follow(): Omit<Position, "pageNo"> | undefined {
    switch (type) {
      case "OFFSET":
      case "PAGE": {
        // By the size that was asked for: a source may leave records out of a page. Where it decides the size, by what it says.
        const size = pagination.countPath === undefined ? pageSize : facts.count || facts.items;
        const offset = (position.offset ?? 0) + size;
        return facts.total !== undefined && facts.hasMore === undefined && offset >= facts.total
          ? undefined
          : { offset };
      }
      case "TOKEN":
        return isText(facts.nextToken) ? { token: facts.nextToken } : undefined;
      case "URL":
        return isText(facts.nextUrl) ? { url: facts.nextUrl } : undefined;
      case "TIME": {
        if (!facts.latest) return undefined; // No record has a time; `nextPosition` has refused a full page.
        const unitMs = window?.granularityMs ?? 1;
        return { time: new Date(Math.floor(facts.latest.getTime() / unitMs) * unitMs).toISOString() };
      }
    }
  }
}

/** Whether a run may continue at a position that an earlier run left, or the slice has to start again. */
export function canResume(
  { pagination }: Pick<EndpointSpec, "pagination">,
  position: Position,
  ageMs: number,
): { resume: true } | { resume: false; reason: string } {
  if (position.isListed || (position.token === undefined && position.url === undefined)) return { resume: true };
  const { tokenClass, tokenTtlMs } = pagination;
  if (tokenClass === "SINGLE_USE" && position.isClean !== true) {
    return { resume: false, reason: "its token can be used once, and the answer to the last request may be lost" };
  }
  if (tokenClass !== "REPEATABLE" && tokenTtlMs !== undefined && ageMs >= tokenTtlMs) {
    return { resume: false, reason: "its token has expired" };
  }
  return { resume: true };
}

function isText(value: string | null | undefined): value is string {
  return typeof value === "string" && value !== "";
}
