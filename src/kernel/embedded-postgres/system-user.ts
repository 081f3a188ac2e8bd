/**
 * The user that runs Postgres. Postgres refuses root, so a Millrace started as root runs it as an unprivileged user; this file
 * chooses that user and checks what it may access.
 */

import type { Stats } from "node:fs";
import { lchown, lstat, readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { absentIsUndefined } from "./failure.ts";

export interface SystemUser {
  name: string;
  uid: number;
  gid: number;
}

const READ = 0o4;
const TRAVERSE = 0o1;

/** The user for Postgres when Millrace runs as root: the owner of an existing cluster, else `nobody`. Undefined: the same user. */
export async function chooseUser(clusterDir: string): Promise<SystemUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const users = await readUsers();
  const cluster = await stat(clusterDir).catch(absentIsUndefined);
  if (cluster !== undefined && cluster.uid !== 0) {
    const name = users.find((user) => user.uid === cluster.uid)?.name ?? `user ${cluster.uid}`;
    return { name, uid: cluster.uid, gid: cluster.gid };
  }
  return users.find((user) => user.name === "nobody") ?? { name: "nobody", uid: 65534, gid: 65534 };
}

export async function userName(uid: number): Promise<string> {
  return (await readUsers()).find((user) => user.uid === uid)?.name ?? `user ${uid}`;
}

async function readUsers(): Promise<SystemUser[]> {
  const passwd = (await readFile("/etc/passwd", "utf8").catch(absentIsUndefined)) ?? "";
  return passwd.split("\n").flatMap((line) => {
    const [name, , uid, gid] = line.split(":");
    // On macOS nobody is -2, which file system calls need unsigned.
    return name && uid && gid ? [{ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }] : [];
  });
}

/** The uid and gid options of `spawn`, as signed 32-bit numbers. `spawn` also drops root's other groups. */
export function spawnIdentity(user: SystemUser | undefined): { uid?: number; gid?: number } {
  return user === undefined ? {} : { uid: user.uid | 0, gid: user.gid | 0 };
}

export function mayTraverse(stats: Stats, user: SystemUser): boolean {
  return allows(stats, user, TRAVERSE);
}

export function mayRead(stats: Stats, user: SystemUser): boolean {
  return allows(stats, user, stats.isDirectory() ? READ | TRAVERSE : READ);
}

function allows(stats: Stats, user: SystemUser, bits: number): boolean {
  const shift = stats.uid === user.uid ? 6 : stats.gid === user.gid ? 3 : 0;
  return ((stats.mode >> shift) & bits) === bits;
}

/** The first existing directory on `path`, including the last, that `user` cannot traverse. */
export async function firstClosedDirectory(path: string, user: SystemUser): Promise<string | undefined> {
  const ancestors = [path];
  for (let at = path; dirname(at) !== at; at = dirname(at)) ancestors.unshift(dirname(at));
  for (const directory of ancestors) {
    const stats = await stat(directory).catch(absentIsUndefined);
    if (stats === undefined) return undefined;
    if (!mayTraverse(stats, user)) return directory;
  }
  return undefined;
}

/** Changes the owner of a tree, its root last, so that an interrupted change is detected and repeated. */
export async function chownTree(path: string, user: SystemUser): Promise<void> {
  if ((await lstat(path)).isDirectory()) {
    for (const entry of await readdir(path)) await chownTree(join(path, entry), user);
  }
  await lchown(path, user.uid, user.gid);
}
