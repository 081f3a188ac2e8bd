/**
 * Hints for live views that something about a run has changed. Runs change many times a second, and a view looks a few
 * times a second at most, so the hints are gathered for a moment instead of being sent for every change.
 */
import type { Wake } from "../../kernel/work/wake.ts";
import { progressTopic } from "../topics.ts";

export interface Progress {
  /** Call it after the commit. */
  changed(runIds: Iterable<string>): void;
}

/** Shorter than any view's own pause, so that it adds little to what a person waits. */
const GATHER_MS = 100;

export function createProgress(wake: Pick<Wake, "hint">): Progress {
  const topics = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  function send(): void {
    timer = undefined;
    for (const topic of topics) wake.hint(topic);
    topics.clear();
  }

  return {
    changed(runIds) {
      for (const runId of runIds) topics.add(progressTopic(runId));
      timer ??= setTimeout(send, GATHER_MS).unref();
    },
  };
}
