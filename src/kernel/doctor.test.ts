import { tmpdir } from "node:os";
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import type { Db } from "./data/db.ts";
import { latestVersion } from "./data/migrate.ts";
import { type DoctorCheck, examine, type Finding, kernelChecks } from "./doctor.ts";

const database = useDatabase();
beforeEach(() => database.query("truncate kernel.session"));

const CHECKS = kernelChecks({ version: "1.2.3", dataDir: tmpdir() });

test("a new installation passes every check", async () => {
  const findings = await examine(database.db, CHECKS);
  expect(findings.map(({ check }) => check)).toEqual([
    "version",
    "database",
    "schema",
    "disk",
    "clock",
    "bloat",
    "transactions",
    "processes",
    "outbox",
  ]);
  // The Postgres of the tests runs without fsync; the next test covers that.
  for (const finding of findings.filter(({ check }) => check !== "database")) {
    expect(finding, finding.check).toMatchObject({ verdict: "ok" });
    expect(finding.advice).toBeUndefined();
  }
});

test.each([
  ["on", "on", "ok"],
  ["on", "local", "ok"],
  ["off", "on", "warning"],
  ["on", "off", "warning"],
])("a database with fsync %s and synchronous_commit %s is %s", async (fsync, synchronous_commit, verdict) => {
  const answering = answers([{ version: "18.0", fsync, synchronous_commit }]);
  expect(await findingOf("database", answering)).toMatchObject({ verdict });
});

describe("the schema", () => {
  test("at another version than the build's is broken, with the advice to migrate", async () => {
    await database.query("insert into kernel.schema_migration values (999999, 'of the future', '')");
    const known = await latestVersion();
    expect(await findingOf("schema")).toMatchObject({
      verdict: "broken",
      found: `The schema is at version 999999, this build expects ${known}.`,
      advice: expect.stringContaining("millrace migrate") as string,
    });
    await database.query("delete from kernel.schema_migration where version = 999999");
  });
});

describe("processes", () => {
  test("that are alive are listed with their roles", async () => {
    await session("host:1", "1 minute");
    expect(await findingOf("processes")).toMatchObject({
      verdict: "ok",
      found: "1 alive: host:1 (api, scheduler, worker).",
    });
  });

  test.each([
    ["{api,worker}", "host:1 (api, worker). None has the role `scheduler`.", ["role `scheduler`."]],
    ["{api,scheduler}", "host:1 (api, scheduler). None has the role `worker`.", ["role `worker`."]],
    ["{api}", "host:1 (api). None has the role `scheduler` or `worker`.", ["role `scheduler`.", "role `worker`."]],
  ])("with only the roles %s are a warning", async (roles, found, advice) => {
    await session("host:1", "1 minute");
    await session("host:2", "-1 minute"); // With all roles, and expired.
    await database.query("update kernel.session set roles = $1 where process = 'host:1'", [roles]);
    const finding = await findingOf("processes");
    expect(finding).toMatchObject({ verdict: "warning", found: `1 alive: ${found}` });
    for (const words of advice) expect(finding?.advice).toContain(words);
  });

  test("that stopped sending heartbeats are a warning", async () => {
    await session("host:1", "1 minute");
    await session("host:2", "-1 minute");
    expect(await findingOf("processes")).toMatchObject({
      verdict: "warning",
      found: "1 alive: host:1 (api, scheduler, worker). 1 process expired in the last hour, without a graceful stop.",
    });
  });

  test("that were stopped are not counted", async () => {
    await session("host:1", "1 minute");
    await session("host:2", "-1 minute");
    await database.query("update kernel.session set closed_at = expires_at where process = 'host:2'");
    expect(await findingOf("processes")).toMatchObject({
      verdict: "ok",
      found: "1 alive: host:1 (api, scheduler, worker).",
    });
  });
});

describe("a warning", () => {
  test.each([5_000, -5_000])("is given for a clock that is %i ms off", async (skewMs) => {
    const finding = await findingOf(
      "clock",
      answers(() => [{ now_ms: Date.now() + skewMs }]),
    );
    expect(finding).toMatchObject({ verdict: "warning", advice: expect.stringContaining("NTP") as string });
  });

  test("is given for a transaction that has been open for long, with how to end it", async () => {
    const finding = await findingOf("transactions", answers([{ pid: 42, application: "psql", seconds: 301.4 }]));
    expect(finding).toMatchObject({
      verdict: "warning",
      found: "Process 42 (psql) has had a transaction open for 301 s.",
      advice: expect.stringContaining("pg_terminate_backend(42)") as string,
    });
  });

  test("is given for many dead rows", async () => {
    const finding = await findingOf(
      "bloat",
      answers([{ name: "tracking.pipeline_tracking", live: 10, dead: 200_000 }]),
    );
    expect(finding).toMatchObject({
      verdict: "warning",
      found: "Many dead rows in tracking.pipeline_tracking (200000 dead, 10 live).",
    });
  });
});

test("the disk of a database on another server is not checked", async () => {
  const [finding] = await examine(database.db, checksNamed("disk", kernelChecks({ version: "1", dataDir: undefined })));
  expect(finding).toMatchObject({ verdict: "ok" });
});

test("an exception of one check is a finding, and does not stop the others", async () => {
  const failing: DoctorCheck = { name: "failing", look: () => Promise.reject(new Error("no such table")) };
  const findings = await examine(database.db, [failing, ...checksNamed("version")]);
  expect(findings).toMatchObject([
    { check: "failing", verdict: "broken", found: "The check itself failed: no such table" },
    { check: "version", verdict: "ok" },
  ]);
});

function checksNamed(name: string, checks = CHECKS): DoctorCheck[] {
  return checks.filter((check) => check.name === name);
}

async function findingOf(name: string, db: Db = database.db): Promise<Finding | undefined> {
  return (await examine(db, checksNamed(name)))[0];
}

/** A database in a state that a test cannot produce, such as a wrong clock. */
function answers(rows: object[] | (() => object[])): Db {
  return { ...database.db, read: (async () => (typeof rows === "function" ? rows() : rows)) as Db["read"] };
}

function session(process: string, expiresIn: string): Promise<unknown> {
  return database.query(
    `insert into kernel.session (process, roles, version, expires_at)
     values ($1, '{api,scheduler,worker}', '1.2.3', now() + $2::interval)`,
    [process, expiresIn],
  );
}

test("a check that takes too long is a warning", async () => {
  const slow: DoctorCheck = {
    name: "slow",
    look: () => Promise.reject(Object.assign(new Error("canceling statement"), { code: "57014" })),
  };
  expect(await examine(database.db, [slow])).toEqual([
    { check: "slow", verdict: "warning", found: "The check did not finish in time.", advice: expect.any(String) },
  ]);
});
