/**
 * A statement is SQL with a name. The name makes it a prepared statement on every connection that runs it, and its
 * name in metrics and traces.
 */

export interface Statement<Row> {
  readonly name: string;
  readonly text: string;
  /** Carries the row type only; never set. */
  readonly row?: Row;
}

const NAME_LENGTH_MAX = 63; // Postgres truncates longer identifiers, and two statements could share one name.
const taken = new Set<string>();

export function statement<Row>(name: string, text: string): Statement<Row> {
  if (name.length > NAME_LENGTH_MAX) throw new Error(`statement name too long: ${name}`);
  if (taken.has(name)) throw new Error(`two statements are named ${name}`);
  taken.add(name);
  return { name, text };
}
