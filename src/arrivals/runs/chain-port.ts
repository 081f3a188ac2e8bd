/** The port to chains: start one by its name, wait for its end, stop it. The application connects the two modules. */

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
  /** The same for every process that takes over the run. */
  key: string;
  startedBy: string;
}

export interface ChainEnd {
  status: string;
  reason: string | null;
  /** The artifacts of the last nodes of the DAG. */
  artifacts: unknown[];
}
