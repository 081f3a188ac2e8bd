/** Harvests of a day alone, and the same while a backfill of the same source is under way, in turns: until they have ended, and until the day is in the lake. */
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

const TABLE = "beside_works";

const STATUS = statement<{ ended: boolean }>(
  "bench.beside.ended",
  "select ended_at is not null as ended from harvest.ing_plan where plan_id = $1",
);
const RUNNING = statement<{ n: number }>(
  "bench.beside.running",
  "select count(*)::int4 as n from harvest.ing_task where plan_id = $1 and status_code = 'EXECUTING'",
);
const LANDED = statement<{ landed: boolean }>(
  "bench.beside.landed",
  "select status_code = 'LANDED' as landed from harvest.landing where table_name = $1 and op_time = $2",
);

interface Took {
  /** Until the plan had ended. */
  endedMs: number;
  /** Until its window was in the lake. */
  landedMs: number;
}

export async function compareBeside(postgres: BenchPostgres, rounds: number): Promise<void> {
  const { db } = postgres;
  const source = await startSource({ latencyMs: 20 });
  const server = await startMillrace(postgres, { sources: [source], lake: true });
  const definition = definitionOf(SOURCE, source.baseUrl, { pageSize: PAGES_OF, byDay: true }, 8);
  const works = { ...definition.endpoints.works, landing: { table: TABLE, grain: "day" } };
  const path = `/api/v1/harvest/registry/sources/${SOURCE}`;
  const applied = await server.api.put(path, { ...definition, endpoints: { works } });
  if (applied.status >= 300) throw new Error(`the definition was refused: ${JSON.stringify(applied.body)}`);
  const ended = async (planId: string) => (await db.rows(STATUS, [planId]))[0]?.ended ?? false;

  const hasLanded = async () => (await db.rows(LANDED, [TABLE, "20260816"]))[0]?.landed ?? false;

  async function harvest(): Promise<Took> {
    const started = performance.now();
    const { planId } = await plan(server.api, { source: SOURCE, window: { from: DAYS.at(-1), to: "2026-08-17" } });
    while (!(await ended(planId))) await sleep(POLL_MS);
    const endedMs = performance.now() - started;
    while (!(await hasLanded())) await sleep(POLL_MS); // Wanted in the transaction that ended the plan.
    return { endedMs, landedMs: performance.now() - started };
  }

  /** Its records are there after the first time: it is under way for as long as it reads. */
  async function backfill(): Promise<string> {
    const window = { from: DAYS[0], to: DAYS.at(-1) };
    const { planId } = await plan(server.api, { source: SOURCE, operation: "BACKFILL", window });
    while (((await db.rows(RUNNING, [planId]))[0]?.n ?? 0) === 0 && !(await ended(planId))) await sleep(POLL_MS);
    return planId;
  }

  const alone: Took[] = [];
  const beside: Took[] = [];
  await harvest(); // The first inserts, all others compare.
  for (let round = 0; round < rounds; round += 1) {
    for (let n = 0; n < HARVESTS; n += 1) alone.push(await harvest());
    let planId = await backfill();
    for (let n = 0; n < HARVESTS; n += 1) {
      if (await ended(planId)) planId = await backfill();
      beside.push(await harvest());
      await sleep(200); // The backfill goes on between two harvests.
    }
    await server.api.post(`/api/v1/harvest/plans/${planId}:cancel`, {});
    const [medianAlone, medianBeside] = [alone, beside].map((took) =>
      formatNumber(median(took.map((one) => one.endedMs))),
    );
    console.error(`round ${round + 1}: ${medianAlone} ms alone, ${medianBeside} ms beside`);
  }
  await server.stop();
  await source.stop();
  const rows = (["endedMs", "landedMs"] as const).flatMap((what) => {
    const [msAlone, msBeside] = [alone, beside].map((took) => took.map((one) => one[what])) as [number[], number[]];
    const ratio = percentile(msBeside, 0.95) / percentile(msAlone, 0.95);
    const until = what === "endedMs" ? "until it has ended" : "until it has landed";
    const figures = (ms: number[]) => [`${formatNumber(median(ms))} ms`, `${formatNumber(percentile(ms, 0.95))} ms`];
    return [
      [`alone, ${until}`, ...figures(msAlone), "", ""],
      [`beside a backfill, ${until}`, ...figures(msBeside), times(ratio), withGoal(ratio, atMost(GOAL, "x"))],
    ];
  });
  printMarkdown(
    `A harvest of ${RECORDS / DAYS.length} records in pages of ${PAGES_OF} that take 20 ms, while a backfill of the same source is under way`,
    ["", "median", "p95", "p95 is", "goal"],
    rows,
  );
}
