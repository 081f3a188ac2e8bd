/** Harvests of a day alone, and the same while a backfill of the same source is under way, in turns. */
import { setTimeout as sleep } from "node:timers/promises";
import { plan } from "../../src/harvest/harvest.fixture.ts";
import { statement } from "../../src/kernel/data/statement.ts";
import { atMost, printMarkdown, times, withGoal } from "../chains/report.ts";
import { formatNumber, median, percentile } from "../measure.ts";
import { startMillrace } from "../millrace.ts";
import type { BenchPostgres } from "../postgres.ts";
import { DAYS, definitionOf, RECORDS, startSource } from "./source.ts";

const SOURCE = "beside";
const POLL_MS = 5;
/** Harvests of one round; a round alone and a round beside a backfill follow each other. */
const HARVESTS = 10;
const PAGES_OF = 100;
/** What a backfill may cost a harvest. */
const GOAL = 1.2;

const STATUS = statement<{ ended: boolean }>(
  "bench.beside.ended",
  "select ended_at is not null as ended from harvest.ing_plan where plan_id = $1",
);
const RUNNING = statement<{ n: number }>(
  "bench.beside.running",
  "select count(*)::int4 as n from harvest.ing_task where plan_id = $1 and status_code = 'EXECUTING'",
);

export async function compareBeside(postgres: BenchPostgres, rounds: number): Promise<void> {
  const { db } = postgres;
  const source = await startSource({ latencyMs: 20 });
  const server = await startMillrace(postgres, { sources: [source] });
  const definition = definitionOf(SOURCE, source.baseUrl, { pageSize: PAGES_OF, byDay: true }, 8);
  const applied = await server.api.put(`/api/v1/harvest/registry/sources/${SOURCE}`, definition);
  if (applied.status >= 300) throw new Error(`the definition was refused: ${JSON.stringify(applied.body)}`);
  const ended = async (planId: string) => (await db.rows(STATUS, [planId]))[0]?.ended ?? false;

  async function harvestMs(): Promise<number> {
    const started = performance.now();
    const { planId } = await plan(server.api, { source: SOURCE, window: { from: DAYS.at(-1), to: "2026-08-17" } });
    while (!(await ended(planId))) await sleep(POLL_MS);
    return performance.now() - started;
  }

  /** Its records are there after the first time: it is under way for as long as it reads. */
  async function backfill(): Promise<string> {
    const window = { from: DAYS[0], to: DAYS.at(-1) };
    const { planId } = await plan(server.api, { source: SOURCE, operation: "BACKFILL", window });
    while (((await db.rows(RUNNING, [planId]))[0]?.n ?? 0) === 0 && !(await ended(planId))) await sleep(POLL_MS);
    return planId;
  }

  const alone: number[] = [];
  const beside: number[] = [];
  await harvestMs(); // The first inserts, all others compare.
  for (let round = 0; round < rounds; round += 1) {
    for (let n = 0; n < HARVESTS; n += 1) alone.push(await harvestMs());
    let planId = await backfill();
    for (let n = 0; n < HARVESTS; n += 1) {
      if (await ended(planId)) planId = await backfill();
      beside.push(await harvestMs());
      await sleep(200); // The backfill goes on between two harvests.
    }
    await server.api.post(`/api/v1/harvest/plans/${planId}:cancel`, {});
    console.error(
      `round ${round + 1}: ${formatNumber(median(alone))} ms alone, ${formatNumber(median(beside))} ms beside`,
    );
  }
  await server.stop();
  await source.stop();
  const [p95Alone, p95Beside] = [percentile(alone, 0.95), percentile(beside, 0.95)];
  const ratio = p95Beside / p95Alone;
  printMarkdown(
    `A harvest of ${RECORDS / DAYS.length} records in pages of ${PAGES_OF} that take 20 ms, while a backfill of the same source is under way`,
    ["", "median", "p95", "p95 is", "goal"],
    [
      ["alone", `${formatNumber(median(alone))} ms`, `${formatNumber(p95Alone)} ms`, "", ""],
      [
        "beside a backfill",
        `${formatNumber(median(beside))} ms`,
        `${formatNumber(p95Beside)} ms`,
        times(ratio),
        withGoal(ratio, atMost(GOAL, "x")),
      ],
    ],
  );
}
