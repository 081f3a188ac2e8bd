/** Makes files and the entries of directories durable: a flushed file can still be missing from its directory after a power failure. */
import { type FileHandle, open } from "node:fs/promises";

export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return; // Windows cannot open a directory.
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    closeLater(directory);
  }
}

/** For a file that something else has written. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** Closes a file that nothing is written to any more. Its content is durable, so nobody has to wait, and nothing can fail. */
export function closeLater(file: FileHandle): void {
  file.close().catch(() => {});
}
