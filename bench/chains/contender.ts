/**
 * One engine in a process of its own, so that none is slowed by what another keeps in memory or has running. It is told what to
 * run by messages, and answers what it saw.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Connection, openDb } from "../../src/kernel/data/db.ts";
import { percentile } from "../measure.ts";
import { dbos } from "./dbos.ts";
import type { Engine } from "./engine.ts";
import { millrace } from "./millrace.ts";
import { LOADS, type LoadName, nodesOf } from "./shapes.ts";

export interface Seen {
  nodesPerSecond: number;
  /** From the request to the first node, and to the end of the last run. */
  firstMs: number;
  totalMs: number;
  /** From the end of a node to the start of the next of its run; for chains only, where nodes take turns. */
  gapP50: number;
  gapP95: number;
}

export interface ContenderProcess {
  name: string;
  run(load: LoadName): Promise<Seen>;
  end(): Promise<void>;
}

const ENGINES: Record<string, (connection: Connection) => Promise<Engine>> = {
  async Millrace(connection) {
    const db = openDb({ connection, poolSize: 20, applicationName: "bench" });
    const engine = await millrace(db);
    return {
      ...engine,
      async end() {
        await engine.end();
        await db.close();
      },
    };
  },
  "DBOS 5.3": dbos,
};

/** Starts the engine of this name on a database that is migrated. */
export async function startContender(name: string, connection: Connection): Promise<ContenderProcess> {
  const child = fork(fileURLToPath(import.meta.url), [name, JSON.stringify(connection)], { stdio: "inherit" });
  await answer();
  return {
    name,
    run(load) {
      child.send(load);
      return answer() as Promise<Seen>;
    },
    async end() {
      const gone = once(child, "exit");
      child.disconnect();
      await gone;
    },
  };

  async function answer(): Promise<unknown> {
    const heard = new AbortController();
    try {
      const [said] = await Promise.race([
        once(child, "message", heard),
        once(child, "exit", heard).then(() => Promise.reject(new Error(`${name} ended in the middle of a round`))),
      ]);
      return said;
    } finally {
      heard.abort();
    }
  }
}

async function measure(engine: Engine, name: LoadName): Promise<Seen> {
  const load = LOADS[name];
  const lastOfRun = new Map<string, number>();
  const gaps: number[] = [];
  const asked = performance.now();
  let first = 0;
  // A node takes no time, so the moment it runs is both its start and its end.
  await engine.run(load, (runId) => {
    const now = performance.now();
    first ||= now;
    const last = lastOfRun.get(runId);
    if (last !== undefined) gaps.push(now - last);
    lastOfRun.set(runId, now);
  });
  const totalMs = performance.now() - asked;
  const ran = gaps.length + lastOfRun.size;
  if (ran !== nodesOf(load)) throw new Error(`${engine.name} ran ${ran} nodes of ${nodesOf(load)}`);
  return {
    nodesPerSecond: (nodesOf(load) / totalMs) * 1000,
    firstMs: first - asked,
    totalMs,
    gapP50: percentile(gaps, 0.5),
    gapP95: percentile(gaps, 0.95),
  };
}

async function serve([name = "", connection = ""]: string[]): Promise<void> {
  const start = ENGINES[name];
  if (!start) throw new Error(`there is no engine ${name}`);
  const engine = await start(JSON.parse(connection) as Connection);
  process.on("message", (load: LoadName) => {
    measure(engine, load).then(
      (seen) => process.send?.(seen),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
  process.on("disconnect", () => void engine.end().finally(() => process.exit(0)));
  process.send?.("ready");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await serve(process.argv.slice(2));
