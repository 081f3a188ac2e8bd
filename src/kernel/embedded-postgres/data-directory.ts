/**
 * The data directory of Millrace: its default path, and its creation, so that the user that runs Postgres can reach `postgres/`
 * but not the secrets beside it.
 */

import { createHash } from "node:crypto";
import { access, chmod, constants, mkdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { OperatorError } from "../errors.ts";
import { absentIsUndefined, explained } from "./failure.ts";
import { chooseUser, firstClosedDirectory, mayTraverse, type SystemUser } from "./system-user.ts";

const DEFAULT_NAME = ".millrace";
const SYSTEM_DIR = "/var/lib/millrace";
export const CLUSTER_NAME = "postgres";

/**
 * The data directory: the configured one, else `.millrace` under `cwd`. For root, if the user of Postgres cannot reach `cwd`, the
 * default is a folder of /var/lib/millrace, and `notice` is a sentence to print.
 */
export async function resolveDataDir(
  configured: string | undefined,
  cwd: string,
  systemDir = SYSTEM_DIR,
): Promise<{ dataDir: string; notice?: string }> {
  if (configured !== undefined) return { dataDir: resolve(cwd, configured) };
  const local = join(cwd, DEFAULT_NAME);
  const user = await chooseUser(join(local, CLUSTER_NAME));
  // Existing data are always used, even if Postgres cannot reach them: the start then fails with a message.
  if (user === undefined || (await exists(join(local, CLUSTER_NAME)))) return { dataDir: local };

  const moved = join(systemDir, await placeName(cwd));
  const closed = await firstClosedDirectory(cwd, user);
  if (closed !== undefined) {
    const notice = `Postgres runs as ${user.name} here, which cannot enter ${closed}, so the data are in ${moved}. Set MILLRACE_DATA_DIR to choose another folder.`;
    return { dataDir: moved, notice };
  }
  if (await exists(join(moved, CLUSTER_NAME))) {
    return { dataDir: moved, notice: `The data of this folder are in ${moved}, since an earlier start.` };
  }
  return { dataDir: local };
}

/** Readable, and different for two checkouts with the same name. */
async function placeName(cwd: string): Promise<string> {
  const real = await realpath(cwd);
  const suffix = createHash("sha256").update(real).digest("hex").slice(0, 8);
  return `${basename(real) || "root"}-${suffix}`;
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(absentIsUndefined)) !== undefined;
}

/** Creates the data directory if it is missing, and returns its real path. */
export async function prepareDataDir(dataDir: string, user: SystemUser | undefined): Promise<string> {
  return explained(dataDir, async () => {
    if (user === undefined) {
      await mkdir(dataDir, { recursive: true, mode: 0o700 });
      await access(dataDir, constants.W_OK | constants.X_OK);
    } else {
      await refuseUnreachable(dataDir, user);
      await makeTraversable(dataDir, user);
    }
    return realpath(dataDir);
  });
}

async function refuseUnreachable(dataDir: string, user: SystemUser): Promise<void> {
  const closed = await firstClosedDirectory(dirname(dataDir), user);
  if (closed === undefined) return;
  throw new OperatorError(
    `Postgres refuses to run as root, so it runs as ${user.name}, and ${user.name} cannot enter ${closed} to reach the data directory ${dataDir}. ` +
      `Set MILLRACE_DATA_DIR to a folder such as ${SYSTEM_DIR}, open ${closed} with chmod o+x, or run Millrace as an ordinary user.`,
  );
}

/** Other users may traverse the directory but not list it; the secrets in it have private modes. */
async function makeTraversable(dataDir: string, user: SystemUser): Promise<void> {
  const firstCreated = await mkdir(dataDir, { recursive: true });
  if (firstCreated !== undefined) {
    // Under a strict umask, created parents are not traversable either.
    for (let created = dataDir; created !== dirname(firstCreated); created = dirname(created))
      await chmod(created, 0o711);
    return;
  }
  const stats = await stat(dataDir);
  if (!mayTraverse(stats, user)) await chmod(dataDir, (stats.mode & 0o777) | 0o011);
}
