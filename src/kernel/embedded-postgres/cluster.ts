/** The database cluster on disk, `<dataDir>/postgres`: created atomically, and checked before a server starts on it. */

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmod,
  chown,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { OperatorError } from "../errors.ts";
import { syncDirectory } from "../sync-directory.ts";
import { BINARIES_PREFIX, type Binaries, majorVersion } from "./binaries.ts";
import { absentIsUndefined, errorCode, explained, freeBytes, postgresTrouble } from "./failure.ts";
import { OWNER_FILE } from "./owner.ts";
import { chownTree, type SystemUser, spawnIdentity, userName } from "./system-user.ts";

/** How clients connect: a unix socket in a private folder, or loopback with a password where there are no unix sockets. */
export type Transport = "socket" | "loopback";

/** Constant while this process runs. */
export interface Cluster {
  /** Real path of the data directory of Millrace. */
  dataDir: string;
  /** `<dataDir>/postgres` */
  dir: string;
  logFile: string;
  binaries: Binaries;
  /** The user that runs Postgres; undefined: the user that runs Millrace. */
  runAs: SystemUser | undefined;
  transport: Transport;
  settings: Record<string, string>;
  fingerprint: string;
}

export const SUPERUSER = "millrace";
export const STAGING_PREFIX = "postgres.new-";
const PASSWORD_FILE = "millrace.password";
/** A new cluster takes 40 MB, and its WAL soon as much again. */
const FREE_BYTES_MIN = 200 * 1024 * 1024;

/** Whether there is a cluster. Throws an OperatorError if it must not be started. */
export async function clusterExists(cluster: Cluster): Promise<boolean> {
  return explained(cluster.dir, async () => {
    const stats = await stat(cluster.dir).catch(absentIsUndefined);
    if (stats === undefined) return false;
    await refuseOtherOwner(cluster, stats.uid);
    const entries = await readdir(cluster.dir);
    if (entries.length === 0) return false;
    if (!entries.includes("PG_VERSION")) {
      throw new OperatorError(
        `${cluster.dir} contains something that is not a database. Move it, or set MILLRACE_DATA_DIR to another folder.`,
      );
    }
    const found = (await readFile(join(cluster.dir, "PG_VERSION"), "utf8")).trim();
    const ours = majorVersion(cluster.binaries);
    if (found !== ours) {
      throw new OperatorError(
        `The database in ${cluster.dir} was created by Postgres ${found}, and this Millrace includes Postgres ${ours}. ` +
          `Dump it with Postgres ${found} (pg_dumpall) and restore it into a new data directory, or run it yourself and set DATABASE_URL.`,
      );
    }
    return true;
  });
}

async function refuseOtherOwner(cluster: Cluster, uid: number): Promise<void> {
  const own = process.getuid?.();
  if (cluster.runAs !== undefined || own === undefined || own === uid) return;
  const owner = await userName(uid);
  throw new OperatorError(
    `The database in ${cluster.dir} belongs to ${owner}, and Millrace runs as ${await userName(own)}. Run Millrace as ${owner}, or change the owner of the folder with chown -R.`,
  );
}

/** Postgres requires that its user owns its folder and that others have no access; copies and restores often break that. */
export async function repairOwnership(cluster: Cluster): Promise<void> {
  await explained(cluster.dir, async () => {
    const stats = await stat(cluster.dir);
    if (cluster.runAs !== undefined && stats.uid !== cluster.runAs.uid) {
      await chownTree(await realpath(cluster.dir), cluster.runAs);
    }
    if ((stats.mode & 0o077) !== 0) await chmod(cluster.dir, 0o700);
  });
}

/**
 * Creates the cluster in a temporary folder and renames it, so that a killed start leaves nothing that looks like a cluster.
 * Returns false if another process was faster; its cluster is used then.
 */
export async function createCluster(cluster: Cluster): Promise<boolean> {
  return explained(cluster.dataDir, async () => {
    const free = await freeBytes(cluster.dataDir);
    if (free < FREE_BYTES_MIN) {
      throw new OperatorError(
        `The disk that holds ${cluster.dataDir} has ${toMegabytes(free)} MB free, and a new database needs ${toMegabytes(FREE_BYTES_MIN)} MB. ` +
          `Free some space, or set MILLRACE_DATA_DIR to another disk.`,
      );
    }
    const staging = await mkdtemp(join(cluster.dataDir, STAGING_PREFIX));
    try {
      await initialise(cluster, staging);
      // Not every system can rename over an empty folder.
      await rmdir(cluster.dir).catch(() => undefined);
      await rename(join(staging, "cluster"), cluster.dir);
      await syncDirectory(cluster.dataDir);
      return true;
    } catch (error) {
      if (await clusterExists(cluster)) return false;
      throw error;
    } finally {
      await rm(staging, { recursive: true, force: true });
    }
  });
}

async function initialise(cluster: Cluster, staging: string): Promise<void> {
  const passwordFile = join(staging, PASSWORD_FILE);
  await writeFile(passwordFile, randomBytes(24).toString("base64url"), { mode: 0o600 });
  if (cluster.runAs !== undefined) {
    await chown(passwordFile, cluster.runAs.uid, cluster.runAs.gid);
    await chown(staging, cluster.runAs.uid, cluster.runAs.gid);
  }
  await runInitdb(cluster, [
    `--pgdata=${join(staging, "cluster")}`,
    `--username=${SUPERUSER}`,
    `--pwfile=${passwordFile}`,
    // Over a socket, access.ts replaces this rule.
    ...(cluster.transport === "socket" ? ["--auth-local=peer", "--auth-host=reject"] : ["--auth=scram-sha-256"]),
    "--encoding=UTF8",
    // Sorts by code point, so that no index depends on the version of a system library.
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--data-checksums",
    "--no-instructions",
  ]);
  await rename(passwordFile, join(staging, "cluster", PASSWORD_FILE));
}

async function runInitdb(cluster: Cluster, args: string[]): Promise<void> {
  const child = spawn(join(cluster.binaries.dir, "initdb"), args, {
    ...toolOptions(cluster),
    stdio: ["ignore", "ignore", "pipe"],
  });
  const [output] = await Promise.all([text(child.stderr), once(child, "exit")]).catch((error: unknown) => {
    throw unrunnable(error, cluster);
  });
  if (child.exitCode === 0) return;
  const how = child.signalCode === null ? "failed" : `was ended by ${child.signalCode}`;
  throw await postgresTrouble(`Creating the database ${how}.`, output, cluster.dataDir);
}

/** Runs a Postgres program as its user, in a directory that the user can enter, without the secrets of our environment. */
export function toolOptions(cluster: Cluster): {
  uid?: number;
  gid?: number;
  cwd: string;
  env: NodeJS.ProcessEnv;
  windowsHide: true;
} {
  const { PATH, SystemRoot, TEMP } = process.env;
  return {
    ...spawnIdentity(cluster.runAs),
    cwd: cluster.binaries.dir,
    env: { PATH, SystemRoot, TEMP, LC_ALL: "C", TZ: "UTC" },
    windowsHide: true,
  };
}

/** For a program that could not be started. */
export function unrunnable(error: unknown, cluster: Cluster): unknown {
  const code = errorCode(error);
  if (code === undefined) return error;
  return new OperatorError(
    `The Postgres programs in ${cluster.binaries.dir} do not run on this system (${code}). They need glibc; set DATABASE_URL to your own Postgres instead.`,
  );
}

export async function readPassword(cluster: Cluster): Promise<string | undefined> {
  if (cluster.transport === "socket") return undefined;
  return readFile(join(cluster.dir, PASSWORD_FILE), "utf8");
}

/** Removes files of killed starts and older versions. Only the holder of the lock may call this. */
export async function removeLeftovers(cluster: Cluster): Promise<void> {
  for (const entry of await readdir(cluster.dataDir)) {
    const staged = entry.startsWith(STAGING_PREFIX) || entry.startsWith(`${OWNER_FILE}.`);
    const oldCopy =
      entry.startsWith(BINARIES_PREFIX) && !cluster.binaries.dir.startsWith(join(cluster.dataDir, entry, "native"));
    // A concurrent start may still be writing there; the next start removes the rest.
    if (staged || oldCopy)
      await rm(join(cluster.dataDir, entry), { recursive: true, force: true }).catch(() => undefined);
  }
}

function toMegabytes(bytes: number): number {
  return Math.floor(bytes / (1024 * 1024));
}
