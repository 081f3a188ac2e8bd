/** `npm run bench -- lease`: throughput of no-op items, and the latency of a single one. */
import { interleave, printTable, ratioRows } from "../measure.ts";
import { startPostgres } from "../postgres.ts";
import { bareLoop, graphileWorker, ITEMS, millrace, pgBoss } from "./contenders.ts";
import { graphileLatency, millraceLatency } from "./latency.ts";

export async function run(rounds: number): Promise<void> {
  const postgres = await startPostgres();
  const ours = await millrace(postgres);
  const throughput = await interleave(
    [
      ours,
      await bareLoop(postgres),
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
    `Claim and complete ${ITEMS.toLocaleString("en")} no-op items, batches of 100, 4 loops (items/s, higher is better)`,
    ["", "median", "spread", "Millrace is"],
    ratioRows(throughput, ours.name),
  );
  printTable(
    "Push of a single item to its start in an idle worker (ms, lower is better)",
    ["", "median of p50", "spread", "Millrace is"],
    ratioRows(latency, "Millrace lease"),
  );
  await postgres.stop();
}
