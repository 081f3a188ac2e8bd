/**
 * The data directory of Millrace: where it lies by default, and how it is made so that the user that runs Postgres gets
 * through to `postgres/` while the secrets beside it stay private.
 */

import { createHash } from "node:crypto";
import { access, chmod, constants, mkdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { OperatorError } from "../errors.ts";
import { absentIsUndefined, explained } from "./failure.ts";
import { chooseUser, firstClosedDirectory, mayTraverse, type SystemUser } from "./system-user.ts";

const DEFAULT_NAME = ".millrace";
const SYSTEM_PLACE = "/var/lib/millrace";
export const CLUSTER_NAME = "postgres";

/**
 * The data directory to use: the configured one, else `.millrace` under `cwd`. Run by root in a place that the user of
 * Postgres cannot reach, the default moves to /var/lib/millrace; `notice` is then the sentence to print.
 */
export async function resolveDataDir(
  configured: string | undefined,
  cwd: string,
  systemPlace = SYSTEM_PLACE,
): Promise<{ dataDir: string; notice?: string }> {
  if (configured !== undefined) return { dataDir: resolve(cwd, configured) };
  const local = join(cwd, DEFAULT_NAME);
  const user = await chooseUser(join(local, CLUSTER_NAME));
  // Data that exist are never left behind, even where Postgres cannot reach them: the start will say so.
  if (user === undefined || (await exists(join(local, CLUSTER_NAME)))) return { dataDir: local };

  const moved = join(systemPlace, await placeName(cwd));
  const closed = await firstClosedDirectory(cwd, user);
  if (closed !== undefined) {
    const notice = `Postgres runs as ${user.name} here, which cannot enter ${closed}, so the data are kept in ${moved}. Set MILLRACE_DATA_DIR to choose another place.`;
    return { dataDir: moved, notice };
  }
  if (await exists(join(moved, CLUSTER_NAME))) {
    return { dataDir: moved, notice: `The data of this folder are kept in ${moved} since an earlier start.` };
  }
  return { dataDir: local };
}

/** Readable, and different for two checkouts of the same name. */
async function placeName(cwd: string): Promise<string> {
  const real = await realpath(cwd);
  const suffix = createHash("sha256").update(real).digest("hex").slice(0, 8);
  return `${basename(real) || "root"}-${suffix}`;
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(absentIsUndefined)) !== undefined;
}

/** Makes the data directory if need be and returns its real path. */
export async function prepareDataDir(dataDir: string, user: SystemUser | undefined): Promise<string> {
  return explained(dataDir, async () => {
    if (user === undefined) {
      await mkdir(dataDir, { recursive: true, mode: 0o700 });
      await access(dataDir, constants.W_OK | constants.X_OK);
    } else {
      await refuseUnreachable(dataDir, user);
      await makePassable(dataDir, user);
    }
    return realpath(dataDir);
  });
}

async function refuseUnreachable(dataDir: string, user: SystemUser): Promise<void> {
  const closed = await firstClosedDirectory(dirname(dataDir), user);
  if (closed === undefined) return;
  throw new OperatorError(
    `Postgres refuses to run as root, so it runs as ${user.name}, and ${user.name} cannot enter ${closed} to reach the data directory ${dataDir}. ` +
      `Set MILLRACE_DATA_DIR to a place like ${SYSTEM_PLACE}, open ${closed} with chmod o+x, or run Millrace as an ordinary user.`,
  );
}

/** Others may pass through, not look around: the files of Millrace in it have their own, closed modes. */
async function makePassable(dataDir: string, user: SystemUser): Promise<void> {
  const firstMade = await mkdir(dataDir, { recursive: true });
  if (firstMade !== undefined) {
    // Under a strict umask the parents that were made on the way are closed too.
    for (let made = dataDir; made !== dirname(firstMade); made = dirname(made)) await chmod(made, 0o711);
    return;
  }
  const stats = await stat(dataDir);
  if (!mayTraverse(stats, user)) await chmod(dataDir, (stats.mode & 0o777) | 0o011);
}
