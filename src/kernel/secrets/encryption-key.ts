/**
 * The key that secrets are encrypted under: MILLRACE_SECRET_KEY, or a file that the first start creates in the data
 * directory, so that a new installation can store secrets without any set-up.
 */

import { randomBytes } from "node:crypto";
import { link, open, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { OperatorError } from "../errors.ts";
import { syncDirectory } from "../sync-directory.ts";
import { messageOf } from "../text/message-of.ts";

export const SECRET_KEY_BYTES = 32;

/** Decodes 64 hex digits, or the base64 of 32 bytes (either alphabet, padded or not). */
export function parseSecretKey(text: string): Buffer | undefined {
  if (/^[\da-f]{64}$/i.test(text)) return Buffer.from(text, "hex");
  if (/^[\w+/-]{43}=?$/.test(text)) return Buffer.from(text, "base64");
  return undefined;
}

export interface SecretKeySources {
  /** MILLRACE_SECRET_KEY. */
  configured: Buffer | undefined;
  /**
   * Where the embedded Postgres keeps its data. Undefined with DATABASE_URL: several processes share that database, and
   * the others could not open what one of them sealed under a key of its own.
   */
  dataDir: string | undefined;
}

/** The configured key, else the one in the data directory; undefined where secrets cannot be used. */
export async function loadSecretKey({ configured, dataDir }: SecretKeySources): Promise<Buffer | undefined> {
  if (configured || dataDir === undefined) return configured;
  const path = join(dataDir, "secret.key");
  try {
    return (await readKeyFile(path)) ?? (await makeKeyFile(path));
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    const reason = messageOf(error);
    throw new OperatorError(
      `The secret key file ${path} cannot be used (${reason}). Make its directory readable and writable for this user, ` +
        "or set MILLRACE_SECRET_KEY.",
    );
  }
}

async function readKeyFile(path: string): Promise<Buffer | undefined> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (!file) return undefined;
  try {
    const { mode } = await file.stat();
    // Windows has no such bits and reports all of them as set.
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new OperatorError(`Other users of this machine can read ${path}. Run: chmod 600 ${path}`);
    }
    const key = parseSecretKey((await file.readFile("utf8")).trim());
    if (key) return key;
    throw new OperatorError(
      `${path} does not hold a secret key (64 hex digits). Restore it from a backup: a new key cannot open what was ` +
        "sealed under the old one.",
    );
  } finally {
    await file.close();
  }
}

/** Two first starts may race. The file is complete before it gets its name, so one of them wins and neither reads half a file. */
async function makeKeyFile(path: string): Promise<Buffer | undefined> {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    const text = `${randomBytes(SECRET_KEY_BYTES).toString("hex")}\n`;
    await writeFile(draft, text, { flag: "wx", mode: 0o600, flush: true });
    await link(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  // Encrypted rows are durable, so the key file must be too.
  await syncDirectory(dirname(path));
  return readKeyFile(path);
}
