/** Makes the entries of a directory durable: after a power failure, a flushed file can still be missing from its directory. */
import { open } from "node:fs/promises";

export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return; // Windows cannot open a directory.
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
