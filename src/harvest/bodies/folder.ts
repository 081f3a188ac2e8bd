/**
 * The folder of bodies: `<aa>/<hash>.br`, where aa are the first two digits of the hash. A file is written under a name in
 * `tmp`, flushed, renamed, and its directory is flushed, so a file with its final name is complete and survives a power failure.
 */
import { access, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Ids } from "../../kernel/ids.ts";
import { syncDirectory } from "../../kernel/sync-directory.ts";
import type { Clock } from "../../kernel/time/clock.ts";

export interface BodyFolder {
  /** Whether the body is there and durable. */
  has(hash: string): Promise<boolean>;
  write(hash: string, content: Buffer): Promise<void>;
  read(hash: string): Promise<Buffer | undefined>;
  removeLeftovers(): Promise<number>;
}

const TEMPORARY = "tmp";
/** No process takes this long to write one body, so older files are of processes that were killed. */
const LEFTOVER_AGE_MS = 3_600_000;
const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;

export function openBodyFolder(deps: { dir: string; clock: Clock; ids: Pick<Ids, "uuid"> }): BodyFolder {
  const { dir, clock, ids } = deps;
  const temporary = join(dir, TEMPORARY);
  /** Directories that this process has created or found, by name. */
  const present = new Map<string, Promise<void>>();
  const parentOf = (hash: string) => hash.slice(0, 2);
  const pathOf = (hash: string) => join(dir, parentOf(hash), `${hash}.br`);

  function ensure(name: string): Promise<void> {
    const known = present.get(name);
    if (known) return known;
    const created = createDirectory(name);
    present.set(name, created);
    created.catch(() => present.delete(name));
    return created;
  }

  async function createDirectory(name: string): Promise<void> {
    await mkdir(join(dir, name), { recursive: true, mode: DIRECTORY_MODE });
    await syncDirectory(dir);
  }

  return {
    async has(hash) {
      if (!(await exists(pathOf(hash)))) return false;
      // Another process may have renamed it and not flushed the directory yet. A directory without changes costs 0.1 ms.
      await syncDirectory(join(dir, parentOf(hash)));
      return true;
    },
    async write(hash, content) {
      await Promise.all([ensure(TEMPORARY), ensure(parentOf(hash))]);
      const path = join(temporary, ids.uuid());
      try {
        const file = await open(path, "wx", FILE_MODE);
        try {
          await file.writeFile(content);
          await file.datasync();
        } finally {
          await file.close();
        }
        await rename(path, pathOf(hash));
      } catch (error) {
        await rm(path, { force: true }).catch(() => {}); // What cannot be removed now is a left-over for the next start.
        throw error;
      }
      await syncDirectory(join(dir, parentOf(hash)));
    },
    read: (hash) => unlessMissing(readFile(pathOf(hash))),
    async removeLeftovers() {
      const names = (await unlessMissing(readdir(temporary))) ?? [];
      let removed = 0;
      for (const name of names) {
        const path = join(temporary, name);
        const found = await unlessMissing(stat(path));
        if (!found || clock.now() - found.mtimeMs < LEFTOVER_AGE_MS) continue;
        await rm(path, { force: true });
        removed += 1;
      }
      return removed;
    },
  };
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
