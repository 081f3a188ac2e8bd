/** The leased worker on a real Postgres: slots, lost answers, lost leases, results that cannot be written, and the stop. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog } from "../../../test/log.ts";
import { signal, until } from "../../../test/until.ts";
import type { Db } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { leaseOn } from "./lease.ts";
import { createLeaseWorker, type LeaseWorker } from "./lease-worker.ts";
import { openPulse, type Pulse } from "./pulse.ts";
import { LeaseLost, type RunControl, ShuttingDown } from "./run-control.ts";
import { openSession, type Session } from "./session.ts";
import { createWake, type Wake } from "./wake.ts";

const database = useDatabase();
const TOPIC = "test.errands";
const LOST_LIMIT = 3;
const CHECK_INTERVAL_MS = 200;
/** How long a stop waits for aborted runs. */
const STOP_GRACE_MS = 2_000;

const lease = leaseOn({
  name: "test.chore",
  table: "chore",
  key: { id: "int4" },
  state: { column: "state", ready: ["ready"], leased: "leased", dead: "dead" },
  orderBy: "t.id",
  fence: "fence",
  hold: { by: "session", session: "session_id" },
  lost: { column: "lost_count", error: "error" },
  outcomes: { done: { set: "state = 'done', fence = null, result = i.result", values: { result: "text" } } },
});

const READY = statement("test.chore.ready", "select from chore where state = 'ready' limit 1");

type Chore = { id: number; fence: string };
type Result = Chore & { result: string };

interface WorkerOptions {
  db?: Db;
  slots?: number;
  drainSeconds?: number;
  abortGraceSeconds?: number;
  settle?: (results: readonly Result[]) => Promise<void>;
  /** Resolves when claimed items may run. */
  prepare?: () => Promise<void>;
}

let pulse: Pulse;
let wake: Wake;
let session: Session;
let open: { stop(): Promise<void> }[];
let run: (chore: Chore, control: RunControl) => Promise<string>;
let began: number[];
/** How often a worker has asked whether a chore is ready. */
let asked: number;
let batches: number[];
const log = recordingLog();

beforeAll(async () => {
  pulse = await openPulse({ db: database.db, log });
  await database.query(
    `create table chore (id int primary key, state text not null default 'ready', session_id bigint, fence bigint,
       lost_count int not null default 0, error text, result text)`,
  );
});
afterAll(() => pulse.stop());
beforeEach(async () => {
  await database.query("truncate chore, kernel.session");
  wake = createWake();
  session = await openSession({ pulse, log, version: "0", roles: [] });
  open = [];
  began = [];
  asked = 0;
  batches = [];
  log.lines.length = 0;
  run = async () => "done";
});
afterEach(() => Promise.all(open.map((worker) => worker.stop())));

function workerOf(options: WorkerOptions = {}): LeaseWorker<Chore> {
  const { db = database.db } = options;
  const settle = async (results: readonly Result[]) => {
    batches.push(results.length);
    await lease.finish(db, "done", results);
  };
  const worker = createLeaseWorker<Chore, Chore, Result, Chore>({
    name: "chores",
    session,
    wake,
    log,
    slots: options.slots ?? 10,
    drainSeconds: options.drainSeconds ?? 0,
    checkIntervalMs: CHECK_INTERVAL_MS,
    ...(options.abortGraceSeconds === undefined ? {} : { abortGraceSeconds: options.abortGraceSeconds }),
    queues: [
      {
        name: "chores.claim",
        topics: [TOPIC],
        claim: (limit, holder) => lease.claim(db, { limit, holder }),
        isReady: async () => {
          asked += 1;
          return (await db.rows(READY)).length > 0;
        },
      },
    ],
    async prepare(claimed) {
      await options.prepare?.();
      return claimed;
    },
    async run(chore, control) {
      began.push(chore.id);
      return { ...chore, result: await run(chore, control) };
    },
    settle: options.settle ?? settle,
    held: (holder) => lease.heldBy(db, holder),
    release: (chores) => lease.release(db, chores),
    lose: (chores) => lease.lose(db, chores, LOST_LIMIT),
    reclaim: async (limit) => (await lease.reclaim(db, { limit, lostLimit: LOST_LIMIT })).length,
    fields: ({ id }) => ({ id }),
  });
  open.push(worker);
  return worker;
}

function started(options?: WorkerOptions): LeaseWorker<Chore> {
  const worker = workerOf(options);
  worker.start();
  return worker;
}

const add = async (count = 1) =>
  void (await database.query("insert into chore (id) select generate_series(1, $1::int)", [count]));
const rows = () =>
  database.query<{ id: number; state: string; lost: number; error: string | null; result: string | null }>(
    "select id, state, lost_count as lost, error, result from chore order by id",
  );
const states = async () => (await rows()).map(({ state }) => state);
const all = (state: string) =>
  until(async () => (await states()).every((one) => one === state), `all chores to be ${state}`);
const logged = (message: string) => log.lines.filter((line) => line.message === message);

/** A database whose statements fail on demand, before or after their effect. */
function failing(fails: (name: string) => "before" | "after" | undefined, error: object): Db {
  return {
    ...database.db,
    async rows(sent, values) {
      const when = fails(sent.name);
      if (when === "before") throw Object.assign(new Error("failed"), error);
      const answer = await database.db.rows(sent, values);
      if (when === "after") throw Object.assign(new Error("failed"), error);
      return answer;
    },
  };
}

/** True for the first use of this statement. */
function once(name: string, when: "before" | "after") {
  let left = 1;
  return (used: string) => {
    if (used !== name || left === 0) return undefined;
    left -= 1;
    return when;
  };
}

const CUT = { code: "ECONNRESET" };
const CANCELLED = { code: "57014" };
const REFUSED = { code: "22021" };

describe("a worker", () => {
  test("runs at most as many at once as it has slots, and fills each free slot", async () => {
    let now = 0;
    let most = 0;
    run = async () => {
      now += 1;
      most = Math.max(most, now);
      await new Promise(setImmediate);
      now -= 1;
      return "done";
    };
    await add(50);
    started({ slots: 3 });
    await all("done");
    expect(most).toBe(3);
    expect(began.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
  });

  test("claims an item that was locked during its claim by a transaction that is rolled back", async () => {
    await add(2);
    const rollback = new Error("rolled back");
    const locking = database.db.tx(async (tx) => {
      await tx.rows(statement("test.chore.lock", "select from chore where id = 1 for update"));
      const worker = started();
      await until(async () => (await states())[1] === "done", "the chore that is not locked");
      await worker.nextRun();
      throw rollback;
    });
    await expect(locking).rejects.toBe(rollback);
    await all("done");
  });

  test("asks nothing while its slots are full or nothing is ready", async () => {
    const work = signal();
    run = () => work.promise.then(() => "done");
    await add(2);
    const worker = started({ slots: 1 });
    await until(() => began.length === 1, "the first run");
    await worker.runOnce();
    const before = asked;
    await new Promise((resolve) => void setTimeout(resolve, 100));
    expect(asked).toBe(before);
    work.resolve();
    await all("done");
    await worker.idle();
    const next = worker.nextRun();
    worker.wake();
    await next;
    expect(asked).toBeGreaterThan(before);
    const after = asked;
    await new Promise((resolve) => void setTimeout(resolve, 100));
    expect(asked).toBe(after);
  });

  test("writes the results of many runs together", async () => {
    await add(40);
    started({ slots: 40 });
    await all("done");
    expect(batches.length).toBeLessThanOrEqual(3);
    expect(batches.reduce((sum, size) => sum + size, 0)).toBe(40);
  });

  test("claims after a hint", async () => {
    const worker = workerOf();
    const first = worker.nextRun();
    worker.start();
    await first;
    await add();
    wake.hint(TOPIC);
    await all("done");
  });

  test("runs adopted items in the reserved slots, and frees the other slots", async () => {
    const worker = workerOf({ slots: 2 });
    expect(worker.reserve(5)).toBe(2);
    expect(worker.reserve(1)).toBe(0);
    await add();
    const claimed = await lease.claim(database.db, { limit: 1, holder: session.id() });
    worker.adopt(claimed, 2);
    await worker.idle();
    expect(await states()).toEqual(["done"]);
    expect(worker.reserve(5)).toBe(2);
  });
});

describe("an answer that was lost", () => {
  test("to a claim: the items are released without counting a loss, and run", async () => {
    await add(2);
    started({ db: failing(once("test.chore.claim", "after"), CUT) });
    await all("done");
    expect(await rows()).toMatchObject([{ lost: 0 }, { lost: 0 }]);
    expect(new Set(began)).toEqual(new Set([1, 2]));
    expect(began).toHaveLength(2);
    expect(logged("items that were held but not in flight were released")).toHaveLength(1);
  });

  test("to a claim that is committed later: the items are still found", async () => {
    await add();
    const worker = started({ db: failing(once("test.chore.claim", "before"), CUT) });
    await worker.checker.nextRun();
    await worker.checker.nextRun(); // Twice, before the commit.
    await lease.claim(database.db, { limit: 1, holder: session.id() });
    await all("done");
    expect(await rows()).toMatchObject([{ lost: 0 }]);
  });

  test("to the write of a result: it is written again without effect", async () => {
    await add();
    started({ db: failing(once("test.chore.done", "after"), CUT) });
    await all("done");
    expect(began).toEqual([1]);
  });

  test("to a release: it is tried again", async () => {
    await add();
    let fails = 2;
    const claimFails = once("test.chore.claim", "after");
    const db = failing((name) => {
      if (name !== "test.chore.release") return claimFails(name);
      fails -= 1;
      return fails >= 0 ? "before" : undefined;
    }, CUT);
    started({ db });
    await all("done");
    expect(fails).toBeLessThan(0);
  });
});

describe("a result", () => {
  test("whose write was cancelled is written again; the item does not run twice", async () => {
    await add();
    started({ db: failing(once("test.chore.done", "before"), CANCELLED) });
    await all("done");
    expect(began).toEqual([1]);
  });

  test("that can never be written loses its item, which is dead after too many losses", async () => {
    await add();
    started({ db: failing((name) => (name === "test.chore.done" ? "before" : undefined), REFUSED) });
    await all("dead");
    expect(await rows()).toMatchObject([{ lost: 3, error: "lost 3 workers in a row" }]);
    expect(began).toEqual([1, 1, 1]);
    expect(logged("an item could not be finished; it is released")).toHaveLength(3);
  });

  test("that lacks a value is refused, and erases nothing", async () => {
    await add();
    const [claimed] = await lease.claim(database.db, { limit: 1, holder: session.id() });
    const incomplete = [{ ...(claimed as Chore) }] as unknown as Result[];
    expect(() => lease.finish(database.db, "done", incomplete)).toThrow("test.chore.done needs a value for result");
    expect(await states()).toEqual(["leased"]);
  });
});

describe("a lease that was lost", () => {
  test("aborts the run, and its result changes nothing", async () => {
    await add();
    const aborted = signal<unknown>();
    run = (_, control) => {
      control.signal.addEventListener("abort", () => aborted.resolve(control.reason));
      return aborted.promise.then(() => "late");
    };
    const worker = started();
    await until(() => began.length === 1, "the run to begin");
    await database.query("update chore set state = 'done', fence = null, session_id = null, result = 'by another'");
    expect(await aborted.promise).toBeInstanceOf(LeaseLost);
    await worker.idle();
    expect(await rows()).toMatchObject([{ state: "done", result: "by another" }]);
    expect(batches).toEqual([]);
  });

  test("frees the slot of a run that ignores its signal", async () => {
    await add(2);
    const stubborn = signal<string>();
    run = ({ id }) => (id === 1 ? stubborn.promise : Promise.resolve("done"));
    const worker = started({ slots: 1, abortGraceSeconds: 0 });
    await until(() => began.length === 1, "the run to begin");
    await database.query("update chore set state = 'done', fence = null, session_id = null where id = 1");
    await all("done");
    stubborn.resolve("late");
    await worker.idle();
    expect(await rows()).toMatchObject([{ result: null }, { result: "done" }]);
    expect(logged("a run does not react to its abort signal and is abandoned")).toHaveLength(1);
  });

  test("because its session expired is reclaimed by another process, and counted", async () => {
    await add();
    const gate = signal<string>();
    run = () => gate.promise;
    const suspended = workerOf();
    await suspended.runOnce();
    await database.query("update kernel.session set expires_at = now() where id = $1", [session.id()]);
    session = await openSession({ pulse, log, version: "0", roles: [] });
    run = async () => "in time";
    const other = workerOf();
    expect(await other.reclaimer?.runOnce()).toEqual({ reclaimed: 1 });
    await other.runOnce();
    await other.idle();
    gate.resolve("late");
    await suspended.idle();
    expect(await rows()).toMatchObject([{ state: "done", lost: 1, result: "in time" }]);
  });
});

describe("a stop", () => {
  test("waits for runs that end in time, and claims nothing more", async () => {
    await add(2);
    const gate = signal<string>();
    run = () => gate.promise;
    const worker = started({ slots: 1, drainSeconds: 30 });
    await until(() => began.length === 1, "the run to begin");
    const stopped = worker.stop();
    gate.resolve("in time");
    await stopped;
    expect(await rows()).toMatchObject([{ state: "done", result: "in time" }, { state: "ready" }]);
  });

  test.each(["reacts to its signal", "does not"])("releases a run that %s, without counting a loss", async (how) => {
    await add();
    let reason: unknown;
    run = (_, control) =>
      new Promise((_resolve, reject) => {
        control.signal.addEventListener("abort", () => {
          reason = control.reason;
          if (how === "reacts to its signal") reject(control.reason);
        });
      });
    const worker = started();
    await until(() => began.length === 1, "the run to begin");
    await worker.stop();
    expect(reason).toBeInstanceOf(ShuttingDown);
    expect(await rows()).toMatchObject([{ state: "ready", lost: 0 }]);
  });
});

describe("a stop that meets an item in between", () => {
  test("waits for a result that is being written, however long the drain was", async () => {
    await add();
    const written = signal();
    const settle = async (results: readonly Result[]) => {
      await written.promise;
      await lease.finish(database.db, "done", results);
    };
    const worker = started({ settle });
    await until(() => began.length === 1, "the run to begin");
    await until(async () => (await states())[0] === "leased" && worker.inFlight() === 1, "the result to be written");
    const stopped = worker.stop();
    setTimeout(written.resolve, STOP_GRACE_MS + 200);
    await stopped;
    expect(await rows()).toMatchObject([{ state: "done", lost: 0 }]);
  });

  test("releases what was being adopted instead of running it", async () => {
    await add();
    const prepared = signal();
    const worker = workerOf({ prepare: () => prepared.promise });
    expect(worker.reserve(1)).toBe(1);
    worker.adopt(await lease.claim(database.db, { limit: 1, holder: session.id() }), 1);
    const stopped = worker.stop();
    prepared.resolve();
    await stopped;
    expect(began).toEqual([]);
    expect(await rows()).toMatchObject([{ state: "ready", lost: 0 }]);
  });
});

test("an item whose preparation takes long is not given back meanwhile", async () => {
  await add();
  const prepared = signal();
  const worker = started({ prepare: () => prepared.promise });
  await until(async () => (await states())[0] === "leased", "the claim");
  worker.answerLost(); // So that it checks.
  for (let look = 0; look < 4; look += 1) await worker.checker.nextRun();
  expect(await states()).toEqual(["leased"]);
  prepared.resolve();
  await all("done");
  expect(began).toEqual([1]);
});

describe("hold", () => {
  test("returns what is still held, and locks it until the transaction ends", async () => {
    await add(2);
    const claimed = await lease.claim(database.db, { limit: 2, holder: session.id() });
    const [one, other] = claimed as [Chore, Chore];
    let stolen: Promise<unknown> = Promise.resolve();
    const held = await database.db.tx(async (tx) => {
      const still = await lease.hold(tx, [one, { ...other, fence: "1" }]);
      let isTaken = false;
      stolen = lease.release(database.db, [one]).then(() => (isTaken = true));
      await until(
        async () => (await database.query("select from pg_locks where not granted")).length > 0,
        "the release to wait",
      );
      expect(isTaken).toBe(false);
      return still;
    });
    expect(held).toEqual([{ id: one.id }]);
    await stolen;
    expect(await states()).toEqual(["ready", "leased"]);
  });
});
