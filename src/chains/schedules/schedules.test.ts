/** Schedules on a real Postgres: each fire starts its run once over all processes, and missed fires follow the policy. */

import { beforeEach, describe, expect, test } from "vitest";
import { ACTOR, type ChainProcess, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { HOUR_MS } from "../../kernel/time/units.ts";
import type { ScheduleInput } from "./schedules.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { define, ended } = chains;

/** Hourly, half an hour away from now, so that no fire is due by chance. */
const hourly = () => `${(new Date().getUTCMinutes() + 30) % 60} * * * *`;

interface RunRow {
  run_id: string;
  op_time: string | null;
  job_id: string;
  trigger: string;
  triggered_by: string;
  params: object;
  priority: number;
}
const runs = () =>
  database.query<RunRow>(
    `select run_id, op_time, job_id, trigger, triggered_by, params, priority from chains.job_run
     order by op_time, created_at, run_id`,
  );

let process: ChainProcess;
let chainId: string;
beforeEach(async () => {
  process = await chains.open({ roles: [] });
  chainId = await define(process, [{ id: "n0" }]);
});

const input = (given: Partial<ScheduleInput> = {}): ScheduleInput => {
  return { name: "nightly", cron: hourly(), timeZone: "UTC", missed: "skip", ...given };
};
async function create(given: Partial<ScheduleInput> = {}) {
  return (await process.schedules.create(chainId, input(given), ACTOR)).schedule_id;
}
const look = (scheduleId: string) => process.schedules.get(chainId, scheduleId);
/** As if no scheduler had run for a while. */
const setNext = (scheduleId: string, at: Date) =>
  database.query("update chains.schedule set next_at = $2 where schedule_id = $1", [scheduleId, at]);
async function missHours(scheduleId: string, hours: number): Promise<Date> {
  const { next_at } = await look(scheduleId);
  const first = new Date((next_at?.getTime() ?? 0) - hours * HOUR_MS);
  await setNext(scheduleId, first);
  return first;
}

describe("a schedule", () => {
  test("starts a run with its trigger and job id when it is due", async () => {
    const scheduleId = await create({ params: { full: true }, priority: 4 });
    expect(await process.timers.runOnce()).toMatchObject({ fired: 0 });
    await setNext(scheduleId, new Date());
    expect(await process.timers.runOnce()).toMatchObject({ fired: 1, admitted: 1 });
    const [run, ...others] = await runs();
    expect(others).toEqual([]);
    expect(run).toEqual({
      run_id: expect.any(String),
      op_time: null,
      job_id: scheduleId,
      trigger: "schedule",
      triggered_by: "schedule nightly",
      params: { full: true },
      priority: 4,
    });
    const after = await look(scheduleId);
    expect(after.last_run_id).toBe(run?.run_id);
    expect(after.next_at?.getTime()).toBeGreaterThan(Date.now());
  });

  test("fires on time by itself", async () => {
    const { timers } = await chains.open();
    const scheduleId = await create();
    await setNext(scheduleId, new Date(Date.now() + 300));
    timers.wake();
    const [run] = await until(async () => {
      const found = await runs();
      return found.length > 0 && found;
    }, "the run");
    expect((await ended(run?.run_id ?? "")).status).toBe("SUCCESS");
    const [{ late_ms } = { late_ms: Number.NaN }] = await database.query<{ late_ms: number }>(
      `select (extract(epoch from r.created_at - s.last_at) * 1000)::float8 as late_ms
       from chains.job_run r join chains.schedule s on s.last_run_id = r.run_id`,
    );
    expect(late_ms).toBeGreaterThanOrEqual(0);
    expect(late_ms).toBeLessThan(3_000);
  });

  test("fires once, although two processes check at the same time", async () => {
    const other = await chains.open({ roles: [] });
    const scheduleId = await create();
    for (let round = 1; round <= 5; round += 1) {
      await setNext(scheduleId, new Date());
      const fired = await Promise.all([process, other, process, other].map(({ schedules }) => schedules.fire(10)));
      expect(fired.reduce((sum, counts) => sum + counts.fired, 0)).toBe(1);
      expect(await runs()).toHaveLength(round);
    }
  });

  test("does not fire while it is paused, nor for times during the pause", async () => {
    const scheduleId = await create({ missed: "all" });
    await process.schedules.setPaused({ chainId, scheduleId }, true, ACTOR);
    await missHours(scheduleId, 3);
    expect(await process.timers.runOnce()).toMatchObject({ fired: 0 });
    expect(await process.schedules.fire(10)).toEqual({ fired: 0 });
    const { next_at } = await process.schedules.setPaused({ chainId, scheduleId }, false, ACTOR);
    expect(next_at?.getTime()).toBeGreaterThan(Date.now());
    expect(await process.timers.runOnce()).toMatchObject({ fired: 0 });
    await setNext(scheduleId, new Date());
    expect(await process.timers.runOnce()).toMatchObject({ fired: 1 });
  });

  test("of a disabled chain starts nothing, and its next time still advances", async () => {
    const scheduleId = await create({ missed: "all" });
    await process.definitions.setEnabled(chainId, false, ACTOR);
    await missHours(scheduleId, 3);
    expect(await process.timers.runOnce()).toMatchObject({ fired: 0 });
    expect((await look(scheduleId)).next_at?.getTime()).toBeGreaterThan(Date.now());
    await process.definitions.setEnabled(chainId, true, ACTOR);
    expect(await process.timers.runOnce()).toMatchObject({ fired: 0 });
    expect(await runs()).toEqual([]);
  });

  test("without an opTime is logged if the chain now waits for tables", async () => {
    const scheduleId = await create();
    const { name } = await process.definitions.get(chainId);
    const dagJson = { nodes: [{ id: "n0", type: "act", waitsFor: ["A"] }] };
    await process.definitions.update(chainId, { name, dagJson, version: 1 }, ACTOR);
    await setNext(scheduleId, new Date());
    expect(await process.timers.runOnce()).toMatchObject({ fired: 0 });
    expect(process.logged).toMatchObject([{ fields: { reason: expect.stringContaining("needs an `opTime`") } }]);
    const { next_at, retry_at } = await look(scheduleId);
    expect(next_at?.getTime()).toBeLessThanOrEqual(Date.now());
    expect(retry_at?.getTime()).toBeGreaterThan(Date.now());
  });
});

describe("after a downtime", () => {
  const label = (at: Date) => at.toISOString().slice(0, 13).replace(/\D/g, "");
  const opTime = { grain: "hour" as const, offset: 0 };
  const hoursFrom = (first: Date, count: number) =>
    Array.from({ length: count }, (_, index) => label(new Date(first.getTime() + index * HOUR_MS)));

  test("policy `skip` starts nothing", async () => {
    const scheduleId = await create({ missed: "skip", opTime });
    await missHours(scheduleId, 5);
    await process.timers.runOnce();
    expect(await runs()).toEqual([]);
    expect(await look(scheduleId)).toMatchObject({ last_at: null, last_run_id: null });
  });

  test("policy `last` starts the newest one", async () => {
    const scheduleId = await create({ missed: "last", opTime });
    const first = await missHours(scheduleId, 5);
    await process.timers.runOnce();
    expect((await runs()).map(({ op_time }) => op_time)).toEqual(hoursFrom(first, 5).slice(-1));
  });

  test("policy `all` starts every one", async () => {
    const scheduleId = await create({ missed: "all", opTime });
    const first = await missHours(scheduleId, 5);
    await process.timers.runOnce();
    const made = await runs();
    expect(made.map(({ op_time }) => op_time)).toEqual(hoursFrom(first, 5));
    expect(await look(scheduleId)).toMatchObject({
      last_at: new Date(first.getTime() + 4 * HOUR_MS),
      last_run_id: made.at(-1)?.run_id,
      next_at: new Date(first.getTime() + 5 * HOUR_MS),
    });
  });

  test("policy `all` starts many in several rounds", async () => {
    const scheduleId = await create({ missed: "all", opTime });
    const first = await missHours(scheduleId, 250);
    for (const count of [100, 200, 250, 250]) {
      await process.schedules.fire(10);
      expect(await runs()).toHaveLength(count);
    }
    expect((await runs()).map(({ op_time }) => op_time)).toEqual(hoursFrom(first, 250));
  });

  test.each(["skip", "last", "all"] as const)("policy `%s` starts a fire that is a little late", async (missed) => {
    const scheduleId = await create({ missed });
    await setNext(scheduleId, new Date(Date.now() - 20_000));
    await process.timers.runOnce();
    expect(await runs()).toHaveLength(1);
  });
});

describe("the opTime of a run", () => {
  test.each([
    ["day", 0, "Asia/Tokyo", "20250301"],
    ["day", -1, "Asia/Tokyo", "20250228"],
    ["day", 0, "UTC", "20250228"],
    ["month", -1, "Asia/Tokyo", "202502"],
    ["hour", -1, "Asia/Tokyo", "2025022823"],
  ] as const)("of grain %s and offset %i in %s is that of the fire", async (grain, offset, timeZone, expected) => {
    const scheduleId = await create({ cron: "30 0 * * *", timeZone, missed: "all", opTime: { grain, offset } });
    await setNext(scheduleId, new Date("2025-02-28T15:30:00Z"));
    await process.schedules.fire(10);
    const [first] = await database.query("select op_time from chains.job_run order by run_id limit 1");
    expect(first).toEqual({ op_time: expected });
  });
});

test("a schedule that could not fire fires for the same times once it can, also after a change that fixes it", async () => {
  const node = { id: "n", type: "noop", waitsFor: ["T"] };
  const scheduleId = await create({ name: "late", cron: "0 0 * * *", missed: "all" });
  // Its chain waits for tables now, so its runs need an opTime that it does not have.
  await database.query("update chains.job_chain_definition set dag_json = $2 where chain_id = $1", [
    chainId,
    JSON.stringify({ nodes: [node] }),
  ]);
  await setNext(scheduleId, new Date("2025-02-28T00:00:00Z"));
  expect(await process.schedules.fire(10)).toEqual({ fired: 0 });
  const postponed = await process.schedules.get(chainId, scheduleId);
  expect(postponed).toMatchObject({
    next_at: new Date("2025-02-28T00:00:00Z"),
    problem: "The chain waits for tables, so the schedule needs an `opTime`.",
  });
  expect(postponed.retry_at?.getTime()).toBeGreaterThan(Date.now() + HOUR_MS / 12);
  expect(await process.schedules.fire(10)).toEqual({ fired: 0 }); // It is not due before that.

  const change = { name: "late", cron: "0 0 * * *", opTime: { grain: "day", offset: 0 } } as const;
  expect(await process.schedules.update({ chainId, scheduleId }, change, ACTOR)).toMatchObject({
    next_at: new Date("2025-02-28T00:00:00Z"),
    problem: null,
    retry_at: null,
  });
  expect((await process.schedules.fire(10)).fired).toBeGreaterThan(0);
  const [first] = await database.query(
    "select op_time from chains.job_run where job_id = $1 order by op_time limit 1",
    [scheduleId],
  );
  expect(first).toEqual({ op_time: "20250228" });
});

test("a schedule that fails to fire is postponed and logged, and the others fire", async () => {
  const strange = await create({ name: "strange" });
  const good = await create({ name: "good" });
  await database.query("update chains.schedule set time_zone = 'Mars/Olympus' where schedule_id = $1", [strange]);
  await setNext(strange, new Date(Date.now() - 1_000));
  await setNext(good, new Date());
  expect(await process.schedules.fire(10)).toEqual({ fired: 1 });
  expect((await runs()).map(({ job_id }) => job_id)).toEqual([good]);
  const [kept] = await database.query<{ next_at: Date; retry_at: Date }>(
    "select next_at, retry_at from chains.schedule where schedule_id = $1",
    [strange],
  );
  expect(kept?.next_at.getTime()).toBeLessThan(Date.now());
  expect(kept?.retry_at.getTime()).toBeGreaterThan(Date.now() + HOUR_MS / 12);
  expect(process.logged).toMatchObject([{ level: "error", fields: { scheduleId: strange } }]);
});
