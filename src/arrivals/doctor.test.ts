/** The doctor finds each kind of violation that a test makes by hand, and nothing else. */
import { beforeEach, describe, expect, test } from "vitest";
import { ACTOR, type ArrivalProcess, arrival, held, useArrivalProcesses } from "../../test/arrivals-process.ts";
import { useDatabase } from "../../test/database.ts";
import { arrivalsChecks } from "./doctor.ts";
import { findViolations } from "./store/invariants.ts";

const database = useDatabase();
const { acts, define, ended, open } = useArrivalProcesses(database);
const DAY = "20250101";

const check = async (name: string) => {
  const found = arrivalsChecks.find((candidate) => candidate.name === name);
  if (!found) throw new Error(`there is no check ${name}`);
  return found.look(database.db);
};
const setInstance = (set: string, modelId = "m") =>
  database.query(`update arrivals.model_instance set ${set} where model_id = $1`, [modelId]);
const beginTask = (modelId: string, opTime: string) =>
  database.query(
    `insert into arrivals.metrics_task_log (model_id, op_time, generation, trigger, consumed, worker)
     values ($1, $2, 1, 'arrival', '{}', 'w')`,
    [modelId, opTime],
  );

let process: ArrivalProcess;
/** Model m has succeeded; model n is running. */
beforeEach(async () => {
  process = await open();
  await define(process, "m", ["a"]);
  await define(process, "n", ["b"]);
  const run = held();
  acts.set("n", run.act);
  await process.announce(arrival("b", DAY));
  await run.begun();
  await process.announce(arrival("a", DAY));
  await ended("SUCCESS");
});

describe("the check of the state of arrivals", () => {
  test("finds nothing wrong while models run", async () => {
    expect(await findViolations(database.db)).toEqual([]);
    expect(await check("arrivals state")).toMatchObject({ verdict: "ok" });
    expect(await check("model leases")).toEqual({ verdict: "ok", found: "In flight: 1 model run." });
  });

  test.each<[string, () => Promise<unknown>, rule: RegExp, undo: () => Promise<unknown>]>([
    [
      "a run without a running instance",
      () => beginTask("m", DAY),
      /exactly while one of its runs is RUNNING/,
      () => database.query("delete from arrivals.metrics_task_log where status = 'RUNNING' and model_id = 'm'"),
    ],
    [
      "two runs with the same fence",
      async () => {
        await beginTask("m", "other");
        await database.query(
          `insert into arrivals.model_instance (model_id, op_time, state, generation, session_id, fence)
           select 'm', 'other', state, 1, session_id, fence from arrivals.model_instance where state = 'running'`,
        );
      },
      /share a fence/,
      () => process.models.remove("m", ACTOR),
    ],
    [
      "a run of another generation",
      () => setInstance("generation = 7", "n"),
      /with the same generation/,
      () => setInstance("generation = 1", "n"),
    ],
    [
      "values of a run that is not the newest",
      () => database.query("update arrivals.metrics_kpi_data set task_id = 0"),
      /all from its newest success/,
      () => database.query("delete from arrivals.metrics_kpi_data"),
    ],
    [
      "something used that the newest success did not use",
      () => setInstance("consumed = '{}'"),
      /those of its newest success/,
      () => setInstance("consumed = null"),
    ],
    [
      "something used that has not arrived",
      () => database.query("update arrivals.metrics_etl_log set sequence = 0 where table_name = 'a'"),
      /only tables that have arrived/,
      () => setInstance("consumed = null"),
    ],
  ])("finds %s", async (_what, setup, rule, undo) => {
    await setup();
    const violations = await findViolations(database.db);
    expect(violations).toMatchObject([{ rule: expect.stringMatching(rule), count: 1 }]);
    expect(await check("arrivals state")).toMatchObject({
      verdict: "broken",
      found: expect.stringMatching(rule),
      advice: expect.stringContaining("bug"),
    });
    expect(violations[0]?.example).toMatch(/^[mn] \w+$/);
    await undo(); // The invariants are checked again after the test.
  });
});

describe("the check of the leases of models", () => {
  test("finds a run whose session expired and that was not reclaimed", async () => {
    await database.query("update kernel.session set expires_at = now() - interval '100 s'");
    const { verdict, found } = await check("model leases");
    expect(verdict).toBe("broken");
    expect(found).toMatch(/expired 100 s ago/);
  });

  test("finds a run whose session no longer exists", async () => {
    await setInstance("session_id = 987654321", "n");
    expect(await check("model leases")).toMatchObject({
      verdict: "broken",
      found: "In flight: 1 model run. Held by a process that no longer exists: 1.",
    });
  });
});

describe("the check of the queue of models", () => {
  test("warns of models that have waited too long", async () => {
    await process.worker.stop();
    await process.requests.run("m", { opTime: DAY, force: false }, ACTOR);
    expect(await check("model queue")).toMatchObject({ verdict: "ok" });
    await database.query(
      "update arrivals.model_instance set ready_at = now() - interval '1000 s' where state = 'ready'",
    );
    expect(await check("model queue")).toMatchObject({
      verdict: "warning",
      found: expect.stringMatching(/has waited for 1000 s; live workers: 1/),
      advice: expect.stringContaining("arrivals.slots"),
    });
    await database.query("update kernel.session set expires_at = now() where closed_at is null");
    expect(await check("model queue")).toMatchObject({ advice: "Start a process with the role `worker`." });
  });
});
