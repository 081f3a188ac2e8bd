/**
 * Contents of files that many callers share, so that slow callers of a large file do not each hold a copy. Bounded, and empty
 * again when nobody has asked for a while.
 */
import { readFile } from "node:fs/promises";

export interface FileCache {
  /** Undefined if the file is no longer there. */
  read(path: string): Promise<Buffer | undefined>;
}

export interface FileCacheOptions {
  bytesMax?: number;
  keepMs?: number;
}

interface Entry {
  content: Promise<Buffer | undefined>;
  bytes: number;
}

const BYTES_MAX = 4 * 1_048_576;
const KEEP_MS = 60_000;

export function createFileCache({ bytesMax = BYTES_MAX, keepMs = KEEP_MS }: FileCacheOptions = {}): FileCache {
  /** The oldest first; 0 bytes while it is being read. */
  const kept = new Map<string, Entry>();
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;

  function drop(path: string): void {
    bytes -= kept.get(path)?.bytes ?? 0;
    kept.delete(path);
  }

  function keep(path: string): Promise<Buffer | undefined> {
    const entry = { content: readIfThere(path), bytes: 0 };
    kept.set(path, entry);
    void account(path, entry);
    return entry.content;
  }

  async function account(path: string, entry: Entry): Promise<void> {
    const content = await entry.content.catch(() => undefined);
    if (kept.get(path) !== entry) return;
    if (!content) return drop(path); // The next caller tries again.
    entry.bytes = content.length;
    bytes += entry.bytes;
    for (const oldest of kept.keys()) if (bytes > bytesMax) drop(oldest);
  }

  return {
    read(path) {
      clearTimeout(timer);
      timer = setTimeout(() => {
        kept.clear();
        bytes = 0;
      }, keepMs).unref();
      return kept.get(path)?.content ?? keep(path);
    },
  };
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
