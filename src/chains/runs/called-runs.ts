/** Runs that another module starts by chain name and waits for. */
import type { Db } from "../../kernel/data/db.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { chainsError } from "../catalogue.ts";
import type { RunCache } from "../engine/run-cache.ts";
import { ENDED_RUN, type RunStatus } from "../engine/states.ts";
import { readArtifacts } from "../store/children.ts";
import { findChainToRun, readOutcome, readStatus } from "../store/runs.ts";
import { progressTopic } from "../topics.ts";
import type { Runs } from "./runs.ts";

export interface CalledRuns {
  /** Starts a run, or returns the run that was started with the same key. */
  start(chain: string, request: CallRequest): Promise<string>;
  /** Resolves when the run has ended. Rejects if it was deleted. */
  ended(runId: string, signal: AbortSignal): Promise<CallEnd>;
  /** Stops it in the name of Millrace, when its caller no longer needs it. */
  stop(runId: string, reason: string): Promise<void>;
}

export interface CallRequest {
  opTime: string;
  params: Record<string, unknown>;
  key: string;
  startedBy: string;
}

export interface CallEnd {
  status: RunStatus;
  reason: string | null;
  /** The artifacts of the nodes without children. */
  artifacts: unknown[];
}

/** A hint announces the end; the poll covers a lost hint. */
const POLL_MS = 5_000;

export function createCalledRuns(deps: { db: Db; wake: Wake; runs: Runs; runCache: RunCache }): CalledRuns {
  const { db, wake, runs, runCache } = deps;

  async function endOf(runId: string): Promise<CallEnd | undefined> {
    const status = await readStatus(db, runId);
    if (status === undefined) throw new Error(`run ${runId} no longer exists`);
    if (!ENDED_RUN.has(status)) return undefined;
    const { reason } = await readOutcome(db, runId);
    const graph = (await runCache.get(db, [runId])).get(runId)?.graph;
    const last = graph?.nodes.filter(({ children }) => children.length === 0).map(({ id }) => id) ?? [];
    const nodes = await readArtifacts(db, runId, last);
    return { status, reason, artifacts: nodes.map(({ artifact }) => artifact) };
  }

  return {
    async start(chain, { opTime, params, key, startedBy }) {
      const found = await findChainToRun(db, chain);
      if (!found) throw chainsError("CHAIN_NOT_FOUND", { chainId: `named \`${chain}\`` });
      const request = { opTime, params, by: startedBy, trigger: "arrival", idempotencyKey: key } as const;
      return (await runs.start(found.chain_id, request)).runId;
    },

    async ended(runId, signal) {
      for (;;) {
        signal.throwIfAborted();
        const changed = nextChange(wake, runId, signal);
        try {
          const end = await endOf(runId);
          if (end) return end;
          await changed.seen;
        } finally {
          changed.cancel();
        }
      }
    },

    stop: (runId, reason) => runs.stopChild(runId, reason),
  };
}

/** Resolves at the next hint about the run, after POLL_MS, or when the signal aborts. */
function nextChange(wake: Wake, runId: string, signal: AbortSignal) {
  let cancel = () => {};
  const seen = new Promise<void>((resolve) => {
    const timer = setTimeout(() => cancel(), POLL_MS);
    const unlisten = wake.on(progressTopic(runId), () => cancel());
    signal.addEventListener("abort", cancelOnce, { once: true });
    function cancelOnce(): void {
      cancel();
    }
    cancel = () => {
      clearTimeout(timer);
      unlisten();
      signal.removeEventListener("abort", cancelOnce);
      resolve();
    };
  });
  return { seen, cancel: () => cancel() };
}
