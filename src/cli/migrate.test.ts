/** `millrace migrate` as a process, on an empty database and on one that is up to date. */
import { randomBytes } from "node:crypto";
import { expect, inject, onTestFinished, test } from "vitest";
import { startCli } from "../../test/cli.ts";
import { useDatabase } from "../../test/database.ts";
import { openDb } from "../kernel/db.ts";
import { latestVersion } from "../kernel/migrate.ts";

const migrated = useDatabase();

async function emptyDatabase(): Promise<string> {
  const name = `millrace_test_${randomBytes(6).toString("hex")}`;
  const admin = openDb({ connection: inject("postgres") });
  await admin.exclusive((client) => client.query(`create database ${name}`));
  onTestFinished(async () => {
    await admin.exclusive((client) => client.query(`drop database ${name} with (force)`));
    await admin.close();
  });
  return migrated.url.replace(/millrace_test_\w+/, name);
}

test("an empty database is brought up to date, and what was applied is told", async () => {
  const url = await emptyDatabase();
  const version = await latestVersion();
  const first = await startCli(["migrate"], { DATABASE_URL: url }).ended;
  expect(first).toMatchObject({ exit: 0, stderr: "" });
  expect(first.stdout).toMatch(/^Applied kernel\.\nApplied tracking\.\n/);
  expect(first.stdout.endsWith(`The schema is now at version ${version}.\n`)).toBe(true);

  const second = await startCli(["migrate"], { DATABASE_URL: url }).ended;
  expect(second).toEqual({ exit: 0, stdout: `The schema is up to date, at version ${version}.\n`, stderr: "" });
});

test("--json tells the same to machines", async () => {
  const { exit, stdout } = await startCli(["migrate", "--json"], { DATABASE_URL: await emptyDatabase() }).ended;
  expect(exit).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    applied: expect.arrayContaining(["kernel", "tracking"]),
    version: await latestVersion(),
  });
});

test("a database that cannot be reached is a sentence and exit code 1", async () => {
  const { exit, stderr } = await startCli(["migrate"], { DATABASE_URL: "postgres://u:secret@127.0.0.1:9/db" }).ended;
  expect(exit).toBe(1);
  expect(stderr).toBe(
    "The database at 127.0.0.1:9/db cannot be reached (ECONNREFUSED). Is it running, and is DATABASE_URL right?\n",
  );
});
