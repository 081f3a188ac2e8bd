/** What an answer hints at the number of records, in its document or a header. It may be wrong: it only decides how large slices are. */
import type { WindowSpec } from "../spec/snapshot.ts";
import { optionalPath } from "./paths.ts";
import { countOf, wordOf } from "./values.ts";

/** More is no hint but an error of the source. */
const RECORDS_MAX = 1_000_000_000;

export type ReadHint = (headers: Readonly<Record<string, string>>, document: unknown) => number | undefined;

/** Undefined where the definition declares none. */
export function compileHint(hint: WindowSpec["hint"], pageSize: number): ReadHint | undefined {
  if (!hint) return undefined;
  const path = optionalPath(hint.path);
  const factor = hint.unit === "PAGES" ? pageSize : 1;
  return (headers, document) => {
    const found = hint.header === undefined ? path?.first(document) : headers[hint.header];
    // A range has the size at its end: `items 0-24/319`.
    const count = countOf(/\d+$/.exec(wordOf(found) ?? "")?.[0]);
    return count === undefined || count * factor > RECORDS_MAX ? undefined : count * factor;
  };
}
