/**
 * Who may connect through the socket: only the system user that runs Millrace, as the operating system reports it (`peer`),
 * in any role.
 * The private folder of the socket does not suffice, because a Millrace started by root runs Postgres as `nobody`, and every
 * process of `nobody` can enter that folder. The files are beside the cluster, where only the user of Millrace can write.
 */

import { chmod, readFile, rename, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { OperatorError } from "../errors.ts";
import { type Cluster, STAGING_PREFIX, type Transport } from "./cluster.ts";
import { absentIsUndefined, explained } from "./failure.ts";

const HBA_FILE = "postgres.hba.conf";
const IDENT_FILE = "postgres.ident.conf";
const MAP = "millrace";

/** Loopback has no peer; its rule, a password, is in the cluster's own file. */
export function accessSettings(dataDir: string, transport: Transport): Record<string, string> {
  return transport === "socket" ? { hba_file: join(dataDir, HBA_FILE), ident_file: join(dataDir, IDENT_FILE) } : {};
}

/** Called at each launch, so that older clusters get the same rule. The files hold no secret. */
export async function writeAccess({ dataDir, transport }: Cluster): Promise<void> {
  if (transport !== "socket") return;
  await explained(dataDir, async () => {
    await writeIfChanged(dataDir, HBA_FILE, `local all all peer map=${MAP}\n`);
    await writeIfChanged(dataDir, IDENT_FILE, `${MAP} "${ownName()}" all\n`);
  });
}

async function writeIfChanged(dataDir: string, name: string, content: string): Promise<void> {
  const path = join(dataDir, name);
  if ((await readFile(path, "utf8").catch(absentIsUndefined)) === content) return;
  // Renamed, so that Postgres never reads half of it.
  const staged = join(dataDir, `${STAGING_PREFIX}${name}.${process.pid}`);
  await writeFile(staged, content);
  await chmod(staged, 0o644); // A strict umask would hide it from Postgres.
  await rename(staged, path);
}

function ownName(): string {
  try {
    return userInfo().username;
  } catch {
    throw new OperatorError(
      `The user ${process.getuid?.()}, which runs Millrace, has no name on this system, and Postgres needs one. Add it to /etc/passwd, or set DATABASE_URL to your own Postgres.`,
    );
  }
}
