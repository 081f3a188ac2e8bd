/** The use case that deletes a file and its shards. */
import { type Actor, audit } from "../kernel/auth/audit.ts";
import type { Db } from "../kernel/data/db.ts";
import { type DryRun, transact } from "../kernel/data/dry-run.ts";
import { type TrackingHints, trackingError } from "./catalogue.ts";
import { deleteFiles, lockFile } from "./store/deletion.ts";

/** Returns the number of its shards. */
export function deleteFile(
  { db, hints }: { db: Db; hints: TrackingHints },
  filename: string,
  actor: Actor,
  options: DryRun,
): Promise<number> {
  return transact(db, options, async (tx) => {
    const file = await lockFile(tx, filename);
    if (!file) throw trackingError("FILE_NOT_FOUND", { filename });
    if (file.held > 0) throw trackingError("FILE_IN_WORK", { filename, held: file.held });
    await deleteFiles(tx, [filename]);
    await audit(tx, actor, "file.delete", filename, { shards: file.shards });
    hints.changed(tx, "file", filename);
    return file.shards;
  });
}
