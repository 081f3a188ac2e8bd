/** Lists that the server answers from the newest on: their flags and their output. */
import { type Client, pathTo } from "../common/client.ts";
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

/** Of a source that does not exist a list has nothing either, so the server is asked for that source: it says which one may be meant. */
export async function ofSource<List extends Listed<unknown>>(
  client: Client,
  source: string | undefined,
  list: List,
): Promise<List> {
  if (source === undefined || list.items.length > 0) return list;
  await client.call({ method: "GET", path: pathTo`api/v1/harvest/registry/sources/${source}` });
  return list;
}

export function listedText<Item>({ items, next }: Listed<Item>, noun: string, rows: (items: Item[]) => string): string {
  if (items.length === 0) return `There are no such ${noun}s.`;
  return next ? `${rows(items)}\n\nThere are more: --after ${next}` : rows(items);
}
