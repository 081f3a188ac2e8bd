/** Whoever waits for a run hears how that run ended, whichever process does it and whatever follows. */
import { describe, expect, test } from "vitest";
import { ACTOR, arrival, held, useArrivalProcesses } from "../../../test/arrivals-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const { acts, define, ended, open, state } = useArrivalProcesses(database);
const DAY = "20250101";
const NEVER = new AbortController().signal;
const run = (generation: number) => ({ model_id: "m", op_time: DAY, generation });

describe("who waits for a run", () => {
  test("hears of one that another process does", async () => {
    const waits = await open({ roles: [] });
    await define(waits, "m", ["a"]);
    const { considered } = await waits.announce(arrival("a", DAY));
    expect(considered).toMatchObject([{ generation: 1 }]);
    const told = waits.waitingRoom.ended(run(1), NEVER);
    await open({ roles: ["worker"] });
    expect(await told).toMatchObject({ status: "SUCCESS", generation: 1, storage_count: 1 });
  });

  test("hears of one that ended before", async () => {
    const process = await open();
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    await ended("SUCCESS");
    expect(await process.waitingRoom.ended(run(1), NEVER)).toMatchObject({ status: "SUCCESS" });
  });

  test("hears of a failure", async () => {
    const process = await open();
    acts.set("m", () => Promise.reject(new Error("no such column")));
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    expect(await process.waitingRoom.ended(run(1), NEVER)).toMatchObject({
      status: "FAILED",
      message: "no such column",
    });
  });

  test("hears how its own ended while the next one is under way", async () => {
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
    expect(await process.waitingRoom.ended(run(1), NEVER)).toMatchObject({ status: "SUCCESS", generation: 1 });
    const next = process.waitingRoom.ended(run(2), NEVER);
    second.release();
    expect(await next).toMatchObject({ status: "SUCCESS", generation: 2 });
  });

  test("hears at once of one that is to be followed, though nobody does that yet", async () => {
    const process = await open({ slots: 1 });
    await define(process, "m", ["a"]);
    await define(process, "other", ["b"]);
    const [first, other] = [held(), held()];
    acts.set("m", first.act);
    acts.set("other", other.act);
    await process.announce(arrival("a", DAY));
    await first.begun();
    await process.announce(arrival("b", DAY)); // Is in line before the follow-up.
    await process.announce(arrival("a", DAY));
    const told = process.waitingRoom.ended(run(1), NEVER);
    first.release();
    await other.begun();
    expect(await told).toMatchObject({ status: "SUCCESS", generation: 1 });
    expect(await state("m", DAY)).toBe("ready");
  });

  test("waits on when a run is taken back, and hears of the one in its place", async () => {
    const process = await open({ roles: ["worker"] });
    await define(process, "m", ["a"]);
    const lost = held({ stubborn: true });
    acts.set("m", lost.act);
    await process.announce(arrival("a", DAY));
    await lost.begun();
    const told = process.waitingRoom.ended(run(1), NEVER);
    await process.fallSilent();
    acts.clear();
    const other = await open({ roles: ["worker"] });
    await other.worker.reclaimer?.runOnce();
    expect(await told).toMatchObject({ status: "SUCCESS", generation: 1 });
  });

  test("notices an end that nobody told of", async () => {
    const process = await open({ roles: [] });
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    const told = process.waitingRoom.ended(run(1), NEVER);
    await database.query(
      `with ended as (update arrivals.model_instance set state = 'idle', ready_at = null, generation = 1)
       insert into arrivals.metrics_task_log (model_id, op_time, status, end_time, generation, trigger, consumed, worker)
       values ('m', $1, 'SUCCESS', now(), 1, 'arrival', '{}', 'w')`,
      [DAY],
    );
    await database.query("update arrivals.model_instance set state = 'idle', ready_at = null, generation = 1");
    expect(await told).toMatchObject({ status: "SUCCESS" });
  });

  test.each([
    ["deleted", "remove"],
    ["unpublished", "setPublished"],
  ] as const)("waits no more when the model is %s before it began", async (_what, does) => {
    const process = await open({ roles: [] });
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    const told = process.waitingRoom.ended(run(1), NEVER);
    if (does === "remove") await process.models.remove("m", ACTOR);
    else await process.models.setPublished("m", false, ACTOR);
    expect(await told).toBeUndefined();
  });

  test("may give up, and asks the database no more", async () => {
    const process = await open({ roles: [] });
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    const enough = new AbortController();
    const told = process.waitingRoom.ended(run(1), enough.signal);
    enough.abort();
    expect(await told).toBeUndefined();
    expect(await process.waitingRoom.ended(run(1), enough.signal)).toBeUndefined();
  });

  test("is let go by a process that stops only if it wants to be", async () => {
    const process = await open({ roles: [] });
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    const { waitingRoom } = process;
    const request = waitingRoom.ended(run(1), waitingRoom.closing);
    const enough = new AbortController();
    let isOver = false;
    const node = waitingRoom.ended(run(1), enough.signal).finally(() => {
      isOver = true;
    });
    waitingRoom.stop();
    expect(await request).toBeUndefined();
    expect(isOver).toBe(false);
    enough.abort();
    await until(() => isOver, "the other to be let go as well");
    expect(await node).toBeUndefined();
  });
});
