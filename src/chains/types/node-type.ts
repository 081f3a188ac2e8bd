/**
 * What a node of a chain does when it runs. A node type is one small file: its name, the schema of its `cfg`, and
 * `execute`. The engine does the rest: templates, conditions, retries, time-outs, leases, logs.
 */
import type { Static, TSchema } from "typebox";
import type { Dag } from "../definitions/dag.ts";

export interface NodeType<Cfg extends TSchema = TSchema> {
  /** What a definition writes under `type`. */
  readonly type: string;
  /** One sentence, for the reference and for error messages. */
  readonly summary: string;
  /** The schema of `cfg`, checked when a chain is defined and again once its templates are filled in. */
  readonly cfg: Cfg;
  /** Knows its parents only through templates: then their results are read only if there are any. */
  readonly blind?: true;
  /** Fields of `cfg` whose templates are not for this node to fill in: the `node` of a map is for its items. */
  readonly untouched?: readonly string[];
  /**
   * Writes what is in its `cfg` where others can read it, as the params of a run or the name of a table: no secret may be in
   * it. Fields that it leaves `untouched` do not count: the items of a map are given their secrets when they run.
   */
  readonly storesCfg?: true;
  /**
   * Does the work. May be called again with the same input after a crash, so an effect that must not happen twice needs a
   * key of its own: `ctx.key`.
   */
  execute(ctx: NodeContext, cfg: Static<Cfg>): Promise<NodeResult>;
}

/** What an execution is given. */
export interface NodeContext {
  readonly runId: string;
  readonly nodeId: string;
  /** 1 for the first; goes on counting over automatic and manual retries. */
  readonly attempt: number;
  /**
   * For effects elsewhere that must not happen twice. It stays the same when an attempt has to be done over because its
   * worker was lost or shut down, and changes after a failure that was reported and after a retry by hand.
   */
  readonly key: string;
  readonly opTime: string | null;
  readonly params: Readonly<Record<string, unknown>>;
  /** How the parents ended and what they brought, by node id. */
  readonly parents: Readonly<Record<string, { status: string; artifact: unknown }>>;
  /** What the last attempt returned or saved as its checkpoint; null on the first. */
  readonly checkpoint: unknown;
  /** Aborted when the run is stopped, the time is up, or the work was taken away. What is done afterwards is not recorded. */
  readonly signal: AbortSignal;
  /** A line for the node's log. */
  log(text: string, level?: "info" | "warn" | "error"): void;
  /** How far the work is, from 0 to 1. */
  progress(share: number, note?: string): void;
  /** Keeps a value for the next attempt, should this one not come to its end. */
  saveCheckpoint(value: unknown): Promise<void>;
}

export interface NodeResult {
  /** What the node brought: children read it as `${nodes.<id>.artifact}`. Any JSON. */
  artifact?: unknown;
  /** Kept beside the node, for its next attempt. Any JSON. */
  checkpoint?: unknown;
  /** A run to start and to wait for. The node takes up no slot meanwhile and ends as that run does. */
  subRun?: SubRun;
}

export interface SubRun {
  /** A chain by its name, or a DAG made up on the spot. */
  of: { chain: string } | { dag: Dag };
  params: Record<string, unknown>;
  opTime: string | null;
}

/** A failure that the next try would only repeat, such as a refused request: it uses up all attempts at once. */
export class FinalFailure extends Error {
  readonly retry = false;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "FinalFailure";
  }
}

/** Whether another try could help. A type from a user's own file may set `retry = false` on any error. */
export function mayRetry(error: unknown): boolean {
  return (error as { retry?: unknown } | undefined)?.retry !== false;
}

/** Keeps the schema's type, so that `execute` knows its `cfg`. */
export function nodeType<Cfg extends TSchema>(type: NodeType<Cfg>): NodeType<Cfg> {
  return type;
}
