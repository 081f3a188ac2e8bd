/** Starts beside other Millraces, orphaned servers, stale files and concurrent starts. */

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { chown, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../../test/until.ts";
import { isAlive, waitUntilGone } from "./processes.ts";
import {
  end,
  freezeBackend,
  isRoot,
  kill,
  namesIn,
  postmasterPid,
  postmasterPidFile,
  query,
  readyMillrace,
  spawnMillrace,
  start,
  stoppedDataDir,
  temporaryFolder,
} from "./testing.fixture.ts";

describe("another Millrace on the same data directory", () => {
  test("is refused with its holder's pid, and the running Postgres is left alone", async () => {
    const dataDir = await stoppedDataDir();
    const first = await readyMillrace(dataDir);
    await expect(start(dataDir)).rejects.toThrow(
      `Another Millrace (pid ${first.process.pid}) already uses the data directory ${dataDir}. Stop it first, or set MILLRACE_DATA_DIR to another folder.`,
    );
    expect(postmasterPid(dataDir)).toBe(first.pid);
    expect(await query(first.connection, "select 1 as one")).toEqual([{ one: 1 }]);

    first.process.send("stop");
    await once(first.process, "exit");
    expect(isAlive(first.pid)).toBe(false);
    expect((await start(dataDir)).origin).toBe("started");
  });

  test("is refused even if Postgres does not answer", async () => {
    const dataDir = await stoppedDataDir();
    const first = await readyMillrace(dataDir);
    rmSync(first.connection.host, { recursive: true });
    await expect(start(dataDir)).rejects.toThrow(`Another Millrace (pid ${first.process.pid})`);
    expect(isAlive(first.pid)).toBe(true);
  });

  test("that is stopping is waited for", async () => {
    const dataDir = await stoppedDataDir();
    const first = await readyMillrace(dataDir);
    const backend = await freezeBackend(first.connection);
    first.process.send("stop");
    const status = () => readFileSync(postmasterPidFile(dataDir), "utf8").split("\n")[7]?.trim();
    await until(() => status() === "stopping", "the shutdown to begin");
    const second = await start(dataDir, {
      onProgress: (line) => void (line.includes("it is shutting down") && process.kill(backend, "SIGCONT")),
    });
    expect(second.origin).toBe("started");
  });

  test("with concurrent first starts: one wins, the others are refused, and no files are left over", async () => {
    const dataDir = join(await temporaryFolder(), "data");
    const all = [1, 2, 3].map(() => spawnMillrace(dataDir));
    const replies = await Promise.all(all.map(({ reply }) => reply));
    const winners = replies.filter((reply) => "pid" in reply);
    const refused = replies.flatMap((reply) => ("failed" in reply ? [reply.failed] : []));
    expect(winners).toHaveLength(1);
    const winner = all[replies.findIndex((reply) => "pid" in reply)];
    for (const sentence of refused) {
      expect(sentence).toContain(`Another Millrace (pid ${winner?.process.pid}) already uses the data directory`);
    }
    expect(namesIn(dataDir)).toEqual([
      "millrace.pid",
      "postgres",
      "postgres.hba.conf",
      "postgres.ident.conf",
      "postgres.log",
    ]);

    winner?.process.send("stop");
    await winner?.reply;
    if (winner) await once(winner.process, "exit");
    expect((await start(dataDir)).origin).toBe("started");
  });

  test("with concurrent starts on a stopped cluster: one wins, the other is refused", async () => {
    const dataDir = await stoppedDataDir();
    const replies = await Promise.all([1, 2].map(() => spawnMillrace(dataDir).reply));
    expect(replies.filter((reply) => "pid" in reply)).toHaveLength(1);
    expect(replies.filter((reply) => "failed" in reply && reply.failed.includes("already uses"))).toHaveLength(1);
  });
});

describe("after kill -9 of Millrace", () => {
  test("the orphaned server is adopted with every acknowledged row", async () => {
    const dataDir = await stoppedDataDir();
    const killed = await readyMillrace(dataDir);
    await query(killed.connection, "create table kept as select 42 as answer");
    await kill(killed.process);
    expect(isAlive(killed.pid)).toBe(true);

    const adopted = await start(dataDir);
    expect([adopted.origin, adopted.pid()]).toEqual(["adopted", killed.pid]);
    expect(await query(adopted.connection, "select answer from kept")).toEqual([{ answer: 42 }]);
    await adopted.stop();
    expect(isAlive(killed.pid)).toBe(false);
    expect(existsSync(adopted.connection.host)).toBe(false);
  });

  test("and of Postgres, the next start recovers every acknowledged row", async () => {
    const dataDir = await stoppedDataDir();
    const killed = await readyMillrace(dataDir);
    await query(killed.connection, "create table kept as select 42 as answer");
    await kill(killed.process);
    await end(killed.pid);

    const recovered = await start(dataDir);
    expect(recovered.origin).toBe("recovered");
    expect(await query(recovered.connection, "select answer from kept")).toEqual([{ answer: 42 }]);
    expect(existsSync(killed.connection.host)).toBe(false);
  });

  test("the start waits for a lock that the dead process still seems to hold", async () => {
    const dataDir = await stoppedDataDir();
    const killed = await readyMillrace(dataDir);
    await query(killed.connection, "alter system set log_connections = on");
    const [holder] = await query<{ pid: number }>(
      killed.connection,
      `select pid, pg_reload_conf() from pg_stat_activity where application_name = 'millrace ${killed.process.pid}'`,
    );
    const backend = holder?.pid ?? 0;
    process.kill(backend, "SIGSTOP");
    await kill(killed.process);

    const starting = start(dataDir);
    const tries = () =>
      readFileSync(join(dataDir, "postgres.log"), "utf8").split(`=millrace ${process.pid}`).length - 1;
    await until(() => tries() >= 2, "a second try, after the first found the lock held");
    process.kill(backend, "SIGCONT");
    expect((await starting).origin).toBe("adopted");
  });

  test("an orphan with other settings is replaced", async () => {
    const dataDir = await stoppedDataDir();
    const killed = await readyMillrace(dataDir);
    await kill(killed.process);
    const postgres = await start(dataDir, { settings: { work_mem: "8MB" } });
    expect(postgres.origin).toBe("started");
    expect(isAlive(killed.pid)).toBe(false);
    expect(await query(postgres.connection, "show work_mem")).toEqual([{ work_mem: "8MB" }]);
  });

  test("an orphan whose socket was removed is replaced", async () => {
    const dataDir = await stoppedDataDir();
    const killed = await readyMillrace(dataDir);
    await kill(killed.process);
    rmSync(killed.connection.host, { recursive: true });
    const postgres = await start(dataDir);
    expect(postgres.origin).toBe("started");
    expect(isAlive(killed.pid)).toBe(false);
  });

  test("a suspended orphan is replaced", async () => {
    const dataDir = await stoppedDataDir();
    const killed = await readyMillrace(dataDir);
    await kill(killed.process);
    process.kill(killed.pid, "SIGSTOP");
    const postgres = await start(dataDir);
    expect(postgres.origin).toBe("started");
    expect(isAlive(killed.pid)).toBe(false);
  });

  test("an orphan that waits for its last client before it shuts down is replaced", async () => {
    const dataDir = await stoppedDataDir();
    const killed = await readyMillrace(dataDir);
    await kill(killed.process);
    const client = new Client(killed.connection);
    client.on("error", () => undefined);
    await client.connect();
    onTestFinished(() => client.end());
    process.kill(killed.pid, "SIGTERM");
    const postgres = await start(dataDir);
    expect(postgres.origin).toBe("started");
    expect(isAlive(killed.pid)).toBe(false);
  });
});

/** A pid file as left by a crash, with another first line. */
async function plantPidFile(dataDir: string, change: (content: string) => string): Promise<void> {
  const postgres = await start(dataDir);
  const content = readFileSync(postmasterPidFile(dataDir), "utf8");
  await postgres.stop();
  await writeFile(postmasterPidFile(dataDir), change(content), { mode: 0o600 });
  const { uid, gid } = await stat(join(dataDir, "postgres"));
  await chown(postmasterPidFile(dataDir), uid, gid);
}

describe("a stale pid file", () => {
  test("whose pid now belongs to another program of the same user is ignored", async () => {
    const dataDir = await stoppedDataDir();
    // Postgres itself takes any process of the same user for the earlier server.
    const bystander = spawn("sleep", ["600"], isRoot ? { uid: 65534, gid: 65534 } : {});
    onTestFinished(() => kill(bystander));
    await plantPidFile(dataDir, (content) => content.replace(/^\d+/, String(bystander.pid)));
    expect((await start(dataDir)).origin).toBe("started");
    expect(isAlive(bystander.pid ?? 0)).toBe(true);
  });

  test.each([
    ["is empty", () => ""],
    ["is garbage", () => "\0\0 not a pid\n"],
    ["names no process", (content: string) => content.replace(/^\d+/, "4194303")],
    ["names a single-user backend that is gone", (content: string) => content.replace(/^\d+/, "-4194303")],
    ["names pid 1", (content: string) => content.replace(/^\d+/, "1")],
  ])("that %s does not stop a start", async (_, change) => {
    const dataDir = await stoppedDataDir();
    await plantPidFile(dataDir, change);
    const postgres = await start(dataDir);
    expect(postgres.origin).toBe("started");
    expect(postmasterPid(dataDir)).toBe(postgres.pid());
    expect(namesIn(join(dataDir, "postgres"))).not.toContain("postmaster.pid.malformed");
  });
});

test("a copy of a data directory in use starts separately and does not touch the original", async () => {
  const folder = await temporaryFolder();
  const originalDir = await stoppedDataDir();
  const original = await readyMillrace(originalDir);
  await query(original.connection, "create table kept as select 42 as answer");
  execFileSync("cp", ["-a", originalDir, join(folder, "copy")]);

  const copy = await start(join(folder, "copy"));
  expect(copy.origin).toBe("recovered");
  expect(copy.pid()).not.toBe(original.pid);
  expect(await query(copy.connection, "select answer from kept")).toEqual([{ answer: 42 }]);
  expect(await query(original.connection, "select answer from kept")).toEqual([{ answer: 42 }]);
  await copy.stop();
  expect(await waitUntilGone(original.pid, 0)).toBe(false);
});
