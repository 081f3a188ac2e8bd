/** SQL for bodies of responses that are kept in the database, because there is no folder for them. */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";

const INSERT = statement(
  "harvest.body.insert",
  "insert into harvest.body (body_hash, content) values ($1, $2) on conflict (body_hash) do nothing",
);
const FIND = statement<{ content: Buffer }>(
  "harvest.body.find",
  "select content from harvest.body where body_hash = $1",
);

export async function insertBody(db: Queryable, hash: string, content: Buffer): Promise<void> {
  await db.rows(INSERT, [hash, content]);
}

/** Compressed, as it was inserted. */
export async function findBody(db: Queryable, hash: string): Promise<Buffer | undefined> {
  return (await db.rows(FIND, [hash]))[0]?.content;
}
