/** Who may connect to the embedded server: the user that runs Millrace, and no process of the user that runs Postgres. */

import { execFileSync } from "node:child_process";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { isRoot, query, start, stoppedDataDir } from "./testing.fixture.ts";

const NOBODY = { uid: 65534, gid: 65534 };

/** Connects as the superuser from a process of another system user, and answers what happened. */
function connectAs(user: { uid: number; gid: number }, connection: object): string {
  const pg = fileURLToPath(import.meta.resolve("pg"));
  const script = `
    const { Client } = (await import(${JSON.stringify(pg)})).default;
    const client = new Client(${JSON.stringify(connection)});
    await client.connect().then(() => client.query("select 1")).then(() => "connected", (error) => error.message).then(console.log);
    await client.end().catch(() => {});`;
  return execFileSync(process.execPath, ["--input-type=module", "-e", script], {
    ...user,
    cwd: "/",
    encoding: "utf8",
  }).trim();
}

describe.skipIf(!isRoot)("a Millrace that root starts", () => {
  test("runs Postgres as nobody, and no other process of nobody can connect", async () => {
    const { connection } = await start(await stoppedDataDir());
    expect(await query(connection, "select 1 as one")).toEqual([{ one: 1 }]);
    expect(connectAs(NOBODY, connection)).toContain('Peer authentication failed for user "millrace"');
  });

  test("ignores a rule in the cluster that trusts everyone, as earlier versions wrote", async () => {
    const dataDir = await stoppedDataDir();
    await writeFile(join(dataDir, "postgres", "pg_hba.conf"), "local all all trust\n");
    const { connection } = await start(dataDir);
    expect(connectAs(NOBODY, connection)).toContain("Peer authentication failed");
  });
});

test("the files are readable by the user of Postgres even under a strict umask", async () => {
  const before = process.umask(0o077);
  onTestFinished(() => void process.umask(before));
  const dataDir = await stoppedDataDir();
  const { connection } = await start(dataDir);
  expect(await query(connection, "select 1 as one")).toEqual([{ one: 1 }]);
  for (const name of ["postgres.hba.conf", "postgres.ident.conf"]) {
    expect((await stat(join(dataDir, name))).mode & 0o777).toBe(0o644);
  }
});
