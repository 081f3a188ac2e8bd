import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { barrierOf, signal, until } from "../../../test/until.ts";
import {
  CommitWith,
  type Db,
  type DbOptions,
  isTimedOut,
  isUnavailable,
  openDb,
  type Queryable,
  sqlState,
} from "./db.ts";
import { statement } from "./statement.ts";

const database = useDatabase();

const INSERT = statement("test.db.insert", "insert into account values ($1, $2)");
const ADD = statement("test.db.add", "update account set amount = amount + $2 where id = $1");
const SUM = statement<{ sum: number }>("test.db.sum", "select coalesce(sum(amount), 0)::int as sum from account");
const SERIALIZABLE = statement("test.db.serializable", "set transaction isolation level serializable");
const CONFLICT = statement("test.db.conflict", "select conflict($1)");
const PID = statement<{ pid: number }>("test.db.pid", "select pg_backend_pid() as pid");
const FAIL = statement("test.db.fail", "select fail($1)");
const IDLE_SOON = statement("test.db.idle_soon", "set local idle_in_transaction_session_timeout = '1ms'");
const SLEEP = statement("test.db.sleep", "select pg_sleep(60)");

let db: Db;
let idleErrors: Error[];

beforeAll(async () => {
  await database.query("create table account (id int primary key, amount int not null)");
  await database.query("create sequence tries");
  await database.query(
    `create function conflict(failures int) returns void language plpgsql as $$ begin
       if nextval('tries') <= failures then raise serialization_failure; end if;
     end $$`,
  );
  await database.query(
    `create function fail(code text) returns void language plpgsql as $$ begin
       raise exception 'not now' using errcode = code;
     end $$`,
  );
});
beforeEach(async () => {
  idleErrors = [];
  db = open({ onIdleError: (error) => idleErrors.push(error) });
  await database.query("delete from account");
  await database.query("select setval('tries', 1, false)");
});
afterEach(() => db.close());

describe("a transaction", () => {
  test("shows its changes to others after the commit, and not before", async () => {
    await db.tx(async (tx) => {
      await tx.rows(INSERT, [1, 10]);
      expect(await amounts()).toEqual([]);
    });
    expect(await amounts()).toEqual([10]);
  });

  test("writes nothing when its work throws, and its connection is reused", async () => {
    const failing = db.tx(async (tx) => {
      await tx.rows(INSERT, [1, 10]);
      throw new Error("changed my mind");
    });
    await expect(failing).rejects.toThrow("changed my mind");
    expect(await amounts()).toEqual([]);
    expect(db.stats()).toEqual({ connections: 1, idle: 1, waiting: 0 });
  });

  test("runs statements that do not await each other in order, in one round trip", async () => {
    const [one, , sum] = await db.tx((tx) =>
      Promise.all([tx.rows(PID), tx.rows(INSERT, [1, 10]), tx.rows(SUM), tx.rows(INSERT, [2, 10])]),
    );
    expect(one).toHaveLength(1);
    expect(sum).toEqual([{ sum: 10 }]);
    expect(await amounts()).toEqual([10, 10]);
  });

  test("throws the error of the first statement that failed, and writes nothing of the others", async () => {
    const wrapped = async (rows: Promise<unknown>) => void (await rows); // Its failure is awaited later.
    const failing = db.tx((tx) =>
      Promise.all([tx.rows(INSERT, [1, 10]), wrapped(tx.rows(FAIL, ["P0001"])), tx.rows(SUM)]),
    );
    await expect(failing).rejects.toThrow("not now");
    expect(await amounts()).toEqual([]);
    // Statements that were not prepared because of the failure are prepared at their next use.
    expect(await db.tx((tx) => tx.rows(SUM))).toEqual([{ sum: 0 }]);
  });

  test("fails when the error of a statement was ignored", async () => {
    const careless = db.tx(async (tx) => {
      await tx.rows(INSERT, [1, 10]);
      await tx.rows(FAIL, ["P0001"]).catch(() => {});
    });
    await expect(careless).rejects.toThrow("nothing was committed");
    expect(await amounts()).toEqual([]);
  });

  test("refuses statements after it has ended", async () => {
    const kept = await db.tx(async (tx) => ({ tx }));
    await expect(kept.tx.rows(INSERT, [1, 10])).rejects.toThrow(
      "test.db.insert was sent after its transaction had ended",
    );
    expect(await amounts()).toEqual([]);
  });

  test("is committed together with its last statements", async () => {
    const sum = await db.tx(async (tx) => {
      await tx.rows(INSERT, [1, 10]);
      return new CommitWith(tx.rows(SUM));
    });
    expect(sum).toEqual([{ sum: 10 }]);
    expect(await amounts()).toEqual([10]);
  });

  test("writes nothing when one of its last statements fails, and runs again after a conflict", async () => {
    const failing = db.tx(async (tx) => {
      await tx.rows(INSERT, [1, 10]);
      return new CommitWith(tx.rows(FAIL, ["P0001"]));
    });
    await expect(failing).rejects.toThrow("not now");
    expect(await amounts()).toEqual([]);
    await db.tx(async (tx) => new CommitWith(Promise.all([tx.rows(INSERT, [1, 10]), tx.rows(CONFLICT, [2])])));
    expect(await amounts()).toEqual([10]);
    expect(db.stats()).toEqual({ connections: 1, idle: 1, waiting: 0 });
  });

  test("runs again after a serialization failure, with the changes of the other one", async () => {
    await database.query("insert into account values (1, 10), (2, 10)");
    let attempts = 0;
    const bothHaveRead = barrierOf(2);
    // Each may take 15 only while the two accounts have 20 together, so only one may.
    const withdraw = (id: number) =>
      db.tx(async (tx) => {
        attempts += 1;
        await tx.rows(SERIALIZABLE);
        const [row] = await tx.rows(SUM);
        await bothHaveRead();
        if (row?.sum === 20) await tx.rows(ADD, [id, -15]);
      });
    await Promise.all([withdraw(1), withdraw(2)]);
    expect(attempts).toBeGreaterThanOrEqual(3); // On a busy machine the two may conflict again.
    expect(new Set(await amounts())).toEqual(new Set([-5, 10]));
  });

  test("runs again after a deadlock", async () => {
    await database.query("insert into account values (1, 0), (2, 0)");
    let attempts = 0;
    const bothHoldOne = barrierOf(2);
    const move = (from: number, to: number) =>
      db.tx(async (tx) => {
        attempts += 1;
        await tx.rows(ADD, [from, -1]);
        await bothHoldOne();
        await tx.rows(ADD, [to, 1]);
      });
    await Promise.all([move(1, 2), move(2, 1)]);
    expect(attempts).toBeGreaterThanOrEqual(3); // On a busy machine the two may conflict again.
    expect(await amounts()).toEqual([0, 0]);
  });

  test("fails after eight attempts", async () => {
    let attempts = 0;
    const hopeless = db.tx(async (tx) => {
      attempts += 1;
      await tx.rows(CONFLICT, [1_000]);
    });
    await expect(hopeless).rejects.toMatchObject({ code: "40001" });
    expect(attempts).toBe(8);
  });

  test("releases its locks when its process is suspended during it", async () => {
    const limit = statement<{ limit: string }>(
      "test.db.idle_limit",
      "select current_setting('idle_in_transaction_session_timeout') as limit",
    );
    expect(await db.rows(limit)).toEqual([{ limit: "15s" }]);
  });

  test("is not run again after any other error", async () => {
    let attempts = 0;
    const duplicate = db.tx(async (tx) => {
      attempts += 1;
      await tx.rows(INSERT, [1, 10]);
      await tx.rows(INSERT, [1, 10]);
    });
    await expect(duplicate).rejects.toMatchObject({ code: "23505" });
    expect(attempts).toBe(1);
  });
});

describe("a single statement", () => {
  test("is retried after a serialization failure, a bounded number of times", async () => {
    await db.rows(CONFLICT, [2]);
    expect(await database.query("select last_value::int as tries from tries")).toEqual([{ tries: 3 }]);
    await expect(db.rows(CONFLICT, [1_000])).rejects.toMatchObject({ code: "40001" });
    expect(await database.query("select last_value::int as tries from tries")).toEqual([{ tries: 11 }]);
  });

  test("is prepared under its name, and again on the connection that replaces a broken one", async () => {
    const single = open({ poolSize: 1 });
    const prepared = statement<{ n: number }>(
      "test.db.prepared",
      "select count(*)::int as n from pg_prepared_statements where name = 'test.db.prepared'",
    );
    expect(await single.rows(prepared)).toEqual([{ n: 1 }]);
    await expect(single.tx(terminateItself)).rejects.toSatisfy(isUnavailable);
    expect(await single.rows(prepared)).toEqual([{ n: 1 }]);
    await single.close();
  });

  test("is measured by name, whether it succeeds or not", async () => {
    const measured: string[] = [];
    const watched = open({ onStatement: (name, seconds) => measured.push(`${name} ${seconds >= 0}`) });
    await watched.rows(PID);
    await expect(watched.rows(INSERT, [1, null])).rejects.toMatchObject({ code: "23502" });
    expect(measured).toEqual(["test.db.pid true", "test.db.insert true"]);
    await watched.close();
  });
});

describe("the read pool", () => {
  test("refuses to write", async () => {
    const refused = expect(db.read(INSERT, [1, 10])).rejects;
    await refused.toThrow("test.db.insert writes, but was run in the read-only pool");
    expect(await amounts()).toEqual([]);
  });

  test("reads of one walk use one connection, which others get after it", async () => {
    const pids = await db.reading(async (reader) => {
      const inner = await reader.reading((same) => same.read(PID));
      return [...inner, ...(await Promise.all([1, 2, 3].map(() => reader.read(PID)))).flat()];
    });
    expect(new Set(pids.map(({ pid }) => pid)).size).toBe(1);
    const failed = db.reading((reader) => reader.read(FAIL, ["23505"]));
    await expect(failed).rejects.toThrow();
    // More than the pool has: each is given back, also by the one that failed.
    await Promise.all(Array.from({ length: 12 }, () => db.reading((reader) => reader.read(PID))));
    expect(db.stats().waiting).toBe(0);
  });

  test("times statements out after ten seconds, and the hot path after a minute", async () => {
    const limit = statement<{ limit: string }>("test.db.limit", "select current_setting('statement_timeout') as limit");
    expect(await db.read(limit)).toEqual([{ limit: "10s" }]);
    expect(await db.rows(limit)).toEqual([{ limit: "1min" }]);
  });
});

describe("a connection that breaks", () => {
  test("during a statement fails it as unavailable, and the pool keeps working", async () => {
    const failed = expect(db.rows(SLEEP)).rejects.toSatisfy(isUnavailable);
    await terminate("state = 'active' and query like '%pg_sleep%'");
    await failed;
    expect(await db.rows(PID)).toHaveLength(1);
  });

  test("between two statements of a transaction fails the transaction, and not the process", async () => {
    let attempts = 0;
    const broken = db.tx(async (tx) => {
      attempts += 1;
      await tx.rows(INSERT, [1, 10]);
      await terminate("state = 'idle in transaction'");
      await tx.rows(INSERT, [2, 10]);
    });
    await expect(broken).rejects.toSatisfy(isUnavailable);
    expect(attempts).toBe(1);
    expect(await amounts()).toEqual([]);
    expect(await db.tx((tx) => tx.rows(PID))).toHaveLength(1);
  });

  test("while idle is logged and replaced", async () => {
    const [before] = await db.rows(PID);
    const logged = signal();
    const watched = open({ poolSize: 1, onIdleError: () => logged.resolve() });
    const [idle] = await watched.rows(PID);
    await terminate(`pid = ${idle?.pid}`);
    await logged.promise;
    const [after] = await watched.rows(PID);
    expect(after?.pid).not.toBe(idle?.pid);
    expect(await db.rows(PID)).toEqual([before]);
    expect(idleErrors).toEqual([]);
    await watched.close();
  });

  test("outside the pools does not end the process", async () => {
    const broken = db.exclusive(async (client) => {
      await client.query("select 1");
      await terminate("application_name = 'test db migrate'");
      await client.query("select 1");
    });
    await expect(broken).rejects.toSatisfy(isUnavailable);
  });
});

test("a database without a server is unavailable", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  const nowhere = openDb({ connection: { connectionString: `postgres://nobody@127.0.0.1:${port}/nothing` } });
  await expect(nowhere.rows(PID)).rejects.toSatisfy(isUnavailable);
  await expect(nowhere.tx((tx) => tx.rows(PID))).rejects.toSatisfy(isUnavailable);
  await nowhere.close();
});

describe("a server that cannot work now", () => {
  test.each([
    ["its disk is full", "53100"],
    ["it is out of memory", "53200"],
    ["it has no connection left", "53300"],
    ["it ended a transaction that was idle for too long", "25P03"],
  ])("is unavailable: %s", async (_, code) => {
    await expect(db.rows(FAIL, [code])).rejects.toSatisfy((error) => sqlState(error) === code && isUnavailable(error));
  });

  test("is unavailable once to a transaction that was idle for too long", async () => {
    const [before] = await db.rows(PID);
    const idle = db.tx(async (tx) => {
      await tx.rows(IDLE_SOON);
      await until(async () => (await alive(before?.pid)) === 0, "the server to end the connection");
      await tx.rows(PID);
    });
    await expect(idle).rejects.toSatisfy(isUnavailable);
    expect(await db.rows(PID)).not.toEqual([before]);
  });

  test("is unavailable for writes while it is a standby, and later transactions use a new connection", async () => {
    const single = open({ poolSize: 1 });
    const name = (await database.query<{ name: string }>("select current_database() as name"))[0]?.name;
    await database.query(`alter database ${name} set default_transaction_read_only = on`);
    const [before] = await single.rows(PID);
    const writing = single.tx((tx) => tx.rows(INSERT, [1, 10]));
    await expect(writing).rejects.toSatisfy((error) => sqlState(error) === "25006" && isUnavailable(error));
    await database.query(`alter database ${name} reset default_transaction_read_only`);
    await single.tx((tx) => tx.rows(INSERT, [1, 10]));
    expect(await amounts()).toEqual([10]);
    expect(await single.rows(PID)).not.toEqual([before]);
    await single.close();
  });

  const alive = async (pid: number | undefined) =>
    (await database.query("select from pg_stat_activity where pid = $1", [pid])).length;
});

test.each([
  ["a refused statement", { code: "23505" }],
  ["a cancelled statement", { code: "57014" }],
  ["an error of ours", new Error("no")],
  ["nothing at all", undefined],
])("%s is not unavailability", (_, error) => {
  expect(isUnavailable(error)).toBe(false);
});

test.each([
  ["that took too long", { code: "57014" }, true],
  ["that waited too long for a lock", { code: "55P03" }, true],
  ["that was refused", { code: "23505" }, false],
  ["that found nobody", { code: "ECONNREFUSED" }, false],
])("a statement %s is timed out or not", (_, error, expected) => {
  expect(isTimedOut(error)).toBe(expected);
});

test("sqlState reads the code of a Postgres error and of nothing else", () => {
  expect([sqlState({ code: "40001" }), sqlState(new Error("no")), sqlState(undefined), sqlState(null)]).toEqual([
    "40001",
    undefined,
    undefined,
    undefined,
  ]);
});

function open(options: Partial<DbOptions> = {}): Db {
  return openDb({ connection: database.connection, applicationName: "test db", ...options });
}

async function amounts(): Promise<number[]> {
  const rows = await database.query<{ amount: number }>("select amount from account order by id");
  return rows.map(({ amount }) => amount);
}

/** Terminates those connections of this file that meet the condition; there must be at least one. */
async function terminate(condition: string): Promise<void> {
  const text = `select pg_terminate_backend(pid, 10000) as ended from pg_stat_activity
                where datname = current_database() and application_name like 'test db%' and ${condition}`;
  for (;;) {
    if ((await database.query(text)).length > 0) return;
  }
}

async function terminateItself(tx: Queryable): Promise<void> {
  const [row] = await tx.rows(PID);
  await terminate(`pid = ${row?.pid}`);
  await tx.rows(PID);
}
