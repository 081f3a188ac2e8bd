/** `millrace migrate` as a process, on an empty database and on one that is up to date. */
import { randomBytes } from "node:crypto";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { startCli } from "../../test/cli.ts";
import { useDatabase } from "../../test/database.ts";
import { openDb } from "../kernel/data/db.ts";
import { latestVersion } from "../kernel/data/migrate.ts";

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

test("an empty database is brought up to date, and the applied migrations are printed", async () => {
  const url = await emptyDatabase();
  const version = await latestVersion();
  const first = await startCli(["migrate"], { DATABASE_URL: url }).ended;
  expect(first).toMatchObject({ exit: 0, stderr: "" });
  expect(first.stdout).toMatch(/^Applied kernel\.\nApplied tracking\.\n/);
  expect(first.stdout.endsWith(`The schema is now at version ${version}.\n`)).toBe(true);

  const second = await startCli(["migrate"], { DATABASE_URL: url }).ended;
  expect(second).toEqual({ exit: 0, stdout: `The schema is up to date, at version ${version}.\n`, stderr: "" });
});

test("--json prints the same as JSON", async () => {
  const { exit, stdout } = await startCli(["migrate", "--json"], { DATABASE_URL: await emptyDatabase() }).ended;
  expect(exit).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    applied: expect.arrayContaining(["kernel", "tracking"]),
    version: await latestVersion(),
  });
});

describe("a migration that fails", () => {
  test("for lack of a privilege is explained, even if that error is only the cause", async () => {
    const url = await emptyDatabase();
    const name = new URL(url).pathname.slice(1);
    const role = `${name}_guest`;
    const owner = openDb({ connection: { connectionString: url } });
    // Enough for the first migration; the second one fails.
    await owner.exclusive((client) =>
      client.query(
        `create role ${role} login password 'x'; grant create on database ${name} to ${role};
         revoke usage on language plpgsql from public`,
      ),
    );
    onTestFinished(async () => {
      await owner.exclusive((client) => client.query(`drop owned by ${role}; drop role ${role}`));
      await owner.close();
    });
    const asRole = new URL(url);
    asRole.username = role;
    asRole.password = "x";
    const { exit, stderr } = await startCli(["migrate"], { DATABASE_URL: asRole.href }).ended;
    expect(exit).toBe(1);
    expect(stderr).toMatch(/^The database at \S+ does not let this user do what Millrace needs\. .*\n$/);
  });

  test("for any other reason is reported with its causes", async () => {
    const url = await emptyDatabase();
    const db = openDb({ connection: { connectionString: url } });
    await db.exclusive((client) => client.query("create schema tracking"));
    await db.close();
    const { exit, stderr } = await startCli(["migrate"], { DATABASE_URL: url }).ended;
    expect(exit).toBe(1);
    expect(stderr).toMatch(/^This is a bug in Millrace \S+ Please report it, with these lines:\nError: migration 2 /);
    expect(stderr).toMatch(/^caused by error: schema "tracking" already exists$/m);
  });
});

test("a database that cannot be reached is explained, with exit code 1", async () => {
  const { exit, stderr } = await startCli(["migrate"], { DATABASE_URL: "postgres://u:secret@127.0.0.1:9/db" }).ended;
  expect(exit).toBe(1);
  expect(stderr).toBe(
    "The database at 127.0.0.1:9/db cannot be reached (ECONNREFUSED). Is it running, and is DATABASE_URL right?\n",
  );
});
