/** The supervision of a server: creation, start, restart after a crash, stop. */

import { existsSync, readFileSync, rmSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../../test/until.ts";
import { isAlive } from "./processes.ts";
import { type EmbeddedPostgresOptions, supervise } from "./supervisor.ts";
import {
  end,
  freezeBackend,
  namesIn,
  postmasterPid,
  query,
  start,
  stoppedDataDir,
  temporaryFolder,
} from "./testing.fixture.ts";

/** Collects the log of the supervisor, to wait on. */
function listen(): { messages: string[]; log: NonNullable<EmbeddedPostgresOptions["log"]> } {
  const messages: string[] = [];
  const keep = (_details: object, message: string) => void messages.push(message);
  return { messages, log: { info: keep, warn: keep } };
}

describe("starting and stopping", () => {
  test("a first start creates the cluster, and stop leaves nothing running", async () => {
    const dataDir = join(await temporaryFolder(), "data");
    const progress: string[] = [];
    const postgres = await start(dataDir, { onProgress: (line) => progress.push(line) });
    expect(postgres.origin).toBe("created");
    expect(progress.slice(-2)).toEqual(["creating the database cluster", "starting Postgres"]);
    expect(await query(postgres.connection, "select current_database() as name")).toEqual([{ name: "millrace" }]);
    const pid = postgres.pid();

    await postgres.stop();
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(postgres.connection.host)).toBe(false);
    expect(namesIn(dataDir)).toEqual(["postgres", "postgres.hba.conf", "postgres.ident.conf", "postgres.log"]);
    expect(logOf(dataDir)).toMatch(/database system is shut down\n$/);
  });

  test("a later start finds the rows of the earlier one", async () => {
    const dataDir = await temporaryFolder();
    const first = await start(dataDir);
    await query(first.connection, "create table kept as select 42 as answer");
    await first.stop();

    const second = await start(dataDir);
    expect(second.origin).toBe("started");
    expect(await query(second.connection, "select answer from kept")).toEqual([{ answer: 42 }]);
  });

  test("the settings for durability are on, and so are checksums", async () => {
    const { connection } = await start(await stoppedDataDir());
    const settings = await query<{ name: string; setting: string }>(
      connection,
      "select name, setting from pg_settings where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'data_checksums')",
    );
    expect(settings).toHaveLength(4);
    expect(settings.every(({ setting }) => setting === "on")).toBe(true);
  });

  test("the server listens only on a socket in a private folder, and text sorts by code point", async () => {
    const postgres = await start(await stoppedDataDir(), { settings: { work_mem: "8MB" } });
    expect((await stat(postgres.connection.host)).mode & 0o777).toBe(0o700);
    expect(await query(postgres.connection, "show listen_addresses")).toEqual([{ listen_addresses: "" }]);
    expect(await query(postgres.connection, "show work_mem")).toEqual([{ work_mem: "8MB" }]);
    expect(await query(postgres.connection, "select 'Z' < 'a' as by_code, upper('é') as upper")).toEqual([
      { by_code: true, upper: "É" },
    ]);
  });

  test("a data directory with a very long path works", async () => {
    const dataDir = join(await temporaryFolder(), "a".repeat(120), "with a space", "é".repeat(60));
    const postgres = await start(dataDir);
    expect(await query(postgres.connection, "select 1 as one")).toEqual([{ one: 1 }]);
  });

  test("without unix sockets, loopback requires the password of the cluster", async () => {
    const dataDir = await temporaryFolder();
    const { messages, log } = listen();
    const postgres = await supervise({ dataDir, log }, { transport: "loopback" });
    onTestFinished(() => postgres.stop());
    expect(postgres.connection.host).toBe("127.0.0.1");
    expect((await stat(join(dataDir, "postgres", "millrace.password"))).mode & 0o777).toBe(0o600);
    expect(await query(postgres.connection, "select 1 as one")).toEqual([{ one: 1 }]);
    await expect(query({ ...postgres.connection, password: "guess" }, "select 1")).rejects.toThrow(/password/);

    await end(postgres.pid());
    await until(() => messages.includes("Postgres is back"), "the restart on the same port");
    expect(await query(postgres.connection, "select 1 as one")).toEqual([{ one: 1 }]);
  });
});

function logOf(dataDir: string): string {
  return readFileSync(join(dataDir, "postgres.log"), "utf8");
}

describe("when Postgres ends while Millrace runs", () => {
  test("a killed server is started again on the same socket, with the rows that were acknowledged", async () => {
    const dataDir = await stoppedDataDir();
    const { messages, log } = listen();
    const postgres = await start(dataDir, { log });
    await query(postgres.connection, "create table kept as select 42 as answer");
    const killed = postgres.pid();

    await end(killed);
    await until(() => messages.includes("Postgres is back"), "the restart");
    expect(messages).toEqual(["Postgres is ready", "Postgres went away; bringing it back", "Postgres is back"]);
    expect(postgres.pid()).not.toBe(killed);
    expect(await query(postgres.connection, "select answer from kept")).toEqual([{ answer: 42 }]);
    await expect(start(dataDir)).rejects.toThrow(`Another Millrace (pid ${process.pid})`);

    const last = postgres.pid();
    await postgres.stop();
    expect(isAlive(last)).toBe(false);
  });

  test("the lock is taken again when only its connection broke", async () => {
    const dataDir = await stoppedDataDir();
    const { messages, log } = listen();
    const postgres = await start(dataDir, { log });
    const server = postgres.pid();
    await query(
      postgres.connection,
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millrace ${process.pid}'`,
    );
    await until(() => messages.includes("Postgres is back"), "the lock");
    expect(postgres.pid()).toBe(server);
    await expect(start(dataDir)).rejects.toThrow(`Another Millrace (pid ${process.pid})`);
  });

  test("a removed socket is restored", async () => {
    const dataDir = await stoppedDataDir();
    const { messages, log } = listen();
    const postgres = await supervise({ dataDir, log }, { transport: "socket", maintenanceMs: 20 });
    onTestFinished(() => postgres.stop());
    rmSync(postgres.connection.host, { recursive: true });
    await until(() => messages.includes("Postgres is back"), "the restart");
    expect(messages).toContain("the socket of Postgres was removed; restarting it");
    expect(await query(postgres.connection, "select 1 as one")).toEqual([{ one: 1 }]);
  });

  test("the restart waits for a backend that outlives a killed server", async () => {
    const dataDir = await stoppedDataDir();
    const { messages, log } = listen();
    const postgres = await start(dataDir, { log });
    const backend = await freezeBackend(postgres.connection);
    await end(postgres.pid());
    await until(() => logOf(dataDir).includes("pre-existing shared memory block"), "Postgres to refuse to start");
    await end(backend);
    await until(() => messages.includes("Postgres is back"), "the restart");
    expect(messages).not.toContain("Postgres could not be brought back; trying again");
  });

  test("stop does not wait for a restart that hangs", async () => {
    const dataDir = await stoppedDataDir();
    const { messages, log } = listen();
    const postgres = await start(dataDir, { log });
    await freezeBackend(postgres.connection);
    await end(postgres.pid());
    await until(() => logOf(dataDir).includes("pre-existing shared memory block"), "Postgres to refuse to start");
    const asked = performance.now();
    await postgres.stop();
    expect(performance.now() - asked).toBeLessThan(5_000);
    expect(messages).not.toContain("Postgres is back");
  });

  test("after stop nothing is started again, even during a restart", async () => {
    const dataDir = await stoppedDataDir();
    const { messages, log } = listen();
    const postgres = await start(dataDir, { log });
    await end(postgres.pid());
    await until(() => messages.includes("Postgres went away; bringing it back"), "the loss to be noticed");
    await postgres.stop();
    expect(messages).not.toContain("Postgres is back");
    expect(existsSync(join(dataDir, "postgres", "postmaster.pid")) && isAlive(postmasterPid(dataDir))).toBe(false);

    const again = await start(dataDir);
    expect(again.origin).toBe("recovered");
  });
});

test("stop may be called twice and waits both times", async () => {
  const postgres = await start(await stoppedDataDir());
  const pid = postgres.pid();
  await Promise.all([postgres.stop(), postgres.stop()]);
  expect(isAlive(pid)).toBe(false);
});
