/**
 * The interface of a node type: its name, the schema of its `cfg`, and `execute`. The engine does the rest: templates,
 * conditions, retries, time-outs, leases, logs.
 */
import type { Static, TSchema } from "typebox";
import type { Dag } from "../definitions/dag.ts";

export interface NodeType<Cfg extends TSchema = TSchema> {
  /** The `type` in definitions. */
  readonly type: string;
  /** One sentence, for the reference and for error messages. */
  readonly summary: string;
  /** The schema of `cfg`, checked when a chain is defined and again when its templates are rendered. */
  readonly cfg: Cfg;
  /** False: `execute` does not use `ctx.parents`, so the parents' results are read only if a template or `if` uses them. */
  readonly readsParents?: false;
  /** Fields of `cfg` whose templates are not rendered for this node: the `node` of a map is rendered for each item. */
  readonly unrendered?: readonly string[];
  /**
   * It stores its `cfg` where others can read it, as the params of a run or the name of a table, so `cfg` must not contain a
   * secret. `unrendered` fields may: the items of a map get their secrets when they run.
   */
  readonly storesCfg?: true;
  /** Names in `cfg` that must exist when a chain is defined, unless they are templates. */
  readonly references?: readonly Reference[];
  /**
   * Does the work. After a crash it may be called again with the same input, so an effect that must not happen twice needs an
   * idempotency key: `ctx.key`.
   */
  execute(ctx: NodeContext, cfg: Static<Cfg>): Promise<NodeResult>;
}

/** Something that definitions name. */
export interface Reference {
  /** The field of `cfg`. */
  field?: string;
  /** A noun: `chain`, `engine`. */
  what: string;
  /** Those of the names that exist. */
  existing(names: readonly string[]): Promise<readonly string[]>;
  /** All names, to find a similar one. */
  all(): Promise<readonly string[]>;
  /** A sentence on how to create it, if none is similar. */
  hint?: string;
}

/** The input of an execution, beside its `cfg`. */
export interface NodeContext {
  readonly runId: string;
  readonly nodeId: string;
  /** 1 for the first; counts automatic and manual retries. */
  readonly attempt: number;
  /**
   * An idempotency key for external effects. It stays the same when an attempt is repeated because its worker was lost or shut
   * down, and changes after a reported failure and after a manual retry.
   */
  readonly key: string;
  readonly opTime: string | null;
  readonly params: Readonly<Record<string, unknown>>;
  /** Status and artifact of the parents, by node id. */
  readonly parents: Readonly<Record<string, { status: string; artifact: unknown }>>;
  /** The checkpoint that the last attempt returned or saved; null if there is none. */
  readonly checkpoint: unknown;
  /** Aborted when the run is stopped, the node times out, or its lease is lost. Results after that are ignored. */
  readonly signal: AbortSignal;
  /** A line for the node's log. */
  log(text: string, level?: "info" | "warn" | "error"): void;
  /** Progress from 0 to 1. */
  progress(share: number, note?: string): void;
  /** Stores a value for the next attempt, in case this one does not finish. */
  saveCheckpoint(value: unknown): Promise<void>;
}

/** As JSON. A checkpoint may have as many. */
export const ARTIFACT_BYTES_MAX = 1_048_576;

export interface NodeResult {
  /** The result: children read it as `${nodes.<id>.artifact}`. Any JSON. */
  artifact?: unknown;
  /** Stored for the node's next attempt. Any JSON. */
  checkpoint?: unknown;
  /** A child run to start and wait for. The node holds no slot meanwhile, and ends with the status of that run. */
  subRun?: SubRun;
  /** Something else to wait for. The node holds no slot meanwhile, and whoever does the work ends the wait. */
  wait?: Wait;
}

export interface Wait {
  /** A UUID. The same when the attempt is repeated because its worker was lost. */
  id: string;
  /** Called when the node is parked: the work may have ended before that. */
  onParked(): void;
}

export interface SubRun {
  /** A chain by its name, or a DAG that belongs to no chain. */
  of: { chain: string } | { dag: Dag };
  params: Record<string, unknown>;
  opTime: string | null;
}

/** A failure that another attempt would repeat, such as a rejected request: the node is not retried. */
export class FinalFailure extends Error {
  readonly retry = false;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "FinalFailure";
  }
}

/** Whether another attempt may help. Node types in user files set `retry = false` on an error instead. */
export function mayRetry(error: unknown): boolean {
  return (error as { retry?: unknown } | undefined)?.retry !== false;
}

/** Infers the type of `cfg` in `execute` from the schema. */
export function nodeType<Cfg extends TSchema>(type: NodeType<Cfg>): NodeType<Cfg> {
  return type;
}
