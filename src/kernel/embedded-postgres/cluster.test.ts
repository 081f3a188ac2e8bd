/** The cluster on disk: atomic creation, and a message for every state in which it cannot be used. */

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { chmod, mkdir, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { until } from "../../../test/until.ts";
import { firstClosedDirectory } from "./system-user.ts";
import {
  isRoot,
  kill,
  namesIn,
  query,
  readyMillrace,
  skipped,
  smallDisk,
  spawnMillrace,
  start,
  stoppedDataDir,
  temporaryFolder,
  whyNoMount,
} from "./testing.fixture.ts";

const NOBODY = { name: "nobody", uid: 65534, gid: 65534 };

const noRoot = skipped(isRoot ? undefined : "the tests do not run as root", "files of root and of other users");
const noOtherUser = skipped(await whyNoOtherUser(), "Millrace as an ordinary user beside root");
const noMount = skipped(whyNoMount(), "full and read-only disks");

async function whyNoOtherUser(): Promise<string | undefined> {
  if (!isRoot) return "the tests do not run as root";
  const closed = await firstClosedDirectory(fileURLToPath(new URL(".", import.meta.url)), NOBODY);
  return closed && `other users cannot read the project below ${closed}`;
}

describe("a first start that is killed", () => {
  test("during initdb leaves nothing that looks like a cluster", async () => {
    const dataDir = join(await temporaryFolder(), "data");
    mkdirSync(dataDir);
    const { process: child } = spawnMillrace(dataDir);
    await until(() => namesIn(dataDir).some((name) => name.startsWith("postgres.new-")), "initdb to begin");
    await kill(child);
    expect(namesIn(dataDir)).not.toContain("postgres");

    const postgres = await start(dataDir);
    expect(postgres.origin).toBe("created");
    expect(namesIn(dataDir)).toEqual([
      "millrace.pid",
      "postgres",
      "postgres.hba.conf",
      "postgres.ident.conf",
      "postgres.log",
    ]);
  });

  test("before it has created the database is completed by the next", async () => {
    const dataDir = await stoppedDataDir();
    const first = await start(dataDir);
    await query({ ...first.connection, database: "postgres" }, "drop database millrace");
    await first.stop();
    const second = await start(dataDir);
    expect(await query(second.connection, "select 1 as one")).toEqual([{ one: 1 }]);
  });
});

describe("a data directory that cannot be used is refused with a message", () => {
  test("when another Postgres version made it", async () => {
    const dataDir = await stoppedDataDir();
    await writeFile(join(dataDir, "postgres", "PG_VERSION"), "15\n");
    await expect(start(dataDir)).rejects.toThrow(
      `The database in ${dataDir}/postgres was created by Postgres 15, and this Millrace includes Postgres 18. Dump it with Postgres 15`,
    );
  });

  test("when the folder contains something else, which is not changed", async () => {
    const dataDir = await temporaryFolder();
    await mkdir(join(dataDir, "postgres"));
    await writeFile(join(dataDir, "postgres", "thesis.txt"), "years of work");
    await expect(start(dataDir)).rejects.toThrow(
      `${dataDir}/postgres contains something that is not a database. Move it`,
    );
    expect(namesIn(join(dataDir, "postgres"))).toEqual(["thesis.txt"]);
  });

  test("when there is a file with its name", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "file"), "");
    await expect(start(join(folder, "file"))).rejects.toThrow(/cannot be a folder: there is a file with this name/);
    await expect(start(join(folder, "file", "below"))).rejects.toThrow(
      /cannot be a folder: there is a file with this name/,
    );
  });

  test("when its files are damaged, with the last lines of Postgres", async () => {
    const dataDir = await stoppedDataDir();
    await writeFile(join(dataDir, "postgres", "global", "pg_control"), "not a control file");
    await expect(start(dataDir)).rejects.toThrow(
      /^Postgres did not start\. The database below .* is damaged\. Restore it from a backup.*\nThe last lines of Postgres:\n.*pg_control/s,
    );
  });

  test.skipIf(noOtherUser)("when the user that runs Millrace may not write there", async () => {
    const folder = await temporaryFolder();
    const { reply } = spawnMillrace(join(folder, "data"), { uid: NOBODY.uid, gid: NOBODY.gid });
    expect(await reply).toEqual({
      failed: `Millrace may not write to ${folder}/data: permission denied. Give the user that runs Millrace access to it, or set MILLRACE_DATA_DIR to another folder.`,
    });
  });

  test.skipIf(noOtherUser)("when the database belongs to another user", async () => {
    const dataDir = await temporaryFolder();
    await chmod(dataDir, 0o777);
    await mkdir(join(dataDir, "postgres"), { mode: 0o700 });
    const { reply } = spawnMillrace(dataDir, { uid: NOBODY.uid, gid: NOBODY.gid });
    expect(await reply).toEqual({
      failed: `The database in ${dataDir}/postgres belongs to root, and Millrace runs as nobody. Run Millrace as root, or change the owner of the folder with chown -R.`,
    });
  });
});

test("an empty folder in place of the cluster is replaced", async () => {
  const dataDir = await temporaryFolder();
  await mkdir(join(dataDir, "postgres"));
  expect((await start(dataDir)).origin).toBe("created");
});

test.skipIf(noRoot)("the owner and mode of a cluster restored by root are corrected", async () => {
  const dataDir = await stoppedDataDir();
  execFileSync("chown", ["-R", "root:root", join(dataDir, "postgres")]);
  execFileSync("chmod", ["755", join(dataDir, "postgres")]);
  const postgres = await start(dataDir);
  expect(postgres.origin).toBe("started");
  const { uid, mode } = await stat(join(dataDir, "postgres"));
  expect([uid, mode & 0o777]).toEqual([NOBODY.uid, 0o700]);
});

test.skipIf(noOtherUser)("an ordinary user needs no help of root", async () => {
  const dataDir = await temporaryFolder();
  execFileSync("chown", ["nobody", dataDir]);
  const millrace = await readyMillrace(dataDir, { uid: NOBODY.uid, gid: NOBODY.gid });
  expect(millrace.origin).toBe("created");
  millrace.process.send("stop");
  await once(millrace.process, "exit");

  const asRoot = await start(dataDir);
  expect(asRoot.origin).toBe("started");
});

describe.skipIf(noMount)("a disk", () => {
  test("with little space is refused before anything is written", async () => {
    const { path } = await smallDisk(100);
    await expect(start(path)).rejects.toThrow(
      /^The disk that holds \S+ has \d+ MB free, and a new database needs 200 MB\. Free some space/,
    );
    expect(namesIn(path)).toEqual([]);
  });

  test("that is full at a start is reported, and the start works once there is space", async () => {
    const { path } = await smallDisk(300);
    const first = await start(path);
    await query(first.connection, "create table kept as select 42 as answer");
    await first.stop();
    // The last block of the log could still take messages of Postgres; the error must not depend on them.
    const log = join(path, "postgres.log");
    await truncate(log, Math.ceil(statSync(log).size / 4096) * 4096);
    fillDisk(path);
    await expect(start(path)).rejects.toThrow(`The disk that holds ${path} is full. Free some space and start again`);

    rmSync(join(path, "filler"));
    const second = await start(path);
    expect(await query(second.connection, "select answer from kept")).toEqual([{ answer: 42 }]);
  });

  test("that fills up under a running server loses no acknowledged row, and the server recovers once there is space", async () => {
    const { path } = await smallDisk(300);
    const postgres = await start(path);
    await query(postgres.connection, "create table kept (n int, filler text)");
    fillDisk(path);
    let acknowledged = 0;
    const insert = () =>
      query(
        postgres.connection,
        `insert into kept select ${acknowledged}, string_agg(md5(i::text), '') from generate_series(1, 50000) i`,
      );
    await expect(
      (async () => {
        for (;;) {
          await insert();
          acknowledged += 1;
        }
      })(),
    ).rejects.toThrow();

    rmSync(join(path, "filler"));
    const count = await untilAnswer(() =>
      query<{ n: number }>(postgres.connection, "select count(*)::int as n from kept"),
    );
    expect(count[0]?.n).toBeGreaterThanOrEqual(acknowledged);
    await untilAnswer(insert);
  });

  test("that is read-only is reported", async () => {
    const { path, remountReadOnly } = await smallDisk(300);
    await (await start(path)).stop();
    remountReadOnly();
    await expect(start(path)).rejects.toThrow(`${path} is on a read-only file system. Set MILLRACE_DATA_DIR`);
  });
});

/** Fills the disk to the last block. */
function fillDisk(path: string): void {
  const filler = openSync(join(path, "filler"), "w");
  try {
    for (;;) writeSync(filler, Buffer.alloc(64 * 1024));
  } catch {
    // The disk is full, as intended.
  } finally {
    closeSync(filler);
  }
}

async function untilAnswer<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await ask();
    } catch (error) {
      if (attempt > 300) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
