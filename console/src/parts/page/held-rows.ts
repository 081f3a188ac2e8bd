/**
 * A live list does not move under the pointer or the focus. While either is in the list, rows keep their positions, new rows
 * wait, and removed rows stay visible. The content of a row still updates immediately, and so does the list after a write by the
 * user.
 */
import { type RefObject, useState } from "react";
import { writesSoFar } from "../../api/live.ts";

export interface HeldRows<Row> {
  rows: readonly Row[];
  /** How many new rows wait. */
  waiting: number;
  /** Keys of rows that were removed from the list. */
  gone: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();
const IN_USE = ":hover, :has(:focus-visible)";

interface Held<Row> extends HeldRows<Row> {
  list: string;
  /** What the rows were made of. */
  source: readonly Row[];
  /** Number of writes by the user so far. */
  writes: number;
}

/** `list` names the list; rows of another list replace these immediately. Without a name no rows are held. */
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

/** Current rows in their shown positions. Rows after the last shown one move nothing, so they are added. */
export function inPlace<Row>(shown: readonly Row[], rows: readonly Row[], keyOf: (row: Row) => string): HeldRows<Row> {
  const present = new Map(rows.map((row) => [keyOf(row), row]));
  const known = new Set(shown.map(keyOf));
  const last = rows.findLastIndex((row) => known.has(keyOf(row)));
  if (last < 0) return { rows, waiting: 0, gone: NONE };
  const lastShown = shown.findLastIndex((row) => present.has(keyOf(row)));
  // New rows push the last ones to a page that is not loaded, so these may still exist.
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
