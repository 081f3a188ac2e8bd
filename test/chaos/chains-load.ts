/** Starts runs of random chains one after the other until the test stops it, and keeps which runs were acknowledged. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeDef } from "../../src/chains/definitions/dag.ts";
import { isUnavailable } from "../../src/kernel/data/db.ts";
import type { Random } from "../random.ts";
import type { Server } from "../server.ts";
import { until } from "../until.ts";
import type { Expected } from "./chains-audit.ts";
import { define, type Store } from "./chains-setup.ts";

const CHAINS = 6;
const NODES_MAX = 14;
const PARENTS_MAX = 3;
const WORK_MS_MAX = 120;
const POOL = "narrow";
const POOL_SIZE = 3;
/** Enough open runs that work is always in flight, and few enough that they end soon after the last start. */
const OPEN_RUNS = 8;
const PAUSE_MS = 20;

export interface ChainsLoad {
  /** Starts runs through this server; first repeats the start that the last server did not answer. */
  start(server: Server): void;
  /** Resolves when no call is in flight. */
  stop(): Promise<void>;
  /** Resolves after that many more runs have ended. */
  ends(count: number): Promise<void>;
  /** Resolves when all runs have ended. */
  ended(): Promise<void>;
  /** Every acknowledged run, with its nodes. */
  acknowledged: Expected;
}

interface Chain {
  chainId: string;
  nodes: NodeDef[];
}

/** Defines its chains through the first server. */
export async function createChainsLoad({ store, random }: { store: Store; random: Random }, first: Server) {
  console.info(`MILLRACE_TEST_SEED=${random.seed}`); // To repeat a failed test.
  await store.query("insert into chains.pool (name, size) values ($1, $2)", [POOL, POOL_SIZE]);
  const chains: Chain[] = [];
  for (let n = 0; n < CHAINS; n += 1) {
    const nodes = randomNodes(random);
    chains.push({ chainId: await define(first, nodes), nodes });
  }
  const acknowledged = new Map<string, NodeDef[]>();
  let unanswered: (Chain & { key: string }) | undefined;
  let stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();

  async function countRuns(): Promise<{ open: number; ended: number }> {
    const [row] = await store.query<{ open: number; ended: number }>(
      "select count(*) filter (where ended_at is null)::int as open, count(ended_at)::int as ended from chains.job_run",
    );
    return row ?? { open: 0, ended: 0 };
  }

  /** A start without an answer may have been committed; its Idempotency-Key makes the repeat safe. */
  async function startNext({ url, adminKey }: Server): Promise<void> {
    const chain = chains[random.between(0, CHAINS - 1)] as Chain;
    const asked = unanswered ?? { ...chain, key: randomUUID() };
    unanswered = asked;
    const headers = { authorization: `Bearer ${adminKey}`, "idempotency-key": asked.key };
    const answer = await fetch(`${url}/api/v1/chains/${asked.chainId}:start`, { method: "POST", headers });
    const text = await answer.text();
    if (answer.status === 503) return;
    if (answer.status !== 200) throw new Error(`a start was answered with ${answer.status}: ${text}`);
    acknowledged.set((JSON.parse(text) as { runId: string }).runId, asked.nodes);
    unanswered = undefined;
  }

  async function run(server: Server, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if ((await countRuns()).open < OPEN_RUNS) await startNext(server);
        else await sleep(PAUSE_MS);
      } catch (error) {
        if (!isNoAnswer(error)) throw error;
        await sleep(PAUSE_MS);
      }
    }
  }

  const load: ChainsLoad = {
    acknowledged,
    start(server) {
      stopping = new AbortController();
      running = run(server, stopping.signal);
      running.catch(() => {}); // Thrown by `stop`.
    },
    async stop() {
      stopping.abort();
      await running;
    },
    async ends(count) {
      const before = (await countRuns()).ended;
      await until(async () => (await countRuns()).ended >= before + count, `${count} more runs to end`);
    },
    async ended() {
      await until(async () => (await countRuns()).open === 0, "all runs to end");
    },
  };
  return load;
}

/** The server or Postgres was killed before it answered. */
function isNoAnswer(error: unknown): boolean {
  return isUnavailable(error) || (error instanceof TypeError && /^(fetch failed|terminated)$/.test(error.message));
}

/** Each node depends on some earlier nodes. Some fail their first attempt, some share a pool. */
function randomNodes(random: Random): NodeDef[] {
  const ids = Array.from({ length: random.between(3, NODES_MAX) }, (_, n) => `n${n}`);
  return ids.map((id, n) => {
    const parents = Array.from({ length: random.between(0, PARENTS_MAX) }, () => ids[random.between(0, n)] as string);
    const failures = random.chance(0.1) ? 1 : 0;
    return {
      id,
      type: "work",
      dependsOn: [...new Set(parents)].filter((parent) => parent !== id),
      cfg: { ms: random.between(0, WORK_MS_MAX), failures },
      retry: { maxAttempts: 3, backoffMs: 50 },
      ...(random.chance(0.2) ? { pool: POOL } : {}),
    };
  });
}
