/** One step of the timers fails: the others still run, and the failure is logged. */
import { expect, test } from "vitest";
import { ACTOR, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, look } = chains;
const BY = { by: "test" };

test("schedules that fail to fire do not hold up reclaim, admission and time-outs", async () => {
  await database.query(`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'schedules are read only today'; end $$`);
  await database.query("create trigger refuse before update on chains.schedule execute function refuse()");
  const process = await chains.open({ roles: [] });
  const victim = await chains.open({ roles: ["worker"], slots: 2 });
  const { act, begun: begin, release } = held({ ignoresAbort: true });
  acts.set("slow", act);
  const lost = await process.runs.start(await define(process, [{ id: "slow" }]), BY);
  const overdue = await process.runs.start(await define(process, [{ id: "slow" }], { runTimeoutMs: 60_000 }), BY);
  await process.timers.runOnce();
  await begin(2);
  await database.query("update chains.live_run set deadline_at = now() where deadline_at is not null");
  const chainId = await define(process, [{ id: "n0" }]);
  const waiting = await process.runs.start(chainId, BY);
  await process.schedules.create(
    chainId,
    { name: "hourly", cron: "0 * * * *", timeZone: "UTC", missed: "last" },
    ACTOR,
  );
  await database.query("alter table chains.schedule disable trigger refuse");
  await database.query("update chains.schedule set next_at = now() - interval '1 hour'");
  await database.query("alter table chains.schedule enable trigger refuse");
  await victim.expireSession();

  await expect(process.timers.runOnce()).rejects.toThrow("schedules are read only today");
  expect((await look(lost.runId)).nodes["slow"]).toMatchObject({ status: "RETRYING", error: "its worker was lost" });
  expect((await look(waiting.runId)).status).toBe("RUNNING");
  expect(await look(overdue.runId)).toMatchObject({
    status: "FAILED",
    reason: "the run took longer than its 60000 ms",
  });

  process.timers.start();
  const failed = ({ message }: { message: string }) => message.startsWith("a background run failed");
  await until(() => process.logged.some(failed), "the failure to be logged");
  release();
});
