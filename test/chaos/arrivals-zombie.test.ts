/**
 * A process is suspended during a model's run until its session has expired, and then resumed. Another process has run the
 * model meanwhile: the late result is dropped, and the resumed process continues with a new session.
 */
import { expect, test } from "vitest";
import { findViolations } from "../../src/arrivals/store/invariants.ts";
import { announce, defineModel, endSessionOf, setUpServers, valuesOf } from "../arrivals-servers.ts";
import { useDatabase } from "../database.ts";
import { until } from "../until.ts";

const LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
const [DAY, NEXT_DAY] = ["20250101", "20250102"];

const database = useDatabase();

test("a process suspended past its session changes nothing and keeps working", { timeout: 90_000 }, async () => {
  const setup = await setUpServers(database);
  const [api, zombie] = await Promise.all([setup.start("api,scheduler"), setup.start("worker")]);
  await defineModel(api);
  await announce(api.api, DAY);
  await setup.began(DAY, 1);
  zombie.kill("SIGSTOP");
  if (!LONG) await endSessionOf(database, zombie.pid);

  const successor = await setup.start("worker");
  await setup.began(DAY, 2);
  await setup.openGate(DAY, 2);
  await setup.ended(DAY, "SUCCESS");
  const everything = async () => [
    await database.query("select * from arrivals.metrics_task_log order by id"),
    await database.query("select * from arrivals.metrics_kpi_data"),
    await database.query("select * from arrivals.model_instance"),
  ];
  const before = await everything();

  // Its gate is open before it resumes, so it has its result before it notices that its session has expired.
  await setup.openGate(DAY, 1);
  zombie.kill("SIGCONT");
  // Whichever comes first: its result, or the heartbeat that finds its session expired.
  const dropped = [
    "a model's run ended after its lease was lost; its result is dropped",
    "a run lost its lease; it is aborted and its result dropped",
  ];
  await until(() => dropped.some((message) => zombie.logged(message).length === 1), "the late result to be dropped");
  expect(await everything()).toEqual(before);
  expect(await valuesOf(api, DAY)).toEqual([[2, 1]]);

  expect(await successor.stop()).toBe(0);
  await until(
    () => zombie.output().includes("it goes on with a new session"),
    "it to notice that its session has expired",
  );
  await announce(api.api, NEXT_DAY);
  await setup.openGate(NEXT_DAY, 1);
  await setup.ended(NEXT_DAY, "SUCCESS");
  expect(await findViolations(database.db)).toEqual([]);
  expect(await Promise.all([zombie.stop(), api.stop()])).toEqual([0, 0]);
});
