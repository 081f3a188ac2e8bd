/**
 * Windows of sources that do not filter by time: their list is in the order of time, so it is read up to the window's end and what is
 * outside of the window is left out. A list that turns out not to be in that order would lose records in silence, so it ends the slice.
 */
import type { Page } from "../decode/index.ts";
import type { WindowSpec } from "../spec/snapshot.ts";
import type { Walk } from "./walk.ts";

export interface Filtered {
  /** With the records of the window only. */
  page: Page;
  /** The ids of the others. */
  outside: string[];
  /** The rest of the list is behind the window. */
  isPast: boolean;
}

export interface ClientFilter {
  of(page: Page): Filtered | { unordered: string };
}

/** Undefined where the source filters by itself. */
export function clientFilter({ task: { source, context } }: Walk): ClientFilter | undefined {
  const { window } = source.list.spec;
  const { window_from: from, window_to: to } = context;
  if (!window || window.supportsUpdatedSince || !from || !to) return undefined;
  return createFilter(window.order, from, to);
}

function createFilter(order: WindowSpec["order"], from: Date, to: Date): ClientFilter {
  const isDescending = order === "descending";
  let last: Date | undefined;
  /** The ids of the page before: what is inserted meanwhile moves records to the next page, where they come again. */
  let before = new Set<string>();
  return {
    of(page) {
      const ids = new Set<string>();
      const items: Page["items"] = [];
      const outside: string[] = [];
      let isPast = false;
      for (const item of page.items) {
        if ("quarantine" in item) {
          items.push(item);
          continue;
        }
        const { key, sourceTime: at, dataJson } = item;
        if (!at) {
          const reason = "the record has no time, so its window is not known";
          const fragment = dataJson.slice(0, FRAGMENT_LENGTH_MAX).toWellFormed();
          items.push({ quarantine: { code: "BAD_TIME", reason, expression: null, fragment, key } });
          continue;
        }
        ids.add(key);
        if (!before.has(key)) {
          if (last && (isDescending ? at > last : at < last)) return { unordered: unordered(order, last, at) };
          last = at;
        }
        if (at >= from && at < to) items.push(item);
        else outside.push(key);
        isPast ||= isDescending ? at < from : at >= to;
      }
      before = ids;
      return { page: { ...page, items }, outside, isPast };
    },
  };
}

const FRAGMENT_LENGTH_MAX = 2_000;

function unordered(order: string, last: Date, at: Date): string {
  const pair = `${at.toISOString()} came after ${last.toISOString()}`;
  return `the list is not ${order} in time, as \`window.order\` says: ${pair}`;
}
