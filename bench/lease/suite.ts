/** `npm run bench -- lease`: throughput of no-op items, and the latency of a single one. */
import { bareLoop } from "../bare-loop.ts";
import { interleave, printTable, ratioRows } from "../measure.ts";
import { type BenchPostgres, withPostgres } from "../postgres.ts";
import { graphileWorker, ITEMS, millrace, pgBoss } from "./contenders.ts";
import { graphileLatency, millraceLatency } from "./latency.ts";

export function run(rounds: number): Promise<void> {
  return withPostgres((postgres) => compare(postgres, rounds));
}

async function compare(postgres: BenchPostgres, rounds: number): Promise<void> {
  const ours = await millrace(postgres);
  const throughput = await interleave(
    [
      ours,
      await bareLoop(postgres, ITEMS),
      await graphileWorker(postgres, true),
      await graphileWorker(postgres, false),
      await pgBoss(postgres),
    ],
    rounds,
    console.error,
  );
  const latency = await interleave(
    [await millraceLatency(postgres), await graphileLatency(postgres)],
    rounds,
    console.error,
  );

  printTable(
    `No-op items, batches of 100, 4 loops, ${ITEMS.toLocaleString("en")} a round; ${rounds} interleaved rounds`,
    ["measure", "contender", "median", "spread", "Millrace is"],
    [
      ...ratioRows("claimed and completed, items/s", throughput, ours.name),
      ...ratioRows("push to start of one item, p50 ms", latency, ours.name),
    ],
  );
}
