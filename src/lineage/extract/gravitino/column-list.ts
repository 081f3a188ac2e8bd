/**
 * The columns of a table while changes are applied: their order, and which former column each continues. A change may already be
 * in the list, if the event describes the table after the changes.
 */
import type { Attributes } from "../../graph/facts.ts";

export interface ColumnEnding {
  was: string;
  /** Its name afterwards; absent if it was deleted. */
  is?: string;
}

export interface ColumnList {
  add(name: string, attributes: Attributes): void;
  remove(name: string): void;
  rename(from: string, to: string): void;
  update(name: string, attributes: Attributes): void;
  /** `FIRST` or `AFTER other`; anything else leaves it where it is. */
  move(name: string, position: unknown): void;
  columns(): Map<string, Attributes>;
  endings(): ColumnEnding[];
}

interface Column {
  name: string;
  /** Its name before the changes; absent for one that they add. */
  was?: string;
  attributes: Attributes;
  /** Whether it stands in its place in the list: one that only a change names may be anywhere. */
  isPlaced: boolean;
}

/** Columns know their neighbours and are found by name: no change walks through a table of ten thousand of them. */
interface Entry extends Column {
  before: Entry;
  after: Entry;
}

const AFTER = /^AFTER\s/i;

export function createColumnList(columns: ReadonlyMap<string, Attributes>): ColumnList {
  const byName = new Map<string, Entry>();
  /** Stands before the first and after the last, so that each column has two neighbours. */
  const ends = { name: "", attributes: {}, isPlaced: false } as Entry;
  ends.before = ends;
  ends.after = ends;
  const deleted: string[] = [];

  const find = (name: string) => byName.get(name);
  /** `address.city` is not a column but a field of `address`, which is part of the type of that column. */
  const isNested = (name: string) =>
    !find(name) && name.includes(".") && find(name.slice(0, name.indexOf("."))) !== undefined;

  function placeBefore(position: unknown): Entry | undefined {
    if (position === "FIRST") return ends;
    return typeof position === "string" && AFTER.test(position)
      ? find(position.slice("AFTER".length).trimStart())
      : undefined;
  }

  function put(column: Column, before: Entry): void {
    const entry = Object.assign(column, { before, after: before.after });
    before.after.before = entry;
    before.after = entry;
    byName.set(entry.name, entry);
  }

  function take({ name, before, after }: Entry): void {
    before.after = after;
    after.before = before;
    byName.delete(name);
  }

  function* inOrder(): Generator<Entry> {
    for (let entry = ends.after; entry !== ends; entry = entry.after) yield entry;
  }

  for (const [name, attributes] of columns) put({ name, was: name, attributes, isPlaced: true }, ends.before);
  // Without a list of columns, those that the changes name have no known order.
  const isOrdered = columns.size > 0;

  return {
    add(name, attributes) {
      if (isNested(name)) return;
      const known = find(name);
      if (known) known.attributes = { ...known.attributes, ...attributes };
      else put({ name, attributes, isPlaced: true }, ends.before);
    },
    remove(name) {
      if (isNested(name)) return;
      const known = find(name);
      if (known) take(known);
      const was = known ? known.was : name;
      if (was !== undefined) deleted.push(was);
    },
    rename(from, to) {
      if (from === to || isNested(from)) return;
      const known = find(from);
      const target = find(to);
      if (!target && known) {
        byName.delete(from);
        known.name = to;
        byName.set(to, known);
      } else if (target) {
        const was = known ? known.was : from;
        if (was === undefined) delete target.was;
        else target.was = was;
        if (known) take(known);
      } else {
        put({ name: to, was: from, attributes: {}, isPlaced: false }, ends.before);
      }
    },
    update(name, attributes) {
      if (isNested(name)) return;
      const known = find(name);
      if (known) known.attributes = { ...known.attributes, ...attributes };
      else put({ name, was: name, attributes, isPlaced: false }, ends.before);
    },
    move(name, position) {
      const before = placeBefore(position);
      if (!before || before.name === name || isNested(name)) return;
      const known = find(name);
      if (known) take(known);
      put({ ...(known ?? { name, was: name, attributes: {} }), isPlaced: true }, before);
    },
    columns() {
      const changed = new Map<string, Attributes>();
      let position = 0;
      for (const { name, attributes, isPlaced } of inOrder()) {
        if (isPlaced) position += 1;
        changed.set(name, isOrdered && isPlaced ? { ...attributes, position } : attributes);
      }
      return changed;
    },
    endings() {
      const renamed = Array.from(inOrder()).flatMap(({ was, name }) =>
        was === undefined || was === name ? [] : [{ was, is: name }],
      );
      return [...deleted.map((was) => ({ was })), ...renamed];
    },
  };
}
