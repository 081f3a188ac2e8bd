/** SQL that deletes files with their shards: one by name, and old ones whose shards are all done. */
import type { Queryable } from "../../kernel/data/db.ts";
import { statement } from "../../kernel/data/statement.ts";
import type { Batch } from "../../kernel/work/retention.ts";

const LOCK_FILE = statement<{ shards: number; held: number }>(
  "tracking.file.lock",
  `select (select count(*)::int from tracking.pipeline_tracking t where t.filename = f.filename) as shards,
          (select count(*)::int from tracking.pipeline_tracking t
           where t.filename = f.filename and t.leased_until > now()) as held
   from tracking.pipeline_file f where f.filename = $1 for update`,
);

/** The numbers of its shards, and of those that a worker holds; undefined if it is not registered. */
export async function lockFile(tx: Queryable, filename: string): Promise<{ shards: number; held: number } | undefined> {
  return (await tx.rows(LOCK_FILE, [filename]))[0];
}

const DELETE_SHARDS = statement(
  "tracking.shards.delete",
  "delete from tracking.pipeline_tracking where filename = any($1::text[])",
);
const DELETE_FILES = statement(
  "tracking.files.delete",
  "delete from tracking.pipeline_file where filename = any($1::text[])",
);

/** Of files that are locked. */
export async function deleteFiles(tx: Queryable, filenames: readonly string[]): Promise<void> {
  await tx.rows(DELETE_SHARDS, [filenames]);
  await tx.rows(DELETE_FILES, [filenames]);
}

// A file that is not done stays, and is looked at each time: there are few, and `millrace doctor` tells of them.
const OLD = statement<{ filename: string }>(
  "tracking.files.old",
  `select f.filename from tracking.pipeline_file f
   where f.created_at < now() - make_interval(days => $1)
     and not exists (select from tracking.pipeline_tracking t where t.filename = f.filename and t.mysql_sender_status <> 'done')
     and not exists (select from tracking.pipeline_tracking t
                     where t.filename = f.filename and t.updated_at >= now() - make_interval(days => $1))
   order by f.created_at limit $2 for update of f skip locked`,
);

export const deletesFiles =
  (keepDays: number) =>
  async (tx: Queryable, limit: number): Promise<Batch> => {
    const old = (await tx.rows(OLD, [keepDays, limit])).map(({ filename }) => filename);
    if (old.length > 0) await deleteFiles(tx, old);
    return { looked: old.length, deleted: old.length };
  };
