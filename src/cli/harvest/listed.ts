/** Lists that the server answers from the newest on: their flags and their output. */
import type { Flag, Given } from "../common/command.ts";

export interface Listed<Item> {
  items: Item[];
  /** To be sent as `after`, for those behind. */
  next?: string | number | null;
}

export const LIST_FLAGS: readonly Flag[] = [
  { usage: "--limit <number>", description: "At most so many (default 50)." },
  { usage: "--after <position>", description: "Go on behind this one, as the end of an earlier list says." },
];

export const listQuery = (given: Given) => ({
  limit: given.maybeNumber("--limit"),
  after: given.maybeText("--after"),
});

export function listedText<Item>({ items, next }: Listed<Item>, noun: string, rows: (items: Item[]) => string): string {
  if (items.length === 0) return `There are no such ${noun}s.`;
  return next ? `${rows(items)}\n\nThere are more: --after ${next}` : rows(items);
}
