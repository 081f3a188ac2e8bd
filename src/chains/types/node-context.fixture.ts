/** A NodeContext for tests that records log lines, progress and checkpoints. */
import type { NodeContext } from "./node-type.ts";

export interface RecordedContext extends NodeContext {
  lines: { level: string; text: string }[];
  shares: number[];
  checkpoints: unknown[];
}

export function nodeContext(given: Partial<NodeContext> = {}): RecordedContext {
  const lines: RecordedContext["lines"] = [];
  const shares: number[] = [];
  const checkpoints: unknown[] = [];
  return {
    runId: "run-1",
    nodeId: "node-1",
    attempt: 1,
    key: "run-1/node-1/1",
    opTime: null,
    params: {},
    parents: {},
    checkpoint: null,
    signal: new AbortController().signal,
    log: (text, level = "info") => void lines.push({ level, text }),
    progress: (share) => void shares.push(share),
    saveCheckpoint: async (value) => void checkpoints.push(value),
    ...given,
    lines,
    shares,
    checkpoints,
  };
}
