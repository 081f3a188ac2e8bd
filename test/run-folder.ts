/**
 * The folder for the files of a test run, mostly databases. It is in memory if there is enough: creating and deleting files
 * is the main cost of a cloned database, 400 ms of CPU on the disk of a virtual machine and 20 ms in memory.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MEMORY = "/dev/shm";
/** Several times what a run needs at once; containers often have 64 MB. */
const FREE_BYTES_MIN = 4 * 1024 ** 3;
const PREFIX = "millrace-run-";

/** A new folder with the permissions of /tmp, because as root, Postgres runs as another user. */
export function makeRunFolder(): string {
  removeAbandoned(MEMORY);
  return newFolder(isUsable(MEMORY) ? MEMORY : tmpdir());
}

function newFolder(within: string): string {
  const folder = mkdtempSync(join(within, `${PREFIX}${process.pid}-`));
  chmodSync(folder, 0o1777);
  return folder;
}

/** Some systems forbid running programs from there, and some tests run what they write. */
function isUsable(disk: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(disk);
    if (bavail * bsize < FREE_BYTES_MIN) return false;
    const folder = newFolder(disk);
    try {
      writeFileSync(join(folder, "program"), "#!/bin/sh\n", { mode: 0o755 });
      execFileSync(join(folder, "program"));
      return true;
    } finally {
      rmSync(folder, { recursive: true });
    }
  } catch {
    return false;
  }
}

/** Removes the folders of killed runs, which would fill the memory until the machine restarts. */
function removeAbandoned(disk: string): void {
  try {
    for (const name of readdirSync(disk)) {
      const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
      if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(disk, name), { recursive: true, force: true });
    }
  } catch {
    // The disk does not exist, or another user's run left a folder.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
