/** Runs of models in processes that stop, whose session expires, or that lose track of what they claimed. */
import { describe, expect, test } from "vitest";
import { ACTOR, type ArrivalProcess, arrival, held, useArrivalProcesses } from "../../../test/arrivals-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import type { Db } from "../../kernel/data/db.ts";

const database = useDatabase();
const processes = useArrivalProcesses(database);
const { acts, begun, define, ended, open, state, tasks, emitted, values } = processes;
const DAY = "20250101";

const reclaim = (process: ArrivalProcess) => process.worker.reclaimer?.runOnce();
const outcomes = async () => (await tasks()).map(({ status, generation }) => `${status} ${generation}`);

describe("a worker", () => {
  test("runs a model once, when the last of its tables has arrived", async () => {
    const process = await open();
    await define(process, "m", ["a", "b"]);
    await process.announce(arrival("a", DAY));
    expect(await state("m", DAY)).toBe("waiting");
    await process.announce(arrival("b", DAY));
    await ended("SUCCESS");
    expect(await values()).toEqual([`m.K ${DAY} 1 1`]);
    expect(await emitted()).toEqual([`kpi.updated m ${DAY} 1`]);
    expect(begun).toEqual([`m ${DAY}`]);
  });

  test("runs at most as many at once as it has slots, and finally all", async () => {
    const process = await open({ slots: 4 });
    const all = held();
    const names = Array.from({ length: 12 }, (_, index) => `m${index}`);
    for (const name of names) {
      acts.set(name, all.act);
      await define(process, name, ["a"]);
    }
    await process.announce(arrival("a", DAY));
    await all.begun(4);
    expect(await database.query("select from arrivals.model_instance where state = 'running'")).toHaveLength(4);
    all.release();
    await ended("SUCCESS", names.length);
    expect(process.mostAtOnce).toBe(4);
    expect(begun.sort()).toEqual(names.map((name) => `${name} ${DAY}`).sort());
  });

  test("shares 100 models that are ready at once with another", async () => {
    const [one, other] = [await open({ slots: 5 }), await open({ slots: 5 })];
    const names = Array.from({ length: 100 }, (_, index) => `m${index}`);
    for (const name of names) await define(one, name, ["a"]);
    await one.announce(arrival("a", DAY));
    await ended("SUCCESS", 100);
    expect(new Set(begun).size).toBe(100);
    expect(begun).toHaveLength(100);
    expect(Math.max(one.mostAtOnce, other.mostAtOnce)).toBeLessThanOrEqual(5);
    expect(await values()).toHaveLength(100);
  });

  test("runs a model exactly once more for all that arrives during a run", async () => {
    const process = await open();
    await define(process, "m", ["a", "b"]);
    const first = held();
    acts.set("m", first.act);
    for (const table of ["a", "b"]) await process.announce(arrival(table, DAY));
    await first.begun();
    for (const table of ["a", "b", "a"]) {
      const { considered } = await process.announce(arrival(table, DAY));
      expect(considered).toMatchObject([{ verdict: { kind: "running" }, generation: 2 }]);
    }
    acts.set("m", () => [{ kpi_id: "m.K", value: 2 }]);
    first.release(1);
    await ended("SUCCESS", 2);
    await until(async () => (await state("m", DAY)) === "idle", "the model to be done");
    expect(await outcomes()).toEqual(["SUCCESS 1", "SUCCESS 2"]);
    expect(await values()).toEqual([`m.K ${DAY} 2 2`]);
  });
});

describe("a process that stops", () => {
  test("waits for a run that ends in time", async () => {
    const process = await open();
    await define(process, "m", ["a"]);
    const run = held();
    acts.set("m", run.act);
    await process.announce(arrival("a", DAY));
    await run.begun();
    const stopped = process.worker.stop();
    run.release(7);
    await stopped;
    expect(await outcomes()).toEqual(["SUCCESS 1"]);
    expect(await values()).toEqual([`m.K ${DAY} 7 1`]);
  });

  test("releases a run that takes longer, and another process runs it with the same generation", async () => {
    const process = await open();
    await define(process, "m", ["a"]);
    const long = held();
    acts.set("m", long.act);
    await process.announce(arrival("a", DAY));
    await long.begun();
    await process.worker.stop();
    expect(await state("m", DAY)).toBe("ready");
    expect(await tasks()).toMatchObject([{ status: "FAILED", generation: 1, message: "its process was shut down" }]);
    expect(await emitted()).toEqual([]);

    acts.clear();
    await open();
    await ended("SUCCESS");
    expect(await outcomes()).toEqual(["FAILED 1", "SUCCESS 1"]);
    expect(await values()).toEqual([`m.K ${DAY} 1 1`]);
  });

  test("claims nothing more", async () => {
    const process = await open();
    await define(process, "m", ["a"]);
    await process.worker.stop();
    await process.announce(arrival("a", DAY));
    expect(await state("m", DAY)).toBe("ready");
    expect(begun).toEqual([]);
  });
});

describe("a process whose session expires", () => {
  test("loses its run to another, and its late result is dropped", async () => {
    // Its only slot stays taken, so it does not claim the run again before it notices that its session has expired.
    const zombie = await open({ roles: ["worker"], slots: 1 });
    await define(zombie, "m", ["a"]);
    const late = held({ ignoresAbort: true });
    acts.set("m", late.act);
    await zombie.announce(arrival("a", DAY));
    await late.begun();
    await zombie.expireSession();

    acts.set("m", () => [{ kpi_id: "m.K", value: 2 }]);
    const other = await open({ roles: [] });
    expect(await reclaim(other)).toEqual({ reclaimed: 1 });
    other.worker.start();
    await ended("SUCCESS");
    const before = [await tasks(), await values(), await emitted()];
    late.release(666);
    const dropped = "a model's run ended after its lease was lost; its result is dropped";
    await until(() => zombie.logged.some(({ message }) => message === dropped), "the late end to be dropped");
    expect([await tasks(), await values(), await emitted()]).toEqual(before);
    expect(await outcomes()).toEqual(["FAILED 1", "SUCCESS 1"]);
    expect((await tasks())[0]?.message).toBe("the process that ran it was lost");
    expect(await values()).toEqual([`m.K ${DAY} 2 1`]);
  });

  test("has its run reclaimed together with what arrived meanwhile", async () => {
    const zombie = await open({ roles: ["worker"] });
    await define(zombie, "m", ["a"]);
    acts.set("m", held().act);
    await zombie.announce(arrival("a", DAY));
    await until(() => begun.length === 1, "the run to begin");
    await zombie.announce(arrival("a", DAY));
    await zombie.expireSession();
    acts.clear();
    const other = await open({ roles: ["worker"] });
    await reclaim(other);
    await ended("SUCCESS");
    expect(await outcomes()).toEqual(["FAILED 1", "SUCCESS 1"]); // One, for both arrivals.
  });

  test("is followed by at most `lostLimit` attempts; a new arrival starts a new count", async () => {
    const lostLimit = 2;
    acts.set("m", held().act);
    /** A process that can no longer reach the database is as good as dead. */
    const loseOne = async () => {
      const process = { isDead: false };
      const whileAlive = <T>(work: () => Promise<T>) =>
        process.isDead ? Promise.reject<T>(new Error("the process is dead")) : work();
      const through = (db: Db): Db => ({
        ...db,
        rows: (...args) => whileAlive(() => db.rows(...args)),
        tx: (work) => whileAlive(() => db.tx(work)),
      });
      const victim = await open({ roles: ["worker"], lostLimit, through });
      await until(() => begun.length > 0, "the run to begin");
      process.isDead = true;
      await victim.expireSession();
      begun.length = 0;
      return reclaim(definer);
    };
    const definer = await open({ roles: [], lostLimit });
    await define(definer, "m", ["a"]);
    await definer.announce(arrival("a", DAY));
    await loseOne();
    expect(await state("m", DAY)).toBe("ready");
    await loseOne();
    expect(await state("m", DAY)).toBe("idle");
    expect(await emitted()).toEqual([`model.failed m ${DAY} 1`]);

    await definer.announce(arrival("a", DAY));
    await loseOne();
    expect(await state("m", DAY)).toBe("ready");
    // The run after a failure has another generation.
    expect((await outcomes()).slice(0, 3)).toEqual(["FAILED 1", "FAILED 1", "FAILED 2"]);
  });

  test("has all its runs reclaimed, more than fit in one batch", async () => {
    const process = await open({ roles: [] });
    await define(process, "m", ["a"]);
    await database.query(
      `insert into arrivals.model_instance (model_id, op_time, state, generation, trigger, session_id, fence)
       select 'm', 'T' || n, 'running', 1, 'arrival', 987654321, -n from generate_series(1, 450) n`,
    );
    await database.query(
      `insert into arrivals.metrics_task_log (model_id, op_time, generation, trigger, consumed, worker)
       select model_id, op_time, 1, 'arrival', '{}', 'gone' from arrivals.model_instance`,
    );
    process.worker.reclaimer?.start();
    await until(async () => (await state("m", "T450")) === "ready", "the last to be reclaimed");
    expect(await database.query("select from arrivals.model_instance where state = 'running'")).toEqual([]);
  });
});

describe("a process whose database fails", () => {
  /** Fails the next use of a statement, as when the connection breaks before it is sent. */
  function failing(statement: string) {
    const armed = { times: 0 };
    const through = (db: Db): Db => ({
      ...db,
      rows: (sent, given) => {
        if (sent.name !== statement || armed.times === 0) return db.rows(sent, given);
        armed.times -= 1;
        return Promise.reject(new Error("Connection terminated unexpectedly"));
      },
    });
    return { armed, through };
  }

  test("releases what it claimed and could not start", async () => {
    const { armed, through } = failing("arrivals.model.find_many");
    const process = await open({ through });
    await define(process, "m", ["a"]);
    armed.times = 1;
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS"); // After two checks of what it holds.
    expect(await outcomes()).toEqual(["FAILED 1", "SUCCESS 1"]);
    expect((await tasks())[0]?.message).toBe("its process lost track of it");
  });
});

describe("a model", () => {
  test("may be deleted while it runs, and created again", async () => {
    const process = await open();
    await define(process, "m", ["a"]);
    const run = held();
    acts.set("m", run.act);
    await process.announce(arrival("a", DAY));
    await run.begun();
    await process.models.remove("m", ACTOR);
    expect(await tasks()).toMatchObject([{ status: "FAILED", message: "the model was deleted" }]);

    acts.clear();
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS");
    run.release(666);
    await until(() => process.logged.length > 0, "the run of the deleted model to be dropped");
    expect(await values()).toEqual([`m.K ${DAY} 1 1`]);
  });

  test("that a person forces stays ready when one of its tables arrives", async () => {
    const process = await open({ roles: ["scheduler"] });
    await define(process, "m", ["a", "b", "c"]);
    await process.requests.run("m", { opTime: DAY, force: true }, ACTOR);
    await process.announce(arrival("a", DAY));
    expect(await state("m", DAY)).toBe("ready");
    await open({ roles: ["worker"] });
    expect(await ended("SUCCESS")).toMatchObject([{ generation: 1 }]);
  });

  test("that was unpublished during its quiet period becomes idle when the timer is due", async () => {
    const process = await open({ roles: [] });
    await define(process, "m", ["a"], { dependencies: [{ table: "a", quietSeconds: 3_600 }] });
    await process.announce(arrival("a", DAY));
    await database.query("update arrivals.metrics_model set state = 0"); // As when both happen at the same moment.
    await database.query("update arrivals.model_instance set due_at = now()");
    await process.timers.runOnce();
    expect(await state("m", DAY)).toBe("idle");
  });

  test("runs after its quiet period, counted from the last arrival", async () => {
    const process = await open();
    await define(process, "m", ["a"], { dependencies: [{ table: "a", quietSeconds: 1 }] });
    for (let n = 0; n < 3; n += 1) await process.announce(arrival("a", DAY));
    expect(await state("m", DAY)).toBe("quiet");
    await ended("SUCCESS");
    expect(begun).toHaveLength(1);
  });
});
