/**
 * Where the server listens. A unix socket is in a new private folder with a short path and a random name: socket paths are
 * limited to about a hundred bytes, and no other user can have prepared such a folder. Postgres writes the path to its pid
 * file, where the next process finds it.
 */

import { once } from "node:events";
import { chown, lstat, mkdir, mkdtemp, readFile, rmdir, stat, unlink } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { OperatorError } from "../errors.ts";
import type { Transport } from "./cluster.ts";
import { absentIsUndefined, errorCode, explained } from "./failure.ts";
import { isAlive } from "./processes.ts";
import { firstClosedDirectory, type SystemUser } from "./system-user.ts";

export interface Endpoint {
  transport: Transport;
  /** The folder of the socket, or 127.0.0.1. */
  host: string;
  port: number;
}

export function isSame(a: Endpoint, b: Endpoint): boolean {
  return a.host === b.host && a.port === b.port;
}

/** Only a part of the name of the socket file. */
const SOCKET_PORT = 5432;
/** 104 bytes with the final zero on macOS, 108 on Linux. */
const SOCKET_PATH_BYTES_MAX = 103;
const FOLDER_PREFIX = "millrace-";
const RANDOM_LETTERS = 6;

export async function newEndpoint(transport: Transport, user: SystemUser | undefined): Promise<Endpoint> {
  if (transport === "loopback") return { transport, host: "127.0.0.1", port: await freePort() };
  const parent = await chooseParent(user);
  return explained(parent, async () => {
    const host = await mkdtemp(join(parent, FOLDER_PREFIX));
    if (user !== undefined) await chown(host, user.uid, user.gid);
    return { transport, host, port: SOCKET_PORT };
  });
}

/** Prepares a known endpoint for a restarted server. */
export async function restoreEndpoint(endpoint: Endpoint, user: SystemUser | undefined): Promise<void> {
  if (endpoint.transport === "loopback") return;
  await explained(endpoint.host, async () => {
    try {
      await mkdir(endpoint.host, { mode: 0o700 });
      if (user !== undefined) await chown(endpoint.host, user.uid, user.gid);
    } catch (error) {
      if (errorCode(error) !== "EEXIST") throw error;
      if (!(await isOurs(endpoint.host, user))) {
        throw new OperatorError(
          `${endpoint.host} was created by another user while Postgres was down. Remove it and start Millrace again.`,
        );
      }
      await removeSocketFiles(endpoint.host);
    }
  });
}

/** A cleaner of /tmp may remove the socket of a running server. */
export async function isSocketMissing(endpoint: Endpoint): Promise<boolean> {
  if (endpoint.transport === "loopback") return false;
  return (await lstat(socketPath(endpoint.host)).catch(absentIsUndefined)) === undefined;
}

/**
 * Removes a folder of `newEndpoint` that no server uses. Its name may come from the pid file of a copied data directory, which
 * names the socket of the original, so owner, place and use are checked first.
 */
export async function removeEndpoint(endpoint: Endpoint, user: SystemUser | undefined): Promise<void> {
  const { transport, host } = endpoint;
  if (transport === "loopback" || !basename(host).startsWith(FOLDER_PREFIX)) return;
  if (!parents().includes(dirname(host)) || !(await isOurs(host, user)) || (await isInUse(host))) return;
  await removeSocketFiles(host);
  await rmdir(host).catch(() => undefined);
}

async function removeSocketFiles(folder: string): Promise<void> {
  await unlink(socketPath(folder)).catch(absentIsUndefined);
  await unlink(`${socketPath(folder)}.lock`).catch(absentIsUndefined);
}

async function isOurs(folder: string, user: SystemUser | undefined): Promise<boolean> {
  const stats = await lstat(folder).catch(absentIsUndefined);
  const uid = user?.uid ?? process.getuid?.();
  return stats !== undefined && stats.isDirectory() && stats.uid === uid && (stats.mode & 0o077) === 0;
}

/** Postgres writes its pid to a lock file beside its socket. */
async function isInUse(folder: string): Promise<boolean> {
  const lock = await readFile(`${socketPath(folder)}.lock`, "utf8").catch(absentIsUndefined);
  const pid = Number.parseInt(lock ?? "", 10);
  return pid > 1 && isAlive(pid);
}

function socketPath(folder: string): string {
  return join(folder, `.s.PGSQL.${SOCKET_PORT}`);
}

function parents(): string[] {
  return [tmpdir(), "/tmp"];
}

async function chooseParent(user: SystemUser | undefined): Promise<string> {
  for (const parent of parents()) {
    const longest = socketPath(join(parent, FOLDER_PREFIX + "x".repeat(RANDOM_LETTERS)));
    if (Buffer.byteLength(longest) > SOCKET_PATH_BYTES_MAX) continue;
    const stats = await stat(parent).catch(absentIsUndefined);
    if (stats === undefined) continue;
    // Without the sticky bit any user could replace the folder.
    const replaceable = (stats.mode & 0o002) !== 0 && (stats.mode & 0o1000) === 0;
    if (replaceable || (user !== undefined && (await firstClosedDirectory(parent, user)) !== undefined)) continue;
    return parent;
  }
  throw new OperatorError(
    `There is no folder for the socket of Postgres: ${parents().join(" and ")} are missing, too long, not accessible to the user that runs Postgres, or writable by all without the sticky bit. Set TMPDIR to a short path.`,
  );
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("a TCP server has a numeric port");
  return address.port;
}

/** Makes the server listen only there. */
export function endpointSettings(endpoint: Endpoint): Record<string, string> {
  const port = String(endpoint.port);
  return endpoint.transport === "loopback"
    ? { listen_addresses: endpoint.host, port, unix_socket_directories: "" }
    : { listen_addresses: "", port, unix_socket_directories: `"${endpoint.host}"`, unix_socket_permissions: "0700" };
}
