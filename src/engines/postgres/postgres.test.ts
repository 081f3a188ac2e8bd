import { type AddressInfo, connect, createServer } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { type Engine, EngineRefusal, type Engines, type QueryOptions } from "../engine.ts";
import { createEngines } from "../engines.ts";

const SECRET = "correct-horse";
const ENDLESS = "select pg_sleep(3600)";

const database = useDatabase();
let engines: Engines;
let warehouse: Engine;
beforeAll(() => {
  engines = createEngines({ warehouse: { kind: "postgres", url: database.url } }, { lakeDir: undefined });
  warehouse = engines.get("warehouse");
});
afterAll(() => engines.close());

const query = (sql: string, options: Partial<QueryOptions> = {}) =>
  warehouse.query(sql, { signal: new AbortController().signal, rowsMax: 10, ...options });
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );
const backends = () =>
  database.query<{ pid: number; state: string; query: string }>(
    // Other tests have a warehouse too, in databases of their own.
    `select pid, state, query from pg_stat_activity
     where application_name = 'millrace warehouse' and datname = current_database()`,
  );
const running = async (sql: string) =>
  (await backends()).filter((backend) => backend.query === sql && backend.state === "active");
const sleeping = () => running(ENDLESS);
/** The error of a cancelled query comes before the server has ended it. */
const expectEnded = (sql: string) => expect.poll(() => running(sql)).toEqual([]);

async function sleepers() {
  return until(async () => {
    const found = await sleeping();
    return found.length > 0 && found;
  }, "the query");
}

test("an aborted query ends on the server too, also while all connections are in use", async () => {
  const abort = new AbortController();
  const endless = Array.from({ length: 4 }, () => failureOf(query(ENDLESS, { signal: abort.signal })));
  await until(async () => (await sleeping()).length === 4, "four queries");
  expect(await backends()).toHaveLength(4);
  const reason = new Error("stop");
  abort.abort(reason);
  expect(await Promise.all(endless)).toEqual([reason, reason, reason, reason]);
  await expectEnded(ENDLESS);
});

test("no more than four queries run at a time", async () => {
  const abort = new AbortController();
  const endless = Array.from({ length: 6 }, () => failureOf(query(ENDLESS, { signal: abort.signal })));
  await until(async () => (await sleeping()).length === 4, "four queries");
  abort.abort(new Error("stop"));
  await Promise.all(endless);
  expect((await backends()).length).toBeLessThanOrEqual(4);
});

test("rows that the caller does not read wait on the server", async () => {
  const sql = "select repeat('x', 1000) as x, generate_series(1, 50000) as i";
  const stream = () => warehouse.stream(sql, { signal: new AbortController().signal, rowsMax: 50_000 });
  const waiting = stream()[Symbol.asyncIterator]();
  await waiting.next();
  // Long enough for other readers to receive all rows twice.
  for (const rows of [stream(), stream()]) for await (const _ of rows);
  const blocked = await database.query(
    "select 1 from pg_stat_activity where query = $1 and state = 'active' and wait_event = 'ClientWrite'",
    [sql],
  );
  expect(blocked).toHaveLength(1);
  await waiting.return?.();
  await expectEnded(sql);
});

test("a query that returns too many rows ends on the server too", async () => {
  const sql = "select generate_series(1, 1000000000) as i";
  const rows = warehouse.stream(sql, { signal: new AbortController().signal, rowsMax: 10_000 });
  const counted = async () => {
    for await (const _ of rows);
  };
  await expect(counted()).rejects.toThrow("more than 10000 rows");
  await expectEnded(sql);
});

test("a server that does not answer is not healthy", async () => {
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const url = `postgres://me@127.0.0.1:${(silent.address() as AddressInfo).port}/db`;
  const own = createEngines({ silent: { kind: "postgres", url } }, { lakeDir: undefined });
  await expect(own.get("silent").health()).rejects.toThrow(/time|longer/);
  await own.close();
  silent.close();
});

test("settings, locks and sequences of a session end with the query", async () => {
  await query("set search_path to nowhere; select pg_advisory_lock(1)");
  expect((await query("select current_setting('search_path') as p")).rows).not.toEqual([{ p: "nowhere" }]);
  const [lock] = await database.query("select 1 from pg_locks where locktype = 'advisory' and objid = 1");
  expect(lock).toBeUndefined();
});

test("several statements may not use parameters", async () => {
  const failure = await failureOf(query("select 1; select $a::int", { params: { a: 1 } }));
  expect(failure).toBeInstanceOf(EngineRefusal);
  expect(String(failure)).toContain("multiple commands");
  expect((await query("select 1 as a; select 2 as b", { params: { unused: 1 } })).rows).toEqual([{ b: 2 }]);
});

test("the rows of an earlier statement are not mistaken for those of the last", async () => {
  expect(await query("select 1 as a; select 2 as a where false")).toMatchObject({ columns: ["a"], rows: [] });
});

test("a refusal contains the detail and the hint", async () => {
  await query("create table keyed (a int primary key); insert into keyed values (1)");
  await expect(query("insert into keyed values (1)")).rejects.toThrow(
    new EngineRefusal('duplicate key value violates unique constraint "keyed_pkey". Key (a)=(1) already exists.'),
  );
  await expect(query("select upper(1)")).rejects.toThrow(/ does not exist\. No function matches/);
});

test("a connection that the server closes, and a time-out of the server, may be retried", async () => {
  const ended = failureOf(query(ENDLESS));
  const [backend] = await sleepers();
  await database.query("select pg_terminate_backend($1)", [backend?.pid]);
  for (const failure of [await ended, await failureOf(query(`set statement_timeout = 10; ${ENDLESS}`))]) {
    expect(failure).toBeInstanceOf(Error);
    expect(failure).not.toBeInstanceOf(EngineRefusal);
  }
  expect((await query("select 1 as a")).rows).toEqual([{ a: 1 }]);
});

test("a server that cannot be reached, or refuses the login, may be retried, and the error has no password", async () => {
  const port = await unusedPort();
  for (const url of [
    `postgres://me:${SECRET}@127.0.0.1:${port}/db`,
    `postgres://me:${SECRET}@127.0.0.1:99999/db`,
    `postgres://me:${SECRET}%zz@/`,
    database.url.replace(/\/[^/?]*\?/, "/no_such_database?"),
  ]) {
    const own = createEngines({ lost: { kind: "postgres", url } }, { lakeDir: undefined });
    const failure = await failureOf(
      own.get("lost").query("select 1", { signal: new AbortController().signal, rowsMax: 1 }),
    );
    expect(failure).toBeInstanceOf(Error);
    expect(failure).not.toBeInstanceOf(EngineRefusal);
    expect(JSON.stringify([String(failure), failure])).not.toContain(SECRET);
    await own.close();
  }
});

test("a connection is closed when its query cannot be cancelled", async () => {
  const { url, close } = await throughOneConnection(database.url);
  const own = createEngines({ warehouse: { kind: "postgres", url } }, { lakeDir: undefined });
  const abort = new AbortController();
  const endless = failureOf(own.get("warehouse").query(ENDLESS, { signal: abort.signal, rowsMax: 1 }));
  const [backend] = await sleepers();
  abort.abort(new Error("stop"));
  expect(await endless).toEqual(new Error("stop"));
  await database.query("select pg_terminate_backend($1)", [backend?.pid]);
  await own.close();
  await close();
});

/** A proxy to the same database that accepts one connection and no more. */
async function throughOneConnection(given: string): Promise<{ url: string; close(): Promise<unknown> }> {
  const target = new URL(given);
  const host = target.searchParams.get("host") ?? target.hostname;
  const port = Number(target.port || 5432);
  const proxy = createServer((socket) => {
    proxy.maxConnections = 1;
    const onward = connect(host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port });
    socket.pipe(onward).pipe(socket);
    socket.on("error", () => onward.destroy());
    onward.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  target.searchParams.delete("host");
  target.hostname = "127.0.0.1";
  target.port = String((proxy.address() as AddressInfo).port);
  return { url: target.href, close: () => new Promise((resolve) => proxy.close(resolve)) };
}

async function unusedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
