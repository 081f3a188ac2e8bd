/**
 * `<dataDir>/millrace.pid` names the Millrace that holds the lock. The lock itself is in Postgres (`lock.ts`) and is never stale;
 * this file says who owns a server that does not answer, so that no start stops a server in use.
 */

import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { absentIsUndefined } from "./failure.ts";
import { isAlive, startTime } from "./processes.ts";

export const OWNER_FILE = "millrace.pid";

/** `token` distinguishes two supervisors in one process. */
export async function writeOwner(dataDir: string, token: string): Promise<void> {
  const path = join(dataDir, OWNER_FILE);
  const owner = [process.pid, startTime(process.pid) ?? "", token, ""].join("\n");
  await writeFile(`${path}.${token}`, owner, { mode: 0o600 });
  await rename(`${path}.${token}`, path);
}

/** The pid of the last holder of the lock, if it is alive and does not have `token`. */
export async function livingOwner(dataDir: string, token: string): Promise<number | undefined> {
  const owner = await readOwner(dataDir);
  if (owner === undefined || owner.token === token || !isAlive(owner.pid)) return undefined;
  return (startTime(owner.pid) ?? "") === owner.started ? owner.pid : undefined;
}

export async function removeOwner(dataDir: string, token: string): Promise<void> {
  if ((await readOwner(dataDir))?.token === token) await rm(join(dataDir, OWNER_FILE), { force: true });
}

async function readOwner(dataDir: string): Promise<{ pid: number; started: string; token: string } | undefined> {
  const owner = await readFile(join(dataDir, OWNER_FILE), "utf8").catch(absentIsUndefined);
  const [pid = "", started = "", token = ""] = owner?.split("\n") ?? [];
  return /^[1-9]\d*$/.test(pid) ? { pid: Number(pid), started, token } : undefined;
}
