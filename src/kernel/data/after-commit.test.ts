import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { barrierOf, signal, until } from "../../../test/until.ts";
import { CommitWith, type Db, openDb, type Tx } from "./db.ts";
import { guarded } from "./savepoint.ts";
import { statement } from "./statement.ts";

const database = useDatabase();
const INSERT = statement("test.after_commit.insert", "insert into account values ($1, $2)");
const ADD = statement("test.after_commit.add", "update account set amount = amount + $2 where id = $1");
const SUM = statement<{ sum: number }>("test.after_commit.sum", "select sum(amount)::int as sum from account");
const SERIALIZABLE = statement("test.after_commit.serializable", "set transaction isolation level serializable");
const HOLD_COMMITS = statement("test.after_commit.hold", "select pg_advisory_xact_lock(1)");

let db: Db;
let failures: unknown[];
/** The calls after a commit, in order. */
let called: string[];

beforeAll(async () => {
  await database.query("create table account (id int primary key deferrable initially deferred, amount int not null)");
  await database.query(
    `create function wait_in_commit() returns trigger language plpgsql as $$ begin
       perform pg_advisory_xact_lock(1);
       return null;
     end $$`,
  );
});
beforeEach(async () => {
  failures = [];
  called = [];
  db = openDb({ connection: database.connection, onAfterCommitError: (error) => failures.push(error) });
  await database.query("delete from account");
});
afterEach(() => db.close());

const call = (tx: Tx, name: string) => tx.afterCommit(() => called.push(name));

describe("a function for after the commit", () => {
  test("is called after the server has committed, not during the commit", async () => {
    await database.query(
      `create constraint trigger slow after insert on account deferrable initially deferred
       for each row execute function wait_in_commit()`,
    );
    const [held, release] = [signal(), signal()];
    const holding = database.db.tx(async (tx) => {
      await tx.rows(HOLD_COMMITS);
      held.resolve();
      await release.promise;
    });
    await held.promise;
    let seen: Promise<number[]> | undefined;
    const transaction = db.tx(async (tx) => {
      tx.afterCommit(() => {
        seen = amounts(); // On another connection.
      });
      await tx.rows(INSERT, [1, 10]);
    });
    await until(async () => (await waitingForLock()) === 1, "the commit to be held up");
    expect(seen).toBeUndefined();
    release.resolve();
    await Promise.all([holding, transaction]);
    expect(await seen).toEqual([10]);
    await database.query("drop trigger slow on account");
  });

  test("is called in the order of registration, once, before the transaction resolves", async () => {
    const again = () => called.push("again");
    const answer = db.tx(async (tx) => {
      call(tx, "first");
      tx.afterCommit(again);
      tx.afterCommit(again);
      call(tx, "last");
      await tx.rows(INSERT, [1, 10]);
      expect(called).toEqual([]);
    });
    await answer.then(() => called.push("answered"));
    expect(called).toEqual(["first", "again", "last", "answered"]);
  });

  test("is called even if the commit is sent with the last statements", async () => {
    const sum = await db.tx(async (tx) => {
      call(tx, "after");
      await tx.rows(INSERT, [1, 10]);
      return new CommitWith(tx.rows(SUM));
    });
    expect([sum, called]).toEqual([[{ sum: 10 }], ["after"]]);
  });

  test("is called when the connection is free again", async () => {
    await db.tx(async (tx) => {
      tx.afterCommit(() => called.push(`idle: ${db.stats().idle}`));
      await tx.rows(INSERT, [1, 10]);
    });
    expect(called).toEqual(["idle: 1"]);
  });

  test("is not called when the work throws", async () => {
    const failing = db.tx(async (tx) => {
      call(tx, "after");
      await tx.rows(INSERT, [1, 10]);
      throw new Error("changed my mind");
    });
    await expect(failing).rejects.toThrow("changed my mind");
    expect(called).toEqual([]);
  });

  test("is not called when the commit fails", async () => {
    const failing = db.tx(async (tx) => {
      call(tx, "after");
      await tx.rows(INSERT, [1, 10]);
      await tx.rows(INSERT, [1, 10]); // Fails at the commit, because the key is deferred.
    });
    await expect(failing).rejects.toMatchObject({ code: "23505" });
    expect(called).toEqual([]);
  });

  test("is not called when the server answers the commit with a rollback", async () => {
    const careless = db.tx(async (tx) => {
      call(tx, "after");
      await tx.rows(INSERT, [1, null]).catch(() => {});
    });
    await expect(careless).rejects.toThrow("nothing was committed");
    expect(called).toEqual([]);
  });

  test("is called for the attempt that was committed, and dropped with those that were rolled back", async () => {
    await database.query("insert into account values (1, 10), (2, 10)");
    const attempts = new Map<number, number>();
    const bothHaveRead = barrierOf(2);
    const withdraw = (id: number) =>
      db.tx(async (tx) => {
        const attempt = (attempts.get(id) ?? 0) + 1;
        attempts.set(id, attempt);
        call(tx, `${id} at attempt ${attempt}`);
        await tx.rows(SERIALIZABLE);
        const [row] = await tx.rows(SUM);
        await bothHaveRead();
        if (row?.sum === 20) await tx.rows(ADD, [id, -15]);
      });
    await Promise.all([withdraw(1), withdraw(2)]);
    expect((attempts.get(1) ?? 0) + (attempts.get(2) ?? 0)).toBeGreaterThanOrEqual(3);
    expect(called.toSorted()).toEqual([1, 2].map((id) => `${id} at attempt ${attempts.get(id)}`));
  });

  test("is dropped if its guarded part fails, and kept otherwise", async () => {
    await db.tx(async (tx) => {
      call(tx, "before");
      const failing = guarded(tx, async (own) => {
        call(own, "failed");
        await guarded(own, async (inner) => call(inner, "within the failed"));
        throw new Error("not this");
      });
      await expect(failing).rejects.toThrow("not this");
      await guarded(tx, async (own) => {
        await guarded(own, async (inner) => call(inner, "inner"));
        call(own, "outer");
      });
      call(tx, "after");
    });
    expect(called).toEqual(["before", "inner", "outer", "after"]);
  });

  test("cannot fail the transaction or later functions", async () => {
    const broken = new Error("a bug");
    const answer = await db.tx(async (tx) => {
      tx.afterCommit(() => {
        throw broken;
      });
      call(tx, "behind");
      await tx.rows(INSERT, [1, 10]);
      return "done";
    });
    expect([answer, called, failures]).toEqual(["done", ["behind"], [broken]]);
    expect(await amounts()).toEqual([10]);
  });
});

test("is refused after the transaction or its guarded part has ended", async () => {
  const kept = await db.tx(async (tx) => {
    const own = await guarded(tx, async (part) => ({ part }));
    expect(() => call(own.part, "late")).toThrow("after the work that it belongs to had ended");
    return { tx };
  });
  expect(() => call(kept.tx, "late")).toThrow("after its transaction had ended");
  expect(called).toEqual([]);
});

async function amounts(): Promise<number[]> {
  const rows = await database.query<{ amount: number }>("select amount from account order by id");
  return rows.map(({ amount }) => amount);
}

async function waitingForLock(): Promise<number> {
  const rows = await database.query("select from pg_locks where locktype = 'advisory' and not granted and objid = 1");
  return rows.length;
}
