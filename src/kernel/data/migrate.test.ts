import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { emptyDatabase } from "../../../test/empty-database.ts";
import { until } from "../../../test/until.ts";
import { OperatorError } from "../errors.ts";
import { type Connection, type Db, openDb } from "./db.ts";
import { latestVersion, migrate } from "./migrate.ts";

const FILES = {
  "000001_first.sql": "-- Makes a table.\ncreate table note (n int);",
  "000002_second.sql": "alter table note add text text; insert into note values (1, 'second');",
  "000003_third.sql": "alter table note rename text to body;",
};

const migrated = useDatabase();
let dir: string;
let connection: Connection;
let db: Db;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "millrace-migrate-"));
  await write(FILES);
  connection = await emptyDatabase();
  db = openDb({ connection });
});
afterEach(async () => {
  await db.close();
  await rm(dir, { recursive: true, force: true });
});

describe("migrating", () => {
  test("applies the files in the order of their numbers, and reports them", async () => {
    expect(await migrate(db, dir)).toEqual({ applied: ["first", "second", "third"], version: 3 });
    expect(await query("select n, body from note")).toEqual([{ n: 1, body: "second" }]);
    expect(await query("select version, name from kernel.schema_migration order by version")).toEqual([
      { version: 1, name: "first" },
      { version: 2, name: "second" },
      { version: 3, name: "third" },
    ]);
  });

  test("a second time does nothing", async () => {
    await migrate(db, dir);
    expect(await migrate(db, dir)).toEqual({ applied: [], version: 3 });
    expect(await query("select count(*)::int as n from note")).toEqual([{ n: 1 }]);
  });

  test("continues from the version of the schema", async () => {
    await rm(join(dir, "000003_third.sql"));
    await migrate(db, dir);
    await write(FILES);
    expect(await migrate(db, dir)).toEqual({ applied: ["third"], version: 3 });
  });

  test("from eight processes at once applies each file once", async () => {
    const processes = Array.from({ length: 8 }, () => openDb({ connection }));
    const reports = await Promise.all(processes.map((each) => migrate(each, dir)));
    expect(reports.flatMap(({ applied }) => applied)).toEqual(["first", "second", "third"]);
    expect(reports.map(({ version }) => version)).toEqual(Array.from({ length: 8 }, () => 3));
    expect(await query("select count(*)::int as n from note")).toEqual([{ n: 1 }]);
    await Promise.all(processes.map((each) => each.close()));
  });
});

describe("a migration that fails", () => {
  test("is rolled back and named, and the earlier ones stay", async () => {
    await write({ "000003_third.sql": "create table half (n int); select 1 / 0;" });
    const failure: Error = await migrate(db, dir).then(neverReached, (error: Error) => error);
    expect(failure.message).toBe("migration 3 (third) failed and was rolled back");
    expect(failure.cause).toMatchObject({ message: "division by zero" });
    expect(await query("select to_regclass('half') as half")).toEqual([{ half: null }]);
    expect(await query("select max(version) as version from kernel.schema_migration")).toEqual([{ version: 2 }]);
    await write(FILES);
    expect(await migrate(db, dir)).toEqual({ applied: ["third"], version: 3 });
  });

  test("to be recorded is rolled back", async () => {
    await write({
      "000003_third.sql": "create table half (n int); insert into kernel.schema_migration values (3, '', '');",
    });
    await expect(migrate(db, dir)).rejects.toThrow("migration 3 (third) failed and was rolled back");
    expect(await query("select to_regclass('half') as half")).toEqual([{ half: null }]);
  });

  test("because of a lost connection says so, and the next run continues", async () => {
    await write({ "000003_third.sql": "select pg_terminate_backend(pg_backend_pid());" });
    const failure: Error = await migrate(db, dir).then(neverReached, (error: Error) => error);
    expect(failure.message).toContain("migration 3 (third)");
    await write(FILES);
    expect(await migrate(db, dir)).toEqual({ applied: ["third"], version: 3 });
  });
});

describe("a migration that builds indexes concurrently", () => {
  const INDEXES = `-- Notes are found by their body.
drop index concurrently if exists note_body;
create index concurrently note_body on note (body)
  where n > 0;
drop index concurrently if exists note_n;
create index concurrently note_n on note (n);
`;
  const valid = () =>
    query(
      "select indexrelid::regclass::text as name from pg_index where indrelid = 'note'::regclass and indisvalid order by 1",
    );

  test("lets others write to the table meanwhile", async () => {
    await migrate(db, dir);
    await write({ "000004_fourth.sql": INDEXES });
    const [writer, other] = [openDb({ connection }), openDb({ connection })];
    const migrating = await writer.exclusive(async (client) => {
      await client.query("begin; insert into note values (2, 'open')");
      const running = migrate(db, dir);
      await until(async () => {
        const found = await other.exclusive((reader) =>
          reader.query("select from pg_stat_activity where query like 'create index%' and wait_event_type = 'Lock'"),
        );
        return found.rowCount === 1;
      }, "the index to wait for the open transaction");
      await other.exclusive((second) =>
        second.query("set lock_timeout = '5s'; insert into note values (3, 'meanwhile')"),
      );
      await client.query("commit");
      return running;
    });
    expect(migrating).toEqual({ applied: ["fourth"], version: 4 });
    expect(await valid()).toEqual([{ name: "note_body" }, { name: "note_n" }]);
    await Promise.all([writer.close(), other.close()]);
  });

  test("from several processes at once is applied once", async () => {
    await write({ "000004_fourth.sql": INDEXES });
    const processes = Array.from({ length: 4 }, () => openDb({ connection }));
    const reports = await Promise.all(processes.map((each) => migrate(each, dir)));
    expect(reports.flatMap(({ applied }) => applied)).toEqual(["first", "second", "third", "fourth"]);
    await Promise.all(processes.map((each) => each.close()));
  });

  test("begins anew after a failure, also where an index was left unfinished", async () => {
    await migrate(db, dir);
    await query("insert into note values (1, 'twice')");
    const unique = INDEXES.replace("create index concurrently note_n", "create unique index concurrently note_n");
    await write({ "000004_fourth.sql": unique });
    await expect(migrate(db, dir)).rejects.toThrow("migration 4 (fourth) failed; the next start begins it anew");
    expect(await valid()).toEqual([{ name: "note_body" }]);
    await query("delete from note where body = 'twice'");
    expect(await migrate(db, dir)).toEqual({ applied: ["fourth"], version: 4 });
    expect(await valid()).toEqual([{ name: "note_body" }, { name: "note_n" }]);
  });

  test("has nothing else in it, since that would not be undone", async () => {
    await write({ "000004_fourth.sql": `${INDEXES}alter table note add m int;` });
    await expect(migrate(db, dir)).rejects.toThrow("mixes concurrent indexes with `alter table note add m int`");
    expect(await valid()).toEqual([]);
  });
});

describe("a schema that does not match this build", () => {
  test("because a newer version has migrated it is refused, with advice", async () => {
    await migrate(db, dir);
    await rm(join(dir, "000003_third.sql"));
    await expect(migrate(db, dir)).rejects.toThrow(
      new OperatorError(
        "The database has schema version 3, this Millrace knows 2. " +
          "A newer Millrace has migrated it: start that version, or restore a backup made before its upgrade.",
      ),
    );
  });

  test("because a file has changed since it was applied is refused, and nothing is applied", async () => {
    await rm(join(dir, "000003_third.sql"));
    await migrate(db, dir);
    await write({ ...FILES, "000002_second.sql": "alter table note add text varchar;" });
    await expect(migrate(db, dir)).rejects.toThrow(
      /^Migration 2 \(second\) in the database is not the one in this build\./,
    );
    expect(await query("select max(version) as version from kernel.schema_migration")).toEqual([{ version: 2 }]);
  });
});

describe("wrongly numbered files", () => {
  test.each([
    ["with a gap", "000005_fifth.sql", "expected number 4"],
    ["twice the same", "000003_zweite.sql", "expected number 4"],
    ["with too few digits", "00004_fourth.sql", "expected number 4"],
    ["with a name in capitals", "000004_Fourth.sql", "expected number 4"],
  ])("%s are refused before anything is applied", async (_, file, reason) => {
    await write({ [file]: "select 1" });
    await expect(migrate(db, dir)).rejects.toThrow(reason);
    expect(await query("select to_regclass('note') as note")).toEqual([{ note: null }]);
  });

  test("are checked, but files that are not SQL are ignored", async () => {
    await write({ "README.md": "about" });
    expect(await latestVersion(dir)).toBe(3);
  });
});

test("Millrace's own migrations reach the version of this build", async () => {
  expect(await migrate(migrated.db)).toEqual({ applied: [], version: await latestVersion() });
});

async function write(files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
}

function query(text: string): Promise<unknown[]> {
  return db.exclusive(async (client) => (await client.query<Record<string, unknown>>(text)).rows);
}

function neverReached(): never {
  throw new Error("it succeeded");
}
