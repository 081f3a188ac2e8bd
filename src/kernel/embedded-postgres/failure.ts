/**
 * What went wrong, for the person at the terminal: error codes of the operating system and the last words of Postgres
 * become a sentence that says what to do. Anything not known here passes through unchanged and counts as a bug.
 */

import { statfs } from "node:fs/promises";
import { OperatorError } from "../errors.ts";

/** Below this Postgres cannot even write its lock file or its log, so a start that fails silently failed for space. */
const HARDLY_ANY_SPACE_BYTES = 8 * 1024 * 1024;

export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** For `.catch()`: a file that is not there is an ordinary answer. */
export function absentIsUndefined(error: unknown): undefined {
  if (errorCode(error) === "ENOENT") return undefined;
  throw error;
}

const diskFull = (path: string) =>
  `The disk that holds ${path} is full. Free some space and start again; nothing that was acknowledged is lost.`;
const readOnly = (path: string) =>
  `${path} lies on a read-only file system. Set MILLRACE_DATA_DIR to a folder that can be written.`;
const forbidden = (path: string) =>
  `Millrace may not write to ${path}: permission denied. Give the user that runs Millrace access to it, or set MILLRACE_DATA_DIR to another folder.`;
const fileInTheWay = (path: string) =>
  `${path} cannot be a folder: a file is in the way. Move it, or set MILLRACE_DATA_DIR to another folder.`;
const mountPoint = (path: string) =>
  `Something below ${path} is a mount point, which cannot be renamed. Mount the disk one level higher, at the data directory.`;

const FILE_TROUBLE = new Map([
  ["ENOSPC", diskFull],
  ["EDQUOT", diskFull],
  ["EROFS", readOnly],
  ["EACCES", forbidden],
  ["EPERM", forbidden],
  ["ENOTDIR", fileInTheWay],
  ["EEXIST", fileInTheWay],
  ["EBUSY", mountPoint],
]);

/** Runs file operations below `path` and turns their failures into sentences about it. */
export async function explained<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const sentence = FILE_TROUBLE.get(errorCode(error) ?? "");
    throw sentence === undefined ? error : new OperatorError(sentence(path));
  }
}

export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/** The first pattern that matches the words of Postgres wins, so the narrower ones come first. */
const CAUSES: readonly (readonly [RegExp, (dataDir: string) => string])[] = [
  [
    /shared memory segment.*no space left on device/i,
    () => "The shared memory of this machine is used up. Give the container a larger /dev/shm, or end other databases.",
  ],
  [/no space left on device|disk quota exceeded/i, diskFull],
  [/read-only file system/i, readOnly],
  [
    /could not look up effective user ID (\d+)/,
    () =>
      "Postgres needs its user to have an entry in /etc/passwd, and this one has none. Run Millrace as a user that is listed there, or set DATABASE_URL.",
  ],
  [
    /error while loading shared libraries|Library not loaded/,
    () => "A system library that Postgres needs is missing. Install it, or set DATABASE_URL to a Postgres of your own.",
  ],
  [
    /pre-existing shared memory block|lock file ".*" already exists/,
    (dataDir) => `Processes of an earlier Postgres still use ${dataDir}. End them and start again.`,
  ],
  [
    /permission denied|operation not permitted/i,
    (dataDir) => `Postgres may not read or write its files below ${dataDir}. Give them back to the user that runs it.`,
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

/** What to tell when initdb or Postgres failed; `words` is what it wrote before it ended. */
export async function postgresTrouble(what: string, words: string, dataDir: string): Promise<OperatorError> {
  const cause = CAUSES.find(([pattern]) => pattern.test(words));
  const lines = lastLines(words);
  const quoted = lines === "" ? "" : `\nThe last words of Postgres:\n${lines}`;
  if (cause !== undefined) return new OperatorError(`${what} ${cause[1](dataDir)}${quoted}`);
  // On a full disk the log cannot be written either, so the words are missing just when they are needed.
  if ((await freeBytes(dataDir)) < HARDLY_ANY_SPACE_BYTES) {
    return new OperatorError(`${what} ${diskFull(dataDir)}${quoted}`);
  }
  return new OperatorError(`${what}${quoted === "" ? " It left no message." : quoted}`);
}

const LINES_SHOWN = 8;

export function lastLines(text: string): string {
  return text.trimEnd().split("\n").slice(-LINES_SHOWN).join("\n");
}
