/** A harvest by the built server, timed from the plan to its end. */
import { setTimeout as sleep } from "node:timers/promises";
import { plan } from "../../src/harvest/harvest.fixture.ts";
import { statement } from "../../src/kernel/data/statement.ts";
import type { Millrace } from "../millrace.ts";
import type { BenchPostgres } from "../postgres.ts";
import { DAYS, definitionOf, RECORDS, type Walk } from "./source.ts";

/** From here, since asking the server would take from what is measured. Every 10 ms took 4% of the processor from it. */
const POLL_MS = 50;

export interface Harvest extends Walk {
  source: { baseUrl: string };
  concurrency: number;
}

const STATUS = statement<{ status_code: string }>(
  "bench.harvest.status",
  "select status_code from harvest.ing_plan where plan_id = $1",
);

let sources = 0;

/** Applies a source of its own, harvests all of it, and answers records/s from the request of the plan to its end. */
export async function harvest({ db }: BenchPostgres, { api: server }: Millrace, of: Harvest): Promise<number> {
  sources += 1;
  const source = `bench-${sources}`;
  const definition = definitionOf(source, of.source.baseUrl, of, of.concurrency);
  const applied = await server.put(`/api/v1/harvest/registry/sources/${source}`, definition);
  if (applied.status >= 300) throw new Error(`the definition was refused: ${JSON.stringify(applied.body)}`);
  const started = performance.now();
  const window = of.byDay ? { window: { from: DAYS[0], to: "2026-08-17" } } : {};
  const { planId } = await plan(server, { source, ...window });
  while (!(await hasEnded())) await sleep(POLL_MS);
  const seconds = (performance.now() - started) / 1_000;
  const { body } = await server.get<{ status: string; reconciliation: { inserted: number } }>(
    `/api/v1/harvest/plans/${planId}`,
  );
  if (body.reconciliation.inserted !== RECORDS) throw new Error(`the plan ended with ${JSON.stringify(body)}`);
  return RECORDS / seconds;

  async function hasEnded(): Promise<boolean> {
    const [row] = await db.rows(STATUS, [planId]);
    return ["COMPLETE", "FAILED", "CANCELLED"].includes(row?.status_code ?? "");
  }
}
