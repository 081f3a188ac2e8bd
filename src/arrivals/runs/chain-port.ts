/** The port to chains: runs that models wait for, and nodes that wait for models. The application connects the two modules. */
import type { Queryable, Tx } from "../../kernel/data/db.ts";

export interface ChainPort {
  /** The chains that models can name. */
  chains: Names;
  /** Starts a run of the chain with this name in the transaction. Throws an ApiError when it cannot be started. */
  start(tx: Tx, chain: string, request: ChainStart): Promise<string>;
  /** How a run ended; undefined while it is under way. */
  outcome(runId: string, artifactBytesMax: number): Promise<ChainEnd | undefined>;
  /** Those of the runs that have not ended. */
  underWay(runIds: readonly string[]): Promise<Set<string>>;
  /** Asks it to stop. `also` writes in that transaction, unless the run is being stopped already or has ended. */
  stop(runId: string, reason: string, also?: (tx: Queryable) => Promise<void>): Promise<void>;
  /** The run that this run and its ancestors were started for. */
  rootOf(runId: string): Promise<string | undefined>;
  /**
   * Sets the listener for runs that were started here and end, or had ended and go on. It is called in that transaction and
   * answers those that a model waits for.
   */
  onChange(listener: (tx: Tx, changed: readonly ChainRunChange[]) => Promise<ReadonlySet<string>>): void;
  /** Ends a node that is parked for a run of a model. `early`: it is not parked yet. `gone`: it no longer waits. */
  endWait(wait: NodeWait, outcome: WaitOutcome): Promise<"counted" | "early" | "gone">;
  /** The ids of the waits whose node waits, or may be about to. */
  stillWaiting(db: Queryable, waits: readonly NodeWait[]): Promise<Set<string>>;
}

/** Things that definitions name. */
export interface Names {
  /** Those of the names that exist. */
  existing(names: readonly string[]): Promise<readonly string[]>;
  /** All names, to find a similar one. */
  all(): Promise<readonly string[]>;
}

export interface ChainStart {
  opTime: string;
  params: Record<string, unknown>;
  startedBy: string;
  /** A smaller one goes first. */
  priority?: number;
}

export interface ChainEnd {
  status: string;
  reason: string | null;
  /** Of a run that has succeeded, the artifacts of the last nodes of the DAG. Null if they exceed the limit together. */
  artifacts: unknown[] | null;
  artifactBytes: number;
}

export interface ChainRunChange {
  runId: string;
  /** RUNNING: it had ended and goes on. */
  status: string;
}

interface NodeWait {
  run_id: string;
  node_id: string;
  wait_id: string;
  /** The idempotency key of the attempt that waits. */
  key: string;
}

export type WaitOutcome =
  | { status: "SUCCESS"; artifact: unknown }
  | { status: "FAILED"; error: string; final: boolean };
