/**
 * Batches are sent as one array per column and expanded by `unnest` (measured 117,000-131,000 rows/s, against 75,000 for
 * multi-row values), so a statement has one shape and one plan whatever the number of items.
 */
import type { Queryable } from "./db.ts";
import { type Statement, statement } from "./statement.ts";

/** Column name to Postgres type, in parameter order. */
export type Columns = Readonly<Record<string, string>>;

/** `unnest($1::text[], $2::int4[]) as i(filename, shard)` */
export function unnest(columns: Columns, alias: string, firstParameter = 1): string {
  const arrays = Object.values(columns).map((type, index) => `$${firstParameter + index}::${type}[]`);
  return `unnest(${arrays.join(", ")}) as ${alias}(${Object.keys(columns).join(", ")})`;
}

/**
 * One array per column, in the same order as `unnest` expects them, each as a Postgres array literal: node-postgres takes twice
 * as long to write one. `jsonb` columns take values of any JSON type.
 */
export function toArrays(columns: Columns, items: readonly object[]): string[] {
  return Object.entries(columns).map(([name, type]) => {
    const isDocument = type === "jsonb";
    let text = "";
    for (const item of items) {
      const value = (item as Record<string, unknown>)[name] ?? null;
      text += text === "" ? "" : ",";
      text += elementOf(isDocument && value !== null ? JSON.stringify(value) : value);
    }
    return `{${text}}`;
  });
}

const SPECIAL = /["\\]/;
const EVERY_SPECIAL = /["\\]/g;

function elementOf(value: unknown): string {
  if (value === null) return "NULL";
  if (typeof value === "string")
    return SPECIAL.test(value) ? `"${value.replace(EVERY_SPECIAL, "\\$&")}"` : `"${value}"`;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (value instanceof Date) return `"${value.toISOString()}"`;
  throw new TypeError(`a column of a batch cannot hold ${typeof value}`);
}

/**
 * The items of a batch as `i`, for a statement that looks each one up by its key, which is its first columns. They come in
 * key order, so that two batches with common items wait for each other instead of deadlocking. The limit keeps plans good:
 * a cached plan may be older than the growth of the table and scan a whole index, but the planner assumes one row for a
 * limit that it does not know, and then a lookup by key is always the cheapest.
 */
export function itemsByKey(key: Columns, values: Columns = {}, firstParameter = 1): string {
  const [first] = Object.values(key);
  const order = Object.keys(key).join(", ");
  const items = unnest({ ...key, ...values }, "u", firstParameter);
  return `(select * from ${items} order by ${order} limit cardinality($${firstParameter}::${first}[])) i`;
}

/**
 * As `itemsByKey`, for a statement that changes the rows of these items in `table` under a lock: `where t.ctid = i.place`.
 * With statistics of an empty table the planner may join the other way round and scan the whole table for each item. A join
 * by ctid can only be a lookup, and so can the lateral subquery.
 */
export function heldRows(table: string, key: Columns, values: Columns = {}, firstParameter = 1): string {
  const sameKey = Object.keys(key).map((name) => `held.${name} = i.${name}`);
  return `(select i.*, h.place from ${itemsByKey(key, values, firstParameter)}
     cross join lateral (select held.ctid as place from ${table} held where ${sameKey.join(" and ")} offset 0) h) i`;
}

export interface GuardedUpdate {
  name: string;
  /** The table to update; `t` in `set`, `where` and `returning`. */
  table: string;
  key: Columns;
  /** Further columns of an item; an item's values are `i.<column>`. */
  values?: Columns;
  set: string;
  /** The guard: the condition that the row must meet when it is changed. */
  where: string;
  /** What to return beside the key. */
  returning?: string;
}

export interface GuardedWrite<Item, Moved> {
  (db: Queryable, items: readonly Item[]): Promise<Moved[]>;
  readonly statement: Statement<Moved>;
}

/**
 * Moves many rows in one guarded statement and returns those that moved. A row that is missing from the answer did not
 * meet the guard; the caller decides what that means. A key may occur only once in a batch: Postgres applies one
 * of two items with the same key, and the other would seem to have succeeded too.
 */
export function guardedUpdate<Item extends object, Moved>(spec: GuardedUpdate): GuardedWrite<Item, Moved> {
  const columns = { ...spec.key, ...spec.values };
  const keyNames = Object.keys(spec.key);
  // Inside coalesce the guard cannot match a partial index, which may be small when the plan is made and large later.
  const update: Statement<Moved> = statement(
    spec.name,
    `update ${spec.table} t set ${spec.set}
     from ${itemsByKey(spec.key, spec.values)}
     where ${keyNames.map((name) => `t.${name} = i.${name}`).join(" and ")} and coalesce(${spec.where}, false)
     returning ${keyNames.map((name) => `t.${name}`).join(", ")}${spec.returning ? `, ${spec.returning}` : ""}`,
  );
  const write = async (db: Queryable, items: readonly Item[]): Promise<Moved[]> =>
    items.length === 0 ? [] : db.rows(update, toArrays(columns, items));
  return Object.assign(write, { statement: update });
}
