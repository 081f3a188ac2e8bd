/**
 * `npm run bench -- harvest`: from a service to Postgres, beside a bare loop and dlt; whether a second process helps, whether a
 * past slows the present, what decoding costs beside the parser, and what a backfill costs a harvest. `npm run bench -- harvest xml` measures one part only.
 */
import { type BenchPostgres, withPostgres } from "../postgres.ts";
import { compareBeside } from "./beside-backfill.ts";
import { compareHistory } from "./history.ts";
import { compareLatency, compareOneSlice, compareProcesses, compareSlices } from "./throughput.ts";
import { compareXml } from "./xml.ts";

const PARTS: Record<string, (rounds: number) => Promise<void>> = {
  "one-slice": onPostgres(compareOneSlice),
  slices: onPostgres(compareSlices),
  latency: onPostgres(compareLatency),
  processes: onPostgres(compareProcesses),
  xml: compareXml,
  history: onPostgres(compareHistory),
  beside: onPostgres(compareBeside),
};

/** Each on a server of its own, so that none meets the checkpoints and dead rows of another. */
function onPostgres(compare: (postgres: BenchPostgres, rounds: number) => Promise<void>) {
  return (rounds: number) => withPostgres((postgres) => compare(postgres, rounds));
}

export const parts = Object.keys(PARTS);

export async function run(rounds: number, chosen: readonly string[]): Promise<void> {
  for (const [name, compare] of Object.entries(PARTS)) {
    if (chosen.length === 0 || chosen.includes(name)) await compare(rounds);
  }
}
