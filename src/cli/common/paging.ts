/** Paged lists: their flags and their output. */
import { counted } from "../../kernel/text/sentences.ts";
import type { Flag, Given } from "./command.ts";

export interface Page<Item> {
  items: Item[];
  page: number;
  size: number;
  total: number;
}

export const PAGE_FLAGS: readonly Flag[] = [
  { usage: "--page <number>", description: "Which page (default 1)." },
  { usage: "--size <number>", description: "Items per page (default 20)." },
];

export const pageOf = (given: Given) => ({ page: given.maybeNumber("--page"), size: given.maybeNumber("--size") });

export function listing({ items, page, size, total }: Page<unknown>, noun: string, rows: () => string): string {
  if (items.length === 0) return page === 1 ? `There are no such ${noun}s.` : `There is no page ${page}.`;
  const pages = Math.ceil(total / size);
  return pages <= 1 ? rows() : `${rows()}\n\nPage ${page} of ${pages}, ${counted(total, noun)}.`;
}
