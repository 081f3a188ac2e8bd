/** Hints of changes: how they travel between processes, what callers receive of them, and when a stream has a gap or ends. */
import { connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { openHintStream } from "../../../test/hint-stream.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { recordingLog, silentLog } from "../../../test/log.ts";
import { ADMIN_KEY } from "../../../test/millrace.ts";
import { signal, until } from "../../../test/until.ts";
import { CATALOGUE } from "../../modules.ts";
import { openDb } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { under } from "../http/server.ts";
import { openPulse, type Pulse } from "../work/pulse.ts";
import { openSession, type Session } from "../work/session.ts";
import { type Hints, openHints } from "./hints.ts";
import type { HintTable } from "./kinds.ts";
import { hintRoutes } from "./routes.ts";
import { createHintStreams, type HintStreams, type HintStreamsDeps } from "./stream.ts";

const database = useDatabase();
const ONE = statement("test.hints.one", "select 1");
const NOTIFY = statement(
  "test.hints.notify",
  "select pg_notify('millrace_hints', pg_current_xact_id()::text || ' ' || $1::text)",
);
const PID = statement<{ pid: number }>("test.hints.pid", "select pg_backend_pid() as pid");

const KINDS: HintTable = {
  apple: { scope: "admin", id: "", help: "" },
  run: { scope: "run:read", id: "", help: "" },
  asset: { scope: "lineage:read", id: "", help: "" },
};

/** A process, from the view of Postgres and of its callers. */
interface Process extends TestHttp {
  hints: Hints;
  pulse: Pulse;
  session: Session;
  streams: HintStreams;
  /** How many notifications it has sent. */
  sent(): number;
}

interface Options {
  limits?: HintStreamsDeps["limits"];
  anonymousScopes?: string[];
  /** The handler of `GET /slow`. */
  slow?: () => Promise<object>;
}

async function open({ limits, anonymousScopes = [], slow = async () => ({}) }: Options = {}) {
  let sent = 0;
  const db = openDb({
    connection: database.connection,
    onStatement: (name) => (sent += name === "kernel.hints.notify" ? 1 : 0),
  });
  const pulse = await openPulse({ db, log: silentLog });
  const session = await openSession({ pulse, log: silentLog, version: "0", roles: [] });
  const { hints, received, stop } = await openHints({ pulse, session, log: silentLog });
  const streams = createHintStreams({
    received,
    kinds: KINDS,
    scopes: CATALOGUE.scopes,
    ...(limits ? { limits } : {}),
  });
  const http = await startHttp({
    db,
    rev: received.rev,
    anonymousScopes,
    routes: (root) => {
      void under(root, "/api/v1", (api) => {
        hintRoutes(api, streams);
        api.get("/apples", { config: { scope: "admin" } }, async () => ({}));
        api.get("/slow", { config: { scope: "admin" } }, slow);
        api.post("/apples", { config: { scope: "admin" } }, async () => ({}));
      });
    },
  });
  onTestFinished(async () => {
    streams.stop();
    await http.stop();
    await stop();
    await session.close();
    await pulse.stop();
    await db.close();
  });
  return Object.assign(http, { hints, pulse, session, streams, sent: () => sent }) satisfies Process;
}

const keyOf = async (on: Process, scopes: string[], tenantId?: number) =>
  on.keys.create(database.db, { name: "reader", scopes, ...(tenantId === undefined ? {} : { tenantId }) }, "test");
const revOf = async (on: Process) => BigInt((await on.send("/api/v1/apples")).headers.get("millrace-rev") ?? "-1");

describe("a hint", () => {
  test("reaches the streams of all processes after the commit, with a rev that replies have from then on", async () => {
    const [here, there] = [await open(), await open()];
    const streams = await Promise.all([here, there].map(({ url }) => openHintStream(url)));
    await database.db.tx(async (tx) => {
      await tx.rows(ONE);
      here.hints.changed(tx, "apple", "a");
    });
    const hints = await Promise.all(streams.map((stream) => stream.hint("apple", "a")));
    expect(hints[0]).toEqual(hints[1]);
    for (const process of [here, there])
      expect(await revOf(process)).toBeGreaterThanOrEqual(BigInt(hints[0]?.rev ?? 0));
  });

  test("is not sent if the transaction is rolled back", async () => {
    const here = await open();
    const stream = await openHintStream(here.url);
    const refused = database.db.tx(async (tx) => {
      here.hints.changed(tx, "apple", "rolled back");
      await tx.rows(statement("test.hints.wrong", "select 1 / 0"));
    });
    await expect(refused).rejects.toThrow("division by zero");
    here.hints.changed(database.db, "apple", "end");
    await stream.hint("apple", "end");
    expect(stream.hints.map(({ id }) => id)).toEqual(["end"]);
  });

  test("is sent at once, and later ones together, each entity once", async () => {
    const here = await open();
    const stream = await openHintStream(here.url);
    const before = here.sent();
    here.hints.changed(database.db, "apple", "first");
    await stream.hint("apple", "first");
    for (let i = 0; i < 1_000; i += 1) here.hints.changed(database.db, "apple", `${i % 100}`);
    here.hints.changed(database.db, "run", "end");
    await stream.hint("run", "end");
    expect(here.sent() - before).toBe(2);
    expect(stream.hints).toHaveLength(102);
  });

  test("of nothing is not sent", async () => {
    const here = await open();
    const stream = await openHintStream(here.url);
    const before = here.sent();
    here.hints.changed(database.db, "apple", []);
    await new Promise(setImmediate); // Hints are sent after it.
    expect(here.sent() - before).toBe(0);
    here.hints.changed(database.db, "apple", "a");
    await stream.hint("apple", "a");
    expect(here.sent() - before).toBe(1);
  });

  test("of more than 200 entities of a kind is one for all of the kind", async () => {
    const here = await open();
    const stream = await openHintStream(here.url);
    const ids = (count: number) => Array.from({ length: count }, (_, i) => `${i}`);
    here.hints.changed(database.db, "apple", ids(201));
    here.hints.changed(database.db, "run", ids(200));
    await stream.hint("run", "199");
    expect(stream.hints.filter(({ kind }) => kind === "apple").map(({ id }) => id)).toEqual(["*"]);
    expect(stream.hints).toHaveLength(201);
  });

  test("with a long id is sent, and many of them in several notifications with their own revs", async () => {
    const here = await open();
    const stream = await openHintStream(here.url);
    const ids = Array.from({ length: 20 }, (_, i) => `${"水".repeat(500)}\u2028${i}`);
    here.hints.changed(database.db, "apple", ids);
    here.hints.changed(database.db, "run", ["x".repeat(9_000), "end"]);
    await stream.hint("run", "end");
    expect(stream.hints.filter(({ kind }) => kind === "apple").map(({ id }) => id)).toEqual(ids);
    expect(stream.hints.filter(({ kind }) => kind === "run").map(({ id }) => id)).toEqual(["*", "end"]);
    expect(new Set(stream.hints.map(({ rev }) => rev)).size).toBeGreaterThan(2);
  });
});

test("hints whose notification fails are sent again", async () => {
  const there = await open();
  const stream = await openHintStream(there.url);
  let failures = 0;
  const fails = async () => {
    failures += 1;
    throw new Error("the server refuses it");
  };
  const failing: Pulse = { ...there.pulse, rows: (...sent) => (failures === 0 ? fails() : there.pulse.rows(...sent)) };
  const log = recordingLog();
  const { hints, stop } = await openHints({ pulse: failing, session: there.session, log }); // The announcement fails.
  failures = 0;
  hints.changed(database.db, "apple", "refused once");
  await stream.hint("apple", "refused once");
  await stop();
  expect(log.lines.map(({ message }) => message)).toContain("hints of changes were not sent; they are sent later");
});

describe("a reply", () => {
  test("to a read has a rev from the start of the process; a reply to a write has none", async () => {
    const here = await open();
    expect(await revOf(here)).toBeGreaterThan(0n);
    expect((await here.send("/api/v1/apples", { body: {} })).headers.has("millrace-rev")).toBe(false);
    expect((await here.send("/api/v1/apples", { headers: { authorization: "Bearer x" } })).status).toBe(401);
  });

  test("of a process that starts later has a rev that is not lower than those before", async () => {
    const here = await open();
    const stream = await openHintStream(here.url);
    here.hints.changed(database.db, "apple", "a");
    const { rev } = await stream.hint("apple", "a");
    expect(await revOf(await open())).toBeGreaterThan(BigInt(rev));
  });
});

test("the rev of a reply is that of the arrival of the request, before anything is read", async () => {
  const [entered, release] = [signal(), signal()];
  const here = await open({
    slow: async () => {
      entered.resolve();
      await release.promise;
      return {};
    },
  });
  const stream = await openHintStream(here.url);
  const reply = here.send("/api/v1/slow");
  await entered.promise;
  here.hints.changed(database.db, "apple", "changed after the read");
  const { rev } = await stream.hint("apple", "changed after the read");
  release.resolve();
  expect(BigInt((await reply).headers.get("millrace-rev") ?? rev)).toBeLessThan(BigInt(rev));
});

describe("a stream", () => {
  test("that continues gets what it has missed, from any process, and no gap", async () => {
    const [here, there] = [await open(), await open()];
    const first = await openHintStream(here.url);
    here.hints.changed(database.db, "apple", "seen");
    await first.hint("apple", "seen");
    first.disconnect();
    const other = await openHintStream(there.url);
    here.hints.changed(database.db, "apple", "missed");
    await other.hint("apple", "missed");
    for (const { url } of [here, there]) {
      const second = await openHintStream(url, { after: first.lastId() });
      const third = await openHintStream(url, { query: `?after=${first.lastId()}` });
      for (const stream of [second, third]) {
        await stream.hint("apple", "missed");
        expect(stream.events).toEqual(["changes"]);
        expect(stream.hints.map(({ id }) => id)).toEqual(["missed"]);
      }
    }
  });

  test("that continues from the rev of a reply gets what was hinted later", async () => {
    const here = await open();
    const rev = await revOf(here);
    here.hints.changed(database.db, "apple", "a");
    const stream = await openHintStream(here.url, { query: `?after=${rev}` });
    await stream.hint("apple", "a");
    expect(stream.events).toEqual(["changes"]);
  });

  test("has a gap where its position is not known, is too old, or is no number", async () => {
    const here = await open();
    const stream = await openHintStream(here.url);
    const old = stream.lastId();
    await Promise.all(
      Array.from({ length: 30 }, (_, batch) => {
        const changes = Array.from({ length: 200 }, (__, i) => ({ kind: "apple", id: `${batch}.${i}` }));
        return notify(changes);
      }),
    );
    await until(() => stream.hints.length === 6_000, "all hints");
    for (const after of [old, "1", "99999999999999999999", "", "x", "-1"]) {
      const resumed = await openHintStream(here.url, { after });
      await until(() => resumed.events.length > 0, "the first event");
      expect(resumed.events, after).toEqual(["gap"]);
      expect(BigInt(resumed.lastId())).toBe(await revOf(here));
      resumed.disconnect();
    }
    expect((await here.send("/api/v1/events?after=x")).status).toBe(400);
  });

  test("has a gap after the connection of its process was lost, and goes on", async () => {
    const [here, there] = [await open(), await open()];
    const stream = await openHintStream(here.url);
    const [connection] = await here.pulse.rows(PID);
    const known = stream.lastId();
    await database.query("select pg_terminate_backend($1, 10000)", [connection?.pid]);
    there.hints.changed(database.db, "apple", "missed");
    await until(() => stream.events.length === 2, "the gap");
    expect(stream.events).toEqual(["gap", "gap"]);
    expect(BigInt(stream.lastId())).toBeGreaterThan(BigInt(known));
    there.hints.changed(database.db, "apple", "later");
    await stream.hint("apple", "later");
    const resumed = await openHintStream(here.url, { after: known });
    await until(() => resumed.events.length > 0, "the first event");
    expect(resumed.events).toEqual(["gap"]);
  });

  test("has one gap, wherever it is, after a process has died, whose last hints may not have been sent, and none after a stop", async () => {
    const [here, there, gone, stopped] = [await open(), await open(), await open(), await open()];
    const streams = await Promise.all([here, there].map(({ url }) => openHintStream(url)));
    async function beat(): Promise<void> {
      for (const { session } of [here, there])
        for (let count = 0; count < 5; count += 1) await session.service.runOnce();
      here.hints.changed(database.db, "apple", "after the heartbeats");
      for (const stream of streams) await stream.hint("apple", "after the heartbeats");
    }
    await stopped.session.close();
    await beat();
    for (const stream of streams) expect(stream.events).toEqual(["gap", "changes"]);
    const known = streams[0]?.lastId() ?? "";
    await database.query("update kernel.session set expires_at = now() where id = $1", [gone.session.id()]);
    for (const { session } of [here, there]) for (let count = 0; count < 5; count += 1) await session.service.runOnce();
    for (const stream of streams) {
      await until(() => stream.events.length === 3, "the gap");
      expect(stream.events).toEqual(["gap", "changes", "gap"]);
      expect(BigInt(stream.lastId())).toBeGreaterThan(BigInt(known));
    }
    const resumed = await openHintStream(here.url, { after: known });
    await until(() => resumed.events.length > 0, "the first event");
    expect(resumed.events).toEqual(["gap"]);
  });

  test("that has missed more than may stay unread has a gap instead, and stays open", async () => {
    const here = await open({ limits: { unreadBytes: 10_000 } });
    const stream = await openHintStream(here.url);
    const known = stream.lastId();
    for (let batch = 0; batch < 5; batch += 1) {
      const id = `${batch}${"x".repeat(3_000)}`;
      here.hints.changed(database.db, "apple", id);
      await stream.hint("apple", id);
    }
    const resumed = await openHintStream(here.url, { after: known });
    await until(() => resumed.events.length > 0, "the first event");
    expect(resumed.events).toEqual(["gap"]);
    here.hints.changed(database.db, "apple", "later");
    await resumed.hint("apple", "later");
  });

  test("misses nothing that its own process changed while the connection was lost", async () => {
    const [here, there] = [await open(), await open()];
    const stream = await openHintStream(there.url);
    const [connection] = await here.pulse.rows(PID);
    await database.query("select pg_terminate_backend($1, 10000)", [connection?.pid]);
    await until(() => !here.pulse.isConnected(), "the loss");
    here.hints.changed(database.db, "apple", "meanwhile");
    await stream.hint("apple", "meanwhile");
  });

  test("has only the kinds that the scopes of its key allow", async () => {
    const here = await open({ anonymousScopes: ["lineage:read"] });
    const reader = await openHintStream(here.url, { key: (await keyOf(here, ["run:read"])).key });
    const admin = await openHintStream(here.url);
    const anonymous = await openHintStream(here.url, { key: null });
    for (const kind of ["apple", "asset", "unknown", "run"]) here.hints.changed(database.db, kind, "x");
    await reader.hint("run", "x");
    await admin.hint("run", "x");
    expect(reader.hints.map(({ kind }) => kind)).toEqual(["run"]);
    expect(admin.hints.map(({ kind }) => kind)).toEqual(["apple", "asset", "run"]);
    await anonymous.hint("asset", "x");
    expect(anonymous.hints.map(({ kind }) => kind)).toEqual(["asset"]);
  });

  test("needs a key, unless anonymous callers have scopes", async () => {
    const here = await open();
    expect((await fetch(`${here.url}/api/v1/events`)).status).toBe(401);
  });

  test("of a key with a tenant has only hints of that tenant", async () => {
    const here = await open();
    const reader = await openHintStream(here.url, { key: (await keyOf(here, ["lineage:read"], 7)).key });
    const admin = await openHintStream(here.url);
    here.hints.changed(database.db, "asset", "theirs", { tenantId: 8 });
    here.hints.changed(database.db, "asset", "nobody's");
    here.hints.changed(database.db, "run", "r", { tenantId: 7 });
    here.hints.changed(database.db, "asset", "ours", { tenantId: 7 });
    await reader.hint("asset", "ours");
    expect(reader.hints.map(({ id }) => id)).toEqual(["ours"]);
    await admin.hint("asset", "ours");
    expect(admin.hints.map(({ id }) => id)).toEqual(["theirs", "nobody's", "r", "ours"]);
  });

  test("of a key with a tenant has no ids of others where very many tenants change", async () => {
    const here = await open();
    const reader = await openHintStream(here.url, { key: (await keyOf(here, ["lineage:read"], 7)).key });
    for (let tenantId = 100; tenantId < 1_200; tenantId += 1) {
      here.hints.changed(database.db, "asset", "theirs", { tenantId });
    }
    await reader.hint("asset", "*");
    expect(reader.hints.map(({ id }) => id)).toEqual(["*"]);
  });

  test("ends with a reason when its key is revoked", async () => {
    const here = await open();
    const { id, key } = await keyOf(here, ["run:read"]);
    const stream = await openHintStream(here.url, { key });
    await database.db.tx((tx) => here.keys.revoke(tx, id));
    await stream.ended;
    expect(stream.events).toEqual(["gap", "error"]);
  });

  test("ends at once when the server stops, and no other begins", async () => {
    const here = await open();
    const stream = await openHintStream(here.url);
    here.streams.stop();
    await stream.ended;
    expect(await here.send("/api/v1/events")).toMatchObject({ status: 503, body: { code: "SHUTTING_DOWN" } });
  });

  test("of a caller that does not read is closed", async () => {
    const here = await open({ limits: { unreadBytes: 100_000 } });
    const socket = connect(here.port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.write(`GET /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ADMIN_KEY}\r\n\r\n`);
    await new Promise((resolve) => socket.once("data", resolve));
    socket.pause();
    const closed = until(
      async () => /route="\/api\/v1\/events",status="499"\} [1-9]/.test(await here.metrics.render()),
      "the end of the stream",
    );
    const over = new AbortController();
    void closed.finally(() => over.abort());
    const changes = Array.from({ length: 100 }, (_, i) => ({ kind: "apple", id: `${"x".repeat(50)}${i}` }));
    while (!over.signal.aborted) await notify(changes);
    await closed;
  });
});

describe("the number of open streams", () => {
  test("is limited for each caller, and in all", async () => {
    const here = await open({ limits: { streams: 3, streamsOfCaller: 2 } });
    const [one, other] = [await keyOf(here, ["run:read"]), await keyOf(here, ["run:read"])];
    const streams = [
      await openHintStream(here.url, { key: one.key }),
      await openHintStream(here.url, { key: one.key }),
      await openHintStream(here.url, { key: other.key }),
    ];
    const ask = (key: string) => here.send("/api/v1/events", { headers: { authorization: `Bearer ${key}` } });
    expect(await ask(one.key)).toMatchObject({
      status: 429,
      body: { code: "TOO_MANY_STREAMS", details: { limit: 2 } },
    });
    const full = await ask(other.key);
    expect(full).toMatchObject({ status: 503, body: { code: "OVERLOADED" } });
    expect(Number(full.headers.get("retry-after"))).toBeGreaterThan(0);
    streams[0]?.disconnect();
    await until(async () => {
      const again = await openHintStream(here.url, { key: one.key, after: "1" });
      return again.response.status === 200;
    }, "room for another");
  });
});

/** As another process would send them. */
function notify(changes: readonly object[]): Promise<unknown> {
  return database.db.rows(NOTIFY, [JSON.stringify(changes)]);
}
