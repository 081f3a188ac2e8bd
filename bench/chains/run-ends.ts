/**
 * Tells when the end of a run is written. It asks the database only about runs whose nodes have all been executed, and
 * about all of those at once, so that asking takes next to nothing from the engine that is measured.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../src/kernel/data/db.ts";
import { statement } from "../../src/kernel/data/statement.ts";

const PAUSE_MS = 2;
const ENDED = statement<{ run_id: string; status: string }>(
  "bench.ended",
  "select run_id, status from chains.job_run where run_id = any($1::uuid[]) and ended_at is not null",
);

export interface RunEnds {
  /** To be called by every node of every run. */
  executed(runId: string): void;
  /** Resolves when the run, of so many nodes, has ended well. */
  of(runId: string, nodes: number): Promise<void>;
}

interface Waiting {
  nodes: number;
  resolve(): void;
  reject(error: Error): void;
}

export function watchRunEnds(db: Db): RunEnds {
  const counts = new Map<string, number>();
  const waiting = new Map<string, Waiting>();
  const nearEnd = new Set<string>();
  let looking = false;

  // A node may be executed before the caller that started its run knows the run's id, so either side may come last.
  function consider(runId: string): void {
    const nodes = waiting.get(runId)?.nodes;
    if (nodes === undefined || (counts.get(runId) ?? 0) < nodes) return;
    nearEnd.add(runId);
    if (!looking) void look();
  }

  async function look(): Promise<void> {
    looking = true;
    try {
      while (nearEnd.size > 0) {
        for (const { run_id, status } of await db.rows(ENDED, [[...nearEnd]])) {
          if (status === "SUCCESS") waiting.get(run_id)?.resolve();
          else waiting.get(run_id)?.reject(new Error(`run ${run_id} ended as ${status}`));
          forget(run_id);
        }
        await sleep(PAUSE_MS);
      }
    } catch (error) {
      for (const { reject } of waiting.values()) reject(error as Error);
    } finally {
      looking = false;
    }
  }

  function forget(runId: string): void {
    nearEnd.delete(runId);
    waiting.delete(runId);
    counts.delete(runId);
  }

  return {
    executed(runId) {
      counts.set(runId, (counts.get(runId) ?? 0) + 1);
      consider(runId);
    },
    of(runId, nodes) {
      return new Promise((resolve, reject) => {
        waiting.set(runId, { nodes, resolve, reject });
        consider(runId);
      });
    },
  };
}
