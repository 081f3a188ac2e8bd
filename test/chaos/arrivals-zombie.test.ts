/**
 * A process is suspended in the middle of a model's run, for longer than its session lives, and then goes on as if nothing
 * had happened. The model has run elsewhere: what the first has to say does not count, and it works on with a new session.
 */
import { expect, test } from "vitest";
import { findViolations } from "../../src/arrivals/store/invariants.ts";
import { announce, defineModel, endSessionOf, openPlant, valuesOf } from "../arrivals-plant.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";

const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
const [DAY, NEXT_DAY] = ["20250101", "20250102"];

const database = useDatabase();

test("a process suspended past its session changes nothing, and works on", { timeout: 90_000 }, async () => {
  const plant = await openPlant(database);
  const [api, zombie] = await Promise.all([plant.start("api,scheduler"), plant.start("worker")]);
  await defineModel(api);
  await announce(api.api, DAY);
  await plant.began(DAY, 1);
  zombie.kill("SIGSTOP");
  if (!LONG) await endSessionOf(database, zombie.pid);

  const successor = await plant.start("worker");
  await plant.began(DAY, 2);
  await plant.openGate(DAY, 2);
  await plant.ended(DAY, "SUCCESS");
  const everything = async () => [
    await database.query("select * from arrivals.metrics_task_log order by id"),
    await database.query("select * from arrivals.metrics_kpi_data"),
    await database.query("select * from arrivals.model_instance"),
  ];
  const before = await everything();

  // Its gate is open before it wakes, so it has its result before it can learn how late it is.
  await plant.openGate(DAY, 1);
  zombie.kill("SIGCONT");
  // Whichever comes first: its result, or the heartbeat that finds its session expired.
  const dropped = [
    "a model's run ended too late and was dropped",
    "a run lost its lease; it is aborted and its result dropped",
  ];
  await until(() => dropped.some((message) => zombie.logged(message).length === 1), "the late result to be dropped");
  expect(await everything()).toEqual(before);
  expect(await valuesOf(api, DAY)).toEqual([[2, 1]]);

  expect(await successor.stop()).toBe(0);
  await until(() => zombie.output().includes("it goes on with a new session"), "it to learn that it was silent");
  await announce(api.api, NEXT_DAY);
  await plant.openGate(NEXT_DAY, 1);
  await plant.ended(NEXT_DAY, "SUCCESS");
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([zombie.stop(), api.stop()])).toEqual([0, 0]);
});
