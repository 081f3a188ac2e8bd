/** What arrivals needs of chains: to run one by its name, and to hear how that ended. The application connects the two. */

export interface ChainPort {
  /** Starts a run, or finds the one that this key has started before. Throws an ApiError when it cannot be started. */
  start(chain: string, request: ChainStart): Promise<string>;
  /** Resolves when the run has ended. */
  ended(runId: string, signal: AbortSignal): Promise<ChainEnd>;
  /** Asks it to stop. */
  stop(runId: string, reason: string): Promise<void>;
}

export interface ChainStart {
  opTime: string;
  params: Record<string, unknown>;
  /** Stays the same when the process dies and another takes over. */
  key: string;
  startedBy: string;
}

export interface ChainEnd {
  status: string;
  reason: string | null;
  /** What the last nodes of the DAG brought. */
  artifacts: unknown[];
}
