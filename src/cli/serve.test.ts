/** `millrace serve` as a process: its output, and how it ends. */
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { startCli } from "../../test/cli.ts";
import { useDatabase } from "../../test/database.ts";
import { type Server, startServer } from "../../test/server.ts";
import { until } from "../../test/until.ts";
import { stoppedDataDir } from "../kernel/embedded-postgres/testing.fixture.ts";

const database = useDatabase();
const forgetAllKeys = () => database.query("delete from kernel.api_key");

/** A folder for an embedded Postgres. */
async function newDataDir(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), "millrace-cli-"));
  await chmod(dataDir, 0o755);
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  return dataDir;
}

function postmasterOf(server: Server): number {
  const pid = server.logged("Postgres is ready")[0]?.["postmaster"] as number;
  expect(() => process.kill(pid, 0)).not.toThrow();
  return pid;
}

/** It asks for the lock of migrations again and again. */
async function asksForLock(client: pg.Client): Promise<boolean> {
  const { rowCount } = await client.query(
    `select from pg_stat_activity
     where query like '%pg_try_advisory_lock%' and datname = current_database() and pid <> pg_backend_pid()`,
  );
  return rowCount !== 0;
}

async function serverIsBlocked(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query(
    "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
  );
  return rows.length > 0;
}

/** A port that something else listens on. */
async function takenPort(): Promise<number> {
  const taken = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void taken.close());
  await once(taken, "listening");
  return (taken.address() as AddressInfo).port;
}

/** A request with an unfinished body: it stays in flight until it is finished or closed. */
async function unfinishedRequest({ url, adminKey }: Server) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  const body = '{"filename":"unfinished.csv","shards":[0]}';
  socket.write(
    "POST /api/v1/pipeline/files/register HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n" +
      `authorization: Bearer ${adminKey}\r\ncontent-length: ${body.length}\r\nexpect: 100-continue\r\n\r\n${body.slice(0, 10)}`,
  );
  await once(socket, "data"); // "100 Continue": the server is handling it.
  return {
    /** The status line of the answer. */
    async finish(): Promise<string> {
      socket.write(body.slice(10));
      const [answer] = (await once(socket, "data")) as [Buffer];
      return answer.toString().split("\r\n", 1)[0] ?? "";
    },
  };
}

describe("the ready message", () => {
  test("shows the admin key at the first start, a working one, and never again", async () => {
    const options = { database: { url: database.url }, env: { MILLRACE_ADMIN_KEY: "" } };
    const first = await startServer(options);
    const key = await until(() => /Admin key +(mlr_\S+)/.exec(first.output())?.[1], "the admin key");
    const linkOf = (server: Server) => /Console +(\S+)/.exec(server.output())?.[1] ?? "";
    expect(linkOf(first)).toMatch(new RegExp(`^${first.url}/login#k[\\w-]{43}$`));
    expect(first.output()).toContain("The link to the console signs in once, within 15 minutes.");
    expect(first.output()).toContain(`API reference  ${first.url}/docs\n`);
    expect(first.output()).toContain("it is shown only this once");
    expect(first.output()).toContain(`export MILLRACE_URL=${first.url}\n  export MILLRACE_KEY=${key}\n`);
    const used = await startCli(["keys", "list"], { MILLRACE_URL: first.url, MILLRACE_KEY: key }).ended;
    expect(used).toMatchObject({ exit: 0, stderr: "" });
    expect(used.stdout).toContain("first admin");
    expect(await first.stop()).toBe(0);

    const second = await startServer(options);
    await until(() => second.output().includes(`${second.url}/docs`), "the ready message");
    expect(second.output()).not.toContain("dmin key");
    expect(second.output()).not.toContain(key);
    expect(linkOf(second)).toMatch(new RegExp(`^${second.url}/login#k[\\w-]{43}$`));
    expect(linkOf(second).split("#")[1]).not.toBe(linkOf(first).split("#")[1]);
    expect(await second.stop()).toBe(0);
  });

  test("shows the key at the first start that succeeds, even if others failed before", async () => {
    await forgetAllKeys();
    const port = await takenPort();
    const failed = await startCli(["serve", "--port", String(port)], { DATABASE_URL: database.url }).ended;
    expect(failed.exit).toBe(1);
    expect(failed.stderr).toContain(`Port ${port} on 127.0.0.1 is taken.`);
    const server = await startServer({ database: { url: database.url }, env: { MILLRACE_ADMIN_KEY: "" } });
    await until(() => /Admin key +mlr_\S+/.test(server.output()), "the admin key");
  });

  test("shows no key if the environment has one", async () => {
    const server = await startServer({ database: { url: database.url } });
    await until(() => server.output().includes(`${server.url}/docs`), "the ready message");
    expect(server.output()).not.toContain(server.adminKey);
    expect(server.output()).not.toContain("dmin key");
  });

  test("goes to standard output, the log to standard error", async () => {
    const server = startCli(["serve", "--port", "0"], {
      DATABASE_URL: database.url,
      MILLRACE_ADMIN_KEY: "x".repeat(32),
    });
    await until(() => server.stdout().includes("/docs"), "the ready message");
    server.kill("SIGINT");
    const { exit, stdout, stderr } = await server.ended;
    expect(exit).toBe(0);
    expect(stdout).toMatch(/^\nMillrace \S+ is ready\.\n\n {2}Console .*\n {2}API reference .*\n\nThe link /);
    expect(stdout).toContain("Stopping when the work in flight is done.");
    expect(stdout.trim().endsWith("Stopped.")).toBe(true);
    const lines = stderr.trim().split("\n");
    expect(lines.every((line) => line.startsWith("{"))).toBe(true);
    expect(lines.some((line) => line.includes('"msg":"millrace is ready"'))).toBe(true);
  });

  test("shows a usable address if the server listens on all addresses", async () => {
    const server = await startServer({ database: { url: database.url }, env: { MILLRACE_HOST: "0.0.0.0" } });
    const link = await until(() => /Console +(\S+)/.exec(server.output())?.[1], "the link");
    expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/login#e[\w-]{43}$/);
  });

  test("of a process without the role api shows its roles and no links to what it does not have", async () => {
    const server = await startServer({ database: { url: database.url }, env: { MILLRACE_ROLES: "worker" } });
    await until(() => server.output().includes("/metrics"), "the ready message");
    expect(server.output()).toContain("Roles    worker; console and API are at a process with the role api\n");
    expect(server.output()).toContain(`Health   ${server.url}/readyz\n`);
    expect(server.output()).not.toMatch(/Console|login#|API reference/);
    const { exit, stderr } = await startCli(["chain", "ls"], {
      MILLRACE_URL: server.url,
      MILLRACE_KEY: server.adminKey,
    }).ended;
    expect({ exit, stderr }).toEqual({
      exit: 1,
      stderr:
        "This process only has the role worker and does not take GET /api/v1/chains. " +
        "Call a process with the role api, or add it to --roles. [ROLE_MISSING]\n",
    });
  });
});

describe("stopping", () => {
  test("finishes the request in flight and exits with 0", async () => {
    const server = await startServer({ database: { url: database.url } });
    const request = await unfinishedRequest(server);
    server.kill("SIGTERM");
    await until(() => server.output().includes("Stopping"), "the stop to begin");
    expect(await request.finish()).toBe("HTTP/1.1 200 OK");
    expect(await server.exited).toBe(0);
  });

  async function interruptedStart(env: Record<string, string>) {
    const server = await database.db.exclusive(async (client) => {
      await client.query("select pg_advisory_lock(7400001)"); // The start waits here, as for a migration of another process.
      const starting = startCli(["serve", "--port", "0"], { DATABASE_URL: database.url, ...env });
      await until(() => asksForLock(client), "the start to wait");
      starting.kill("SIGTERM");
      await until(() => starting.stdout().includes("Stopping"), "the signal to arrive");
      return starting;
    });
    return server.ended;
  }

  test("during the start comes right after it, without the ready message", async () => {
    const { exit, stdout } = await interruptedStart({ MILLRACE_ADMIN_KEY: "x".repeat(32) });
    expect(exit).toBe(0);
    expect(stdout).not.toContain("/docs");
    expect(stdout).toContain("Stopped.");
  });

  test("during the first start still prints the admin key", async () => {
    await forgetAllKeys();
    const { exit, stdout } = await interruptedStart({});
    expect(exit).toBe(0);
    expect(stdout).toContain("Stopped.");
    const key = /Admin key +(mlr_\S+)/.exec(stdout)?.[1] ?? "none";
    const server = await startServer({ database: { url: database.url } });
    const used = await startCli(["keys", "list"], { MILLRACE_URL: server.url, MILLRACE_KEY: key }).ended;
    expect(used).toMatchObject({ exit: 0, stderr: "" });
  });

  test("closes connections after the grace period, says so, exits with 1 and leaves no Postgres running", async () => {
    const env = { MILLRACE_SHUTDOWN_GRACE_SECONDS: "1" };
    const server = await startServer({ database: { dataDir: await stoppedDataDir() }, env });
    const postmaster = postmasterOf(server);
    await unfinishedRequest(server);
    expect(await server.stop()).toBe(1);
    expect(server.output()).toContain("Work in flight did not finish within 1 s: closing its connections.");
    expect(() => process.kill(postmaster, 0)).toThrow("ESRCH");
  });

  test.runIf(process.env["MILLRACE_TEST_LONG"])(
    "leaves behind what does not end even when it is cut off, 10 s later",
    async () => {
      const env = { MILLRACE_SHUTDOWN_GRACE_SECONDS: "0" };
      const server = await startServer({ database: { url: database.url }, env });
      const file = { filename: "held-back.csv", shards: [0] };
      expect((await server.api.post("/api/v1/pipeline/files/register", file)).status).toBe(200);
      await database.db.exclusive(async (client) => {
        await client.query("begin; lock table tracking.pipeline_tracking in access exclusive mode");
        const move = server.api.post("/api/v1/pipeline/stages/event-ingest/done", { filename: file.filename });
        const cutOff = expect(move).rejects.toThrow("fetch failed");
        await until(() => serverIsBlocked(client), "the move to wait");
        expect(await server.stop()).toBe(1);
        await cutOff;
      });
      expect(server.output()).toContain("Something still does not stop after another 10 s: exiting without it.");
    },
  );

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("is immediate on another %s, with exit code %i", async (signal, code) => {
    const server = await startServer({ database: { url: database.url } });
    await unfinishedRequest(server);
    server.kill("SIGTERM");
    await until(() => server.output().includes("Stopping"), "the stop to begin");
    // Two signals in a row may be one Ctrl-C, so this one is repeated until it counts.
    const exited = server.exited.then((exit) => ({ exit }));
    let end: { exit: number | NodeJS.Signals } | undefined;
    while (!end) {
      server.kill(signal);
      end = await Promise.race([exited, sleep(50).then(() => undefined)]);
    }
    expect(end.exit).toBe(code);
    expect(server.output()).toContain(`${signal} again: stopping at once.`);
  });
});

describe("a start that cannot succeed ends with a message:", () => {
  async function refused(words: string[], env: Record<string, string>) {
    const { exit, stdout, stderr } = await startCli(["serve", ...words], env).ended;
    expect(stdout).toBe("");
    const lines = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
    return { exit, lines };
  }

  test("no database at that address", async () => {
    const { exit, lines } = await refused([], { DATABASE_URL: "postgres://u:secret@127.0.0.1:9/db" });
    expect(exit).toBe(1);
    expect(lines).toEqual([
      "The database at 127.0.0.1:9/db cannot be reached (ECONNREFUSED). Is it running, and is DATABASE_URL right?",
    ]);
  });

  test("no database of that name", async () => {
    const { exit, lines } = await refused([], { DATABASE_URL: database.url.replace(/millrace_test_\w+/, "nowhere") });
    expect(exit).toBe(1);
    expect(lines).toEqual([expect.stringMatching(/^The database at .*\/nowhere does not exist\. Create it/)]);
  });

  test("a port that is taken", async () => {
    const port = await takenPort();
    const { exit, lines } = await refused(["--port", String(port)], { DATABASE_URL: database.url });
    expect(exit).toBe(1);
    expect(lines).toEqual([
      `Port ${port} on 127.0.0.1 is taken. Stop what listens there, or choose another with --port.`,
    ]);
  });

  test("wrong settings, all of them at once, with exit code 2", async () => {
    const { exit, lines } = await refused(["--port", "99999"], {
      MILLRACE_ROLES: "api,schduler",
      DATABASE_URL: database.url,
    });
    expect(exit).toBe(2);
    expect(lines[0]).toBe("2 settings are wrong:");
    expect(lines.join("\n")).toContain("--port is `99999`");
    expect(lines.join("\n")).toContain("Did you mean `scheduler`?");
  });
});

test("without DATABASE_URL it runs its own Postgres, and leaves none running", async () => {
  const server = await startServer({ database: { dataDir: await newDataDir() } });
  expect((await server.api.get("/readyz")).status).toBe(200);
  expect((await server.api.get<string>("/api/v1/doctor")).status).toBe(200);
  const postmaster = postmasterOf(server);
  expect(await server.stop()).toBe(0);
  expect(() => process.kill(postmaster, 0)).toThrow("ESRCH");
});
