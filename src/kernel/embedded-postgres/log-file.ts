/** The log of Postgres, `<dataDir>/postgres.log`: limited in size, and read for error messages. */

import { copyFile, open, stat, truncate } from "node:fs/promises";
import { absentIsUndefined } from "./failure.ts";

const LOG_BYTES_MAX = 10 * 1024 * 1024;
const TAIL_BYTES_MAX = 64 * 1024;

/**
 * Moves a log over the limit to `postgres.log.1`. It is copied and truncated, not renamed, because a running server keeps
 * its file open.
 */
export async function rotateLog(path: string, bytesMax = LOG_BYTES_MAX): Promise<void> {
  const size = (await stat(path).catch(absentIsUndefined))?.size ?? 0;
  if (size <= bytesMax) return;
  await copyFile(path, `${path}.1`);
  await truncate(path);
}

/** The text after `offset`, or its end if it is long. */
export async function readLog(path: string, offset: number): Promise<string> {
  const file = await open(path, "r").catch(absentIsUndefined);
  if (file === undefined) return "";
  try {
    const { size } = await file.stat();
    const from = Math.max(offset, size - TAIL_BYTES_MAX);
    if (size <= from) return "";
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
