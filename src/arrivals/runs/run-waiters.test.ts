/** A waiter gets the result of its run, whichever process executes it and whatever follows. */
import { describe, expect, test } from "vitest";
import { ACTOR, arrival, held, useArrivalProcesses } from "../../../test/arrivals-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const { acts, define, ended, open, state } = useArrivalProcesses(database);
const DAY = "20250101";
const NEVER = new AbortController().signal;
const run = (generation: number) => ({ model_id: "m", op_time: DAY, generation });

describe("a waiter", () => {
  test("gets the result of a run in another process", async () => {
    const waits = await open({ roles: [] });
    await define(waits, "m", ["a"]);
    const { considered } = await waits.announce(arrival("a", DAY));
    expect(considered).toMatchObject([{ generation: 1 }]);
    const waited = waits.runWaiters.ended(run(1), NEVER);
    await open({ roles: ["worker"] });
    expect(await waited).toMatchObject({ status: "SUCCESS", generation: 1, storage_count: 1 });
  });

  test("gets the result of a run that has already ended", async () => {
    const process = await open();
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS");
    expect(await process.runWaiters.ended(run(1), NEVER)).toMatchObject({ status: "SUCCESS" });
  });

  test("gets a failure", async () => {
    const process = await open();
    acts.set("m", () => Promise.reject(new Error("no such column")));
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    expect(await process.runWaiters.ended(run(1), NEVER)).toMatchObject({
      status: "FAILED",
      message: "no such column",
    });
  });

  test("gets the result of its own run while the next one is in flight", async () => {
    const process = await open();
    await define(process, "m", ["a"]);
    const [first, second] = [held(), held()];
    acts.set("m", first.act);
    await process.announce(arrival("a", DAY));
    await first.begun();
    await process.announce(arrival("a", DAY));
    acts.set("m", second.act);
    first.release();
    await second.begun();
    expect(await process.runWaiters.ended(run(1), NEVER)).toMatchObject({ status: "SUCCESS", generation: 1 });
    const next = process.runWaiters.ended(run(2), NEVER);
    second.release();
    expect(await next).toMatchObject({ status: "SUCCESS", generation: 2 });
  });

  test("gets the result while the follow-up run still waits for a slot", async () => {
    const process = await open({ slots: 1 });
    await define(process, "m", ["a"]);
    await define(process, "other", ["b"]);
    const [first, other] = [held(), held()];
    acts.set("m", first.act);
    acts.set("other", other.act);
    await process.announce(arrival("a", DAY));
    await first.begun();
    await process.announce(arrival("b", DAY)); // Queued before the follow-up.
    await process.announce(arrival("a", DAY));
    const waited = process.runWaiters.ended(run(1), NEVER);
    first.release();
    await other.begun();
    expect(await waited).toMatchObject({ status: "SUCCESS", generation: 1 });
    expect(await state("m", DAY)).toBe("ready");
  });

  test("keeps waiting when a run is reclaimed, and gets the result of the next attempt", async () => {
    const process = await open({ roles: ["worker"] });
    await define(process, "m", ["a"]);
    const lost = held({ ignoresAbort: true });
    acts.set("m", lost.act);
    await process.announce(arrival("a", DAY));
    await lost.begun();
    const waited = process.runWaiters.ended(run(1), NEVER);
    await process.expireSession();
    acts.clear();
    const other = await open({ roles: ["worker"] });
    await other.worker.reclaimer?.runOnce();
    expect(await waited).toMatchObject({ status: "SUCCESS", generation: 1 });
  });

  test("gets the result even if the hint is lost", async () => {
    const process = await open({ roles: [] });
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    const waited = process.runWaiters.ended(run(1), NEVER);
    await database.query(
      `with ended as (update arrivals.model_instance set state = 'idle', ready_at = null, generation = 1)
       insert into arrivals.metrics_task_log (model_id, op_time, status, end_time, generation, trigger, consumed, worker)
       values ('m', $1, 'SUCCESS', now(), 1, 'arrival', '{}', 'w')`,
      [DAY],
    );
    await database.query("update arrivals.model_instance set state = 'idle', ready_at = null, generation = 1");
    expect(await waited).toMatchObject({ status: "SUCCESS" });
  });

  test.each([
    ["deleted", "remove"],
    ["unpublished", "setPublished"],
  ] as const)("stops waiting when the model is %s before the run started", async (_what, does) => {
    const process = await open({ roles: [] });
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    const waited = process.runWaiters.ended(run(1), NEVER);
    if (does === "remove") await process.models.remove("m", ACTOR);
    else await process.models.setPublished("m", false, ACTOR);
    expect(await waited).toBeUndefined();
  });

  test("stops when its signal aborts, and reads the database no more", async () => {
    const process = await open({ roles: [] });
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    const given = new AbortController();
    const waited = process.runWaiters.ended(run(1), given.signal);
    given.abort();
    expect(await waited).toBeUndefined();
    expect(await process.runWaiters.ended(run(1), given.signal)).toBeUndefined();
  });

  test("is ended by the stop of the process only if it passes the signal `closing`", async () => {
    const process = await open({ roles: [] });
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    const { runWaiters } = process;
    const request = runWaiters.ended(run(1), runWaiters.closing);
    const given = new AbortController();
    let isOver = false;
    const node = runWaiters.ended(run(1), given.signal).finally(() => {
      isOver = true;
    });
    runWaiters.stop();
    expect(await request).toBeUndefined();
    expect(isOver).toBe(false);
    given.abort();
    await until(() => isOver, "the other to end too");
    expect(await node).toBeUndefined();
  });
});
