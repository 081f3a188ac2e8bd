/**
 * Turns error codes of the operating system and the last lines of Postgres's log into a sentence that says what to do. Other
 * errors pass unchanged.
 */

import { statfs } from "node:fs/promises";
import { OperatorError } from "../errors.ts";

/** With less, Postgres cannot write its lock file or its log, so a start without a message failed for lack of space. */
const FULL_DISK_BYTES = 8 * 1024 * 1024;

export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** For `.catch()`: a missing file is not an error. */
export function absentIsUndefined(error: unknown): undefined {
  if (errorCode(error) === "ENOENT") return undefined;
  throw error;
}

const diskFull = (path: string) =>
  `The disk that holds ${path} is full. Free some space and start again; no acknowledged write is lost.`;
const readOnly = (path: string) => `${path} is on a read-only file system. Set MILLRACE_DATA_DIR to a writable folder.`;
const forbidden = (path: string) =>
  `Millrace may not write to ${path}: permission denied. Give the user that runs Millrace access to it, or set MILLRACE_DATA_DIR to another folder.`;
const fileInTheWay = (path: string) =>
  `${path} cannot be a folder: there is a file with this name. Move it, or set MILLRACE_DATA_DIR to another folder.`;
const mountPoint = (path: string) =>
  `Something below ${path} is a mount point, which cannot be renamed. Mount the disk one level higher, at the data directory.`;

const FILE_ERRORS = new Map([
  ["ENOSPC", diskFull],
  ["EDQUOT", diskFull],
  ["EROFS", readOnly],
  ["EACCES", forbidden],
  ["EPERM", forbidden],
  ["ENOTDIR", fileInTheWay],
  ["EEXIST", fileInTheWay],
  ["EBUSY", mountPoint],
]);

/** Runs file operations below `path` and turns their errors into sentences about it. */
export async function explained<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const sentence = FILE_ERRORS.get(errorCode(error) ?? "");
    throw sentence === undefined ? error : new OperatorError(sentence(path));
  }
}

export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/** By pattern of the output of Postgres. The first match is used, so specific patterns come first. */
const CAUSES: readonly (readonly [RegExp, (dataDir: string) => string])[] = [
  [
    /shared memory segment.*no space left on device/i,
    () =>
      "The shared memory of this machine is used up. Give the container a larger /dev/shm, or stop other databases.",
  ],
  [/no space left on device|disk quota exceeded/i, diskFull],
  [/read-only file system/i, readOnly],
  [
    /could not look up effective user ID (\d+)/,
    () =>
      "Postgres needs its user to have an entry in /etc/passwd, and this user has none. Run Millrace as a user with an entry, or set DATABASE_URL.",
  ],
  [
    /error while loading shared libraries|Library not loaded/,
    () => "A system library that Postgres needs is missing. Install it, or set DATABASE_URL to your own Postgres.",
  ],
  [
    /pre-existing shared memory block|lock file ".*" already exists/,
    (dataDir) => `Processes of an earlier Postgres still use ${dataDir}. End them and start again.`,
  ],
  [
    /permission denied|operation not permitted/i,
    (dataDir) => `Postgres may not read or write its files below ${dataDir}. Make the user that runs it their owner.`,
  ],
  [
    /Cannot allocate memory|could not map anonymous shared memory/,
    () => "There is not enough memory to start Postgres. Free some, or give the container more.",
  ],
  [
    /could not locate a valid checkpoint|invalid (primary )?checkpoint|pg_control|incorrect checksum/,
    (dataDir) =>
      `The database below ${dataDir} is damaged. Restore it from a backup; keep the folder until that is done.`,
  ],
];

/** The error for a failed initdb or Postgres; `output` is what it wrote. */
export async function postgresTrouble(what: string, output: string, dataDir: string): Promise<OperatorError> {
  const cause = CAUSES.find(([pattern]) => pattern.test(output));
  const lines = lastLines(output);
  const quoted = lines === "" ? "" : `\nThe last lines of Postgres:\n${lines}`;
  if (cause !== undefined) return new OperatorError(`${what} ${cause[1](dataDir)}${quoted}`);
  // On a full disk the log cannot be written either.
  if ((await freeBytes(dataDir)) < FULL_DISK_BYTES) {
    return new OperatorError(`${what} ${diskFull(dataDir)}${quoted}`);
  }
  return new OperatorError(`${what}${quoted === "" ? " It wrote no message." : quoted}`);
}

const LINES_SHOWN = 8;

export function lastLines(text: string): string {
  return text.trimEnd().split("\n").slice(-LINES_SHOWN).join("\n");
}
