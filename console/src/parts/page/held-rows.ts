/**
 * A live list does not move under the pointer or the focus: while one of them is in it, its rows keep their places, new ones wait,
 * and those that are gone stay. What a row says changes at once, and so does the list after a change by the person who looks at it.
 */
import { type RefObject, useState } from "react";
import { writesSoFar } from "../../api/live.ts";

export interface HeldRows<Row> {
  rows: readonly Row[];
  /** How many new rows wait. */
  waiting: number;
  /** The keys of rows that are not in the list any more. */
  gone: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();
const IN_USE = ":hover, :has(:focus-visible)";

interface Held<Row> extends HeldRows<Row> {
  list: string;
  /** What the rows were made of. */
  source: readonly Row[];
  /** Changes by the person before. */
  writes: number;
}

/** `list` names the list whose rows these are; rows of another one replace them at once. Without a name nothing is held. */
export function useHeldRows<Row>(
  list: string | undefined,
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  frame: RefObject<Element | null>,
): HeldRows<Row> & { release(): void } {
  const [held, setHeld] = useState<Held<Row>>();
  const all = { rows, waiting: 0, gone: NONE };
  if (list === undefined) {
    if (held) setHeld(undefined);
    return { ...all, release() {} };
  }
  let current = held;
  if (current?.source !== rows || current.list !== list) {
    const writes = writesSoFar();
    const isHeld = current?.list === list && current.writes === writes && frame.current?.matches(IN_USE);
    current = { list, source: rows, writes, ...(current && isHeld ? inPlace(current.rows, rows, keyOf) : all) };
    setHeld(current);
  }
  return {
    ...current,
    release() {
      if (current.rows !== rows) setHeld({ ...current, ...all });
    },
  };
}

/** The present rows in the places of those that are shown. What comes behind all of these moves nothing, so it is shown. */
export function inPlace<Row>(shown: readonly Row[], rows: readonly Row[], keyOf: (row: Row) => string): HeldRows<Row> {
  const present = new Map(rows.map((row) => [keyOf(row), row]));
  const known = new Set(shown.map(keyOf));
  const last = rows.findLastIndex((row) => known.has(keyOf(row)));
  if (last < 0) return { rows, waiting: 0, gone: NONE };
  const lastShown = shown.findLastIndex((row) => present.has(keyOf(row)));
  // New rows move the last ones to a page that is not loaded, so those may still be there.
  const gone = shown
    .slice(0, lastShown)
    .map(keyOf)
    .filter((key) => !present.has(key));
  return {
    rows: [...shown.map((row) => present.get(keyOf(row)) ?? row), ...rows.slice(last + 1)],
    waiting: rows.slice(0, last).filter((row) => !known.has(keyOf(row))).length,
    gone: new Set(gone),
  };
}
