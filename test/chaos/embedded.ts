/** Direct access to the embedded Postgres of a server. */
import { readFile } from "node:fs/promises";
import { SUPERUSER } from "../../src/kernel/embedded-postgres/cluster.ts";
import type { EmbeddedPostgres } from "../../src/kernel/embedded-postgres/index.ts";
import { DATABASE } from "../../src/kernel/embedded-postgres/lock.ts";
import { postmasterPid, postmasterPidFile, query } from "../../src/kernel/embedded-postgres/testing.fixture.ts";

/** Read from the pid file of Postgres. */
export async function connectionOf(dataDir: string): Promise<EmbeddedPostgres["connection"]> {
  const [, , , port = "", host = ""] = (await readFile(postmasterPidFile(dataDir), "utf8")).split("\n");
  return { host, port: Number(port), user: SUPERUSER, database: DATABASE };
}

/** Every process of that server. */
export async function processesOf(dataDir: string): Promise<number[]> {
  const connection = await connectionOf(dataDir);
  const rows = await query<{ pid: number }>(connection, "select pid from pg_stat_activity");
  return [postmasterPid(dataDir), ...rows.map(({ pid }) => pid)];
}
