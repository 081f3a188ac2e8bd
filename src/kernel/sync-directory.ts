/** Makes the names of a directory durable: a file that was flushed can still lose its name with the power. */
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
