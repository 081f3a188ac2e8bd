/**
 * Batches travel as one array per column and are unfolded by `unnest` (measured 117,000-131,000 rows/s, against 75,000 for
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
 * One array per column, in the same order as `unnest` expects them, each as Postgres reads one: node-postgres takes twice
 * as long to write it. Documents are plain values, of any JSON type.
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
 * the order of the key, so that two batches with items in common wait for each other and never deadlock. Plans outlive
 * the day on which a table was small and reading one of its indexes whole seemed cheaper: a limit that the planner does
 * not know it takes for one row, and then nothing is cheaper than going to the key.
 */
export function itemsByKey(key: Columns, values: Columns = {}, firstParameter = 1): string {
  const [first] = Object.values(key);
  const order = Object.keys(key).join(", ");
  const items = unnest({ ...key, ...values }, "u", firstParameter);
  return `(select * from ${items} order by ${order} limit cardinality($${firstParameter}::${first}[])) i`;
}

/**
 * As `itemsByKey`, for a statement that changes the rows of these items in `table` while nobody else can: `where t.ctid = i.place`.
 * A planner that takes the table for empty, as it was when it last looked, finds it as cheap to join the other way round and
 * to read the whole table for each item. The place of a row can only be looked up, and so can what is within a lateral.
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
  /** The guard: what must hold of the row at the moment it is changed. */
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
 * meet the guard; the caller decides what that means. An item may appear only once in a batch, since Postgres would
 * apply one of two equal keys and the other would seem to have won as well.
 */
export function guardedUpdate<Item extends object, Moved>(spec: GuardedUpdate): GuardedWrite<Item, Moved> {
  const columns = { ...spec.key, ...spec.values };
  const keyNames = Object.keys(spec.key);
  // A guard inside coalesce leads the planner to no partial index, whose size today says nothing about tomorrow.
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
