/** A model that fails leaves one line in the log, however it fails. */
import { expect, test } from "vitest";
import { type ArrivalProcess, useArrivalProcesses } from "../../test/arrivals-process.ts";
import { useDatabase } from "../../test/database.ts";
import { signal, until } from "../../test/until.ts";

const arrivals = useArrivalProcesses(useDatabase());
const { acts, begun, define, ended, open } = arrivals;
const ARRIVAL = { table: "a", opTime: "20250101", idempotencyKey: null };
const failures = ({ logged }: ArrivalProcess) => logged.filter(({ message }) => message === "a model failed");

test("of a run that fails, with the start of its error", async () => {
  const message = "no such table ".repeat(100);
  acts.set("m", () => Promise.reject(new Error(message)));
  const process = await open();
  await define(process, "m", ["a"]);
  await process.announce(ARRIVAL);
  await ended("FAILED");
  await until(() => failures(process).length > 0, "the line");
  const fields = { modelId: "m", opTime: "20250101", generation: 1, reason: message.slice(0, 1_000) };
  expect(failures(process)).toEqual([{ level: "warn", fields, message: "a model failed" }]);
});

test("of a run that was lost too often", async () => {
  const held = signal<[]>();
  acts.set("m", () => held.promise);
  const victim = await open({ roles: ["worker"] });
  await define(victim, "m", ["a"]);
  await victim.announce(ARRIVAL);
  await until(() => begun.length === 1, "the run to begin");
  await victim.expireSession();
  const other = await open({ roles: [], lostLimit: 1 });
  await other.worker.reclaimer?.runOnce();
  expect(failures(other)).toMatchObject([
    { fields: { modelId: "m", reason: expect.stringContaining("lost in a row") } },
  ]);
  held.resolve([]);
});

test("none of a run that succeeds", async () => {
  const process = await open();
  await define(process, "m", ["a"]);
  await process.announce(ARRIVAL);
  await ended("SUCCESS");
  expect(failures(process)).toEqual([]);
});
