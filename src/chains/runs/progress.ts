/**
 * Hints that a run has changed, for pages and for live views of the run. Runs change many times a second and a view reads at most a few times a second,
 * so hints are collected for GATHER_MS instead of being sent for every change.
 */
import type { Db } from "../../kernel/data/db.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { ChainsHints } from "../catalogue.ts";
import { progressTopic } from "../topics.ts";

export interface Progress {
  /** Call it after the commit. */
  changed(runIds: readonly string[]): void;
}

/** Shorter than the pause of any view, so that it adds little delay. */
const GATHER_MS = 100;

export interface ProgressDeps {
  db: Db;
  wake: Pick<Wake, "hint">;
  hints: ChainsHints;
}

export function createProgress({ db, wake, hints }: ProgressDeps): Progress {
  const topics = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  function send(): void {
    timer = undefined;
    for (const topic of topics) wake.hint(topic);
    topics.clear();
  }

  return {
    changed(runIds) {
      hints.changed(db, "run", runIds);
      for (const runId of runIds) topics.add(progressTopic(runId));
      timer ??= setTimeout(send, GATHER_MS).unref();
    },
  };
}
