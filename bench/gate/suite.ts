/**
 * `npm run bench -- gate`: reservations on one key beside a bare update of one row, which is what a limit in a database cannot
 * be faster than; and four processes on a gate, with the worst second by grant and as the service counts.
 */
import { statement } from "../../src/kernel/data/statement.ts";
import { type Caller, callTogether, type Outcome, startCaller } from "../../src/kernel/gate/callers.fixture.ts";
import { startCountingService } from "../../src/kernel/gate/counting-service.fixture.ts";
import { openGates } from "../../src/kernel/gate/gates.fixture.ts";
import type { Gates } from "../../src/kernel/gate/gates.ts";
import { type Contender, interleave, perSecond, printTable, ratioRows } from "../measure.ts";
import { type BenchPostgres, withPostgres } from "../postgres.ts";

const RESERVATIONS = 1_000;
const PROCESSES = 4;
const LOOPS = 6;
const FOR_MS = 10_000;
const RATES = [50, 10, 3];
const HOT_KEY = "hot";
const NO_DEADLINE_MS = 1e12;

export function run(rounds: number): Promise<void> {
  return withPostgres(async (postgres) => {
    const gates = await openGates(postgres.db);
    await compareReservations(postgres, gates, rounds);
    await measureLimits(postgres, gates, rounds);
  });
}

async function compareReservations(postgres: BenchPostgres, gates: Gates, rounds: number): Promise<void> {
  await gates.declare(postgres.db, [{ key: HOT_KEY, ratePerSec: 10_000 }]);
  await postgres.sql("create table hot_row (id int primary key, n bigint not null) with (fillfactor = 10)");
  await postgres.sql("insert into hot_row values (1, 0)");
  const bare = statement("bench.gate.bare", "update hot_row set n = n + 1 where id = 1 returning n");
  const reserve = () => gates.acquire({ gates: [{ key: HOT_KEY }], deadlineMs: NO_DEADLINE_MS });
  const update = () => postgres.db.rows(bare);
  for (const clients of [1, PROCESSES]) {
    const figures = await interleave(
      [inClients("Millrace gate", clients, reserve), inClients("bare update", clients, update)],
      rounds,
      console.error,
    );
    printTable(
      `Reservations on one key, ${clients} at a time; ${rounds} interleaved rounds`,
      ["measure", "contender", "median", "spread", "Millrace is"],
      ratioRows("a second", figures, "Millrace gate"),
    );
  }
}

function inClients(name: string, clients: number, work: () => Promise<unknown>): Contender {
  return {
    name,
    round: () =>
      perSecond(RESERVATIONS, async () => {
        const client = async () => {
          for (let n = 0; n < RESERVATIONS / clients; n += 1) await work();
        };
        await Promise.all(Array.from({ length: clients }, client));
      }),
  };
}

async function measureLimits(postgres: BenchPostgres, gates: Gates, rounds: number): Promise<void> {
  const service = await startCountingService();
  const rows: string[][] = [];
  for (const ratePerSec of RATES) {
    for (let round = 1; round <= rounds; round += 1) {
      const key = `${ratePerSec} a second, round ${round}`;
      await gates.declare(postgres.db, [{ key, ratePerSec }]);
      const calls = { serviceUrl: service.url, loops: LOOPS, forMs: FOR_MS };
      const job = { connection: postgres.connection, key, calls };
      const callers: Caller[] = await Promise.all(Array.from({ length: PROCESSES }, () => startCaller(job)));
      const outcome = await callTogether(callers, service, ratePerSec);
      rows.push(rowOf(ratePerSec, outcome, service.longestPauseMs()));
      console.error(rows.at(-1)?.join("  "));
    }
  }
  await service.stop();
  printTable(
    `${PROCESSES} processes on one gate for ${FOR_MS / 1_000} s`,
    ["limit", "calls", "worst second by grant", "as counted", "of the limit", "given up", "pause of the service"],
    rows,
  );
}

function rowOf(ratePerSec: number, outcome: Outcome, pauseMs: number): string[] {
  return [
    `${ratePerSec}/s`,
    String(outcome.calls),
    String(outcome.worstByGrant),
    String(outcome.worstAsCounted),
    `${(outcome.share * 100).toFixed(1)}%`,
    String(outcome.givenUp),
    `${pauseMs.toFixed(0)} ms`,
  ];
}
