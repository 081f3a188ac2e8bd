/**
 * `<dataDir>/millrace.pid` names the Millrace that holds the lock. The lock itself lies in Postgres (`lock.ts`) and can
 * never be stale; this note only answers whose the server is while it cannot be asked, so that no start stops a server
 * that a living Millrace uses.
 */

import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { absentIsUndefined } from "./failure.ts";
import { isAlive, startTime } from "./processes.ts";

export const OWNER_FILE = "millrace.pid";

/** `token` tells apart two supervisors in one process. */
export async function noteOwner(dataDir: string, token: string): Promise<void> {
  const path = join(dataDir, OWNER_FILE);
  const note = [process.pid, startTime(process.pid) ?? "", token, ""].join("\n");
  await writeFile(`${path}.${token}`, note, { mode: 0o600 });
  await rename(`${path}.${token}`, path);
}

/** The pid of a living Millrace other than the one with `token` that was the last to hold the lock. */
export async function livingOwner(dataDir: string, token: string): Promise<number | undefined> {
  const note = await readNote(dataDir);
  if (note === undefined || note.token === token || !isAlive(note.pid)) return undefined;
  return (startTime(note.pid) ?? "") === note.started ? note.pid : undefined;
}

export async function forgetOwner(dataDir: string, token: string): Promise<void> {
  if ((await readNote(dataDir))?.token === token) await rm(join(dataDir, OWNER_FILE), { force: true });
}

async function readNote(dataDir: string): Promise<{ pid: number; started: string; token: string } | undefined> {
  const note = await readFile(join(dataDir, OWNER_FILE), "utf8").catch(absentIsUndefined);
  const [pid = "", started = "", token = ""] = note?.split("\n") ?? [];
  return /^[1-9]\d*$/.test(pid) ? { pid: Number(pid), started, token } : undefined;
}
