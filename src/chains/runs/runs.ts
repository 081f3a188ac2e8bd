/** Use cases of runs: start, stop, resume, retry, complete, backfill. */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import { type Db, FOREIGN_KEY_VIOLATION, type Queryable, sqlState } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import { createGroupCommit } from "../../kernel/data/group-commit.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import { fingerprint } from "../../kernel/json/canonical.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type ChainsHints, chainsError } from "../catalogue.ts";
import type { Definitions } from "../definitions/definitions.ts";
import type { Book } from "../engine/book.ts";
import type { Changed, Engine } from "../engine/engine.ts";
import { complete, type Refused, resume, retry } from "../engine/revive.ts";
import { ENDED_RUN, type NodeStatus, type RunStatus } from "../engine/states.ts";
import { endRunIfDone, onRunEvent } from "../engine/transition.ts";
import { saveCheckpoints } from "../store/history.ts";
import { insertChainRuns, type NewRun } from "../store/runs.ts";
import { takeStartKey } from "../store/starts.ts";
import { isAwaited } from "../store/timers.ts";
import { TIMER_TOPIC } from "../topics.ts";

export interface StartRequest {
  params?: Record<string, unknown>;
  opTime?: string | null;
  priority?: number;
  idempotencyKey?: string;
  trigger?: "api" | "schedule" | "backfill" | "arrival";
  /** The schedule or trigger that started it. */
  jobId?: string;
  by: string;
}

/** A node that a retry changes, or would change. */
export interface NodeMove {
  nodeId: string;
  from: NodeStatus;
  to: NodeStatus;
}

/** What an action does to a run, or would do. */
export interface Effect<Status = RunStatus> {
  status: Status;
  nodes: NodeMove[];
  /** The same for the same effect: what a person has seen is not done if it would be something else by now. */
  revision: string;
}
/** Only previews it, or does it only if its effect is still the one that was previewed. */
export interface Previewed extends Partial<DryRun> {
  revision?: string;
}

export interface Runs {
  start(chainId: string, request: StartRequest): Promise<{ runId: string; repeated: boolean }>;
  /** Throws what `start` would throw, and starts nothing. */
  checkStart(chainId: string, request: StartRequest): Promise<void>;
  startMany(chainId: string, requests: readonly StartRequest[]): Promise<string[]>;
  stop(runId: string, actor: Actor, request?: StopRequest): Promise<Effect>;
  resume(runId: string, actor: Actor, request?: Previewed): Promise<Effect>;
  retry(runId: string, request: RetryRequest, actor: Actor): Promise<Retried>;
  complete(runId: string, request: CompleteRequest, actor: Actor): Promise<Completed>;
  /** Stops it in the name of Millrace. `also` writes in that transaction, unless it is being stopped already or has ended. */
  stopChild(runId: string, reason: string, also?: Also): Promise<void>;
  /** Stops a child run, unless a node waits for it again. */
  stopOrphan(runId: string): Promise<void>;
  /** Retries it in the name of Millrace, for the next attempt of its parent node. Returns whether there was anything to retry. */
  retryChild(runId: string): Promise<boolean>;
}

export interface StopRequest extends Previewed {
  reason?: string | null;
}
export interface RetryRequest extends Previewed {
  nodeId?: string;
  downstream: boolean;
  reason: string | null;
  /** For the attempt of the named node. */
  artifact?: unknown;
}
export interface Retried extends Effect {
  node: { status: NodeStatus; attempt: number } | undefined;
}
export interface CompleteRequest extends Previewed {
  nodeId: string;
  artifact: unknown;
  reason: string | null;
}
export interface Completed extends Effect<NodeStatus> {
  attempt: number;
}

const SYSTEM = "millrace";
const TABLES_SHOWN = 5;
/** Nodes that one statement inserts: more, such as a thousand runs of a large chain, would exceed the statement time-out. */
const NODES_AT_ONCE = 50_000;

type Also = NonNullable<Changed<unknown>["also"]>;

/** The chain is disabled or needs an opTime; `whyNotStarted` finds out which. */
class NotStarted extends Error {}

/** Rolls back the stop of a child run that a node waits for again. */
class Awaited extends Error {}

export function createRuns(deps: {
  db: Db;
  wake: Wake;
  hints: ChainsHints;
  engine: Engine;
  definitions: Definitions;
  ids: Ids;
  stopGraceMs: number;
}): Runs {
  const { db, wake, hints, engine, definitions, ids, stopGraceMs } = deps;

  function newRun(chainId: string, request: StartRequest): NewRun {
    return {
      run_id: ids.uuid(),
      chain_id: chainId,
      job_id: request.jobId ?? null,
      params: request.params ?? {},
      op_time: request.opTime ?? null,
      priority: request.priority ?? 0,
      trigger: request.trigger ?? "api",
      triggered_by: request.by,
      parent_run_id: null,
      parent_node_id: null,
      depth: 0,
      request: null,
    };
  }

  /** Returns for each run whether it was inserted. */
  async function insert(tx: Queryable, runs: readonly NewRun[]): Promise<boolean[]> {
    const made = new Set((await insertChainRuns(tx, runs)).map(({ run_id }) => run_id));
    hints.changed(tx, "run", made);
    return runs.map(({ run_id }) => made.has(run_id));
  }

  const starts = createGroupCommit<NewRun, boolean>({
    identity: ({ run_id }) => run_id,
    write: (runs) => engine.start(runs),
  });

  async function whyNotStarted(chainId: string): Promise<ApiError> {
    const { name, enabled, dag } = await definitions.get(chainId);
    if (!enabled) return chainsError("CHAIN_DISABLED", { chainId, name });
    const tables = [...new Set(dag.nodes.flatMap(({ waitsFor = [] }) => waitsFor))];
    return chainsError("OP_TIME_NEEDED", { name }, { tables: tables.slice(0, TABLES_SHOWN).join(", ") });
  }

  async function change<T>(runId: string, work: (book: Book) => Changed<T>): Promise<T> {
    const answer = await engine.change(runId, work);
    if (answer === undefined) throw chainsError("RUN_NOT_FOUND", { runId });
    return answer;
  }

  /** Ends a run that is STOPPING if none of its nodes runs. */
  async function endIfStopped(runId: string): Promise<void> {
    await engine.change(runId, (book) => {
      if (book.status === "STOPPING") endRunIfDone(book);
      return { answer: true };
    });
  }

  async function stop(
    runId: string,
    { by, reason, dryRun = false, revision }: Previewed & { by: string; reason: string },
    also: Also = async () => {},
  ): Promise<Effect> {
    const effect = await change(runId, (book): Changed<Effect> => {
      const { status: present } = book;
      if (present === "STOPPING" || present === "STOPPED") return { answer: effectOf(book, revision), dry: true };
      if (ENDED_RUN.has(present)) {
        const because = `it has ended with ${present}`;
        throw chainsError("RUN_WRONG_STATE", { runId, status: present }, { verb: "stop", because });
      }
      onRunEvent(book, { kind: "stop", graceMs: stopGraceMs, actor: by, reason });
      return { answer: effectOf(book, revision), dry: dryRun, also };
    });
    if (dryRun) return effect;
    // After the response. If the process dies before this, the timers do it when the grace period is over.
    if (effect.status === "STOPPING") endIfStopped(runId).catch(() => wake.hint(TIMER_TOPIC));
    return effect;
  }

  async function startOnce(chainId: string, key: string, request: StartRequest, options = FOR_REAL) {
    const run = newRun(chainId, request);
    const earlier = await transact(db, options, async (tx) => {
      const repeated = await takeStartKey(tx, { chainId, key, request: digest(request), runId: run.run_id }).catch(
        (error: unknown) => {
          const noChain = sqlState(error) === FOREIGN_KEY_VIOLATION; // The key refers to its chain.
          throw noChain ? chainsError("CHAIN_NOT_FOUND", { chainId }) : error;
        },
      );
      if (repeated && !repeated.same) throw chainsError("IDEMPOTENCY_CONFLICT", { key, runId: repeated.runId });
      if (repeated) return repeated.runId;
      if (!(await insert(tx, [run]))[0]) throw new NotStarted();
      tx.afterCommit(() => wake.hint(TIMER_TOPIC));
      return undefined;
    }).catch(async (error: unknown) => {
      // Outside the transaction, since it takes another connection.
      throw error instanceof NotStarted ? await whyNotStarted(chainId) : error;
    });
    return { runId: earlier ?? run.run_id, repeated: earlier !== undefined };
  }

  return {
    async start(chainId, request) {
      const { idempotencyKey: key } = request;
      if (key !== undefined) return startOnce(chainId, key, request);
      const run = newRun(chainId, request);
      if (!(await starts.add(run))) throw await whyNotStarted(chainId);
      return { runId: run.run_id, repeated: false };
    },

    async checkStart(chainId, request) {
      const { idempotencyKey: key } = request;
      const dry = { dryRun: true };
      if (key !== undefined) return void (await startOnce(chainId, key, request, dry));
      const [made] = await transact(db, dry, (tx) => insert(tx, [newRun(chainId, request)]));
      if (!made) throw await whyNotStarted(chainId);
    },

    async startMany(chainId, requests) {
      const runs = requests.map((request) => newRun(chainId, request));
      const { dag } = await definitions.get(chainId);
      const atOnce = Math.max(1, Math.floor(NODES_AT_ONCE / dag.nodes.length));
      for (let from = 0; from < runs.length; from += atOnce) {
        const made = await insert(db, runs.slice(from, from + atOnce));
        if (made.includes(false)) throw await whyNotStarted(chainId);
        wake.hint(TIMER_TOPIC);
      }
      return runs.map(({ run_id }) => run_id);
    },

    async stop(runId, actor, { reason = null, ...previewed } = {}) {
      const by = actor.caller.name;
      const details = reason === null ? {} : { reason };
      const also: Also = (tx) => audit(tx, actor, "run.stop", runId, details);
      return stop(runId, { by, reason: reason ?? `stopped by ${by}`, ...previewed }, also);
    },

    async resume(runId, actor, { dryRun = false, revision } = {}) {
      return change(runId, (book) => {
        refuseRun(runId, "resume", book, resume(book, actor.caller.name));
        const answer = effectOf(book, revision);
        return { answer, dry: dryRun, also: (tx) => audit(tx, actor, "run.resume", runId) };
      });
    },

    async retry(runId, { nodeId, downstream, dryRun = false, revision, reason, artifact = null }, actor) {
      const [action, target] = nodeId === undefined ? ["run.retry", runId] : ["node.retry", `${runId}/${nodeId}`];
      const also: Also = async (tx) => {
        await audit(tx, actor, action, target, { downstream, reason });
        if (nodeId === undefined || artifact === null) return;
        await saveCheckpoints(tx, [{ run_id: runId, node_id: nodeId, checkpoint: artifact }]);
      };
      return change(runId, (book): Changed<Retried> => {
        if (nodeId !== undefined) needNode(book, nodeId);
        const { status: runStatus } = book;
        const nodeStatus = nodeId === undefined ? undefined : book.nodes.get(nodeId)?.status;
        const refused = retry(book, { nodeId, downstream, actor: actor.caller.name, reason, artifact });
        if (refused && nodeId !== undefined) {
          const details = { runId, nodeId, status: nodeStatus ?? "", runStatus };
          throw chainsError("NODE_WRONG_STATE", details, { verb: "retry", because: refused.because });
        }
        refuseRun(runId, "retry", { status: runStatus }, refused);
        const entry = nodeId === undefined ? undefined : book.nodes.get(nodeId);
        const node = entry && { status: entry.status, attempt: entry.attempt };
        return { answer: { ...effectOf(book, revision), node }, dry: dryRun, also };
      });
    },

    async complete(runId, { nodeId, artifact, reason, dryRun = false, revision }, actor) {
      const also: Also = (tx) => audit(tx, actor, "node.complete", `${runId}/${nodeId}`, { reason });
      return change(runId, (book): Changed<Completed> => {
        const entry = needNode(book, nodeId);
        const { status } = entry;
        const answer = () => ({ ...effectOf(book, revision), status: entry.status, attempt: entry.attempt });
        if (status === "SUCCESS") return { answer: answer(), dry: true };
        const refused = complete(book, { nodeId, artifact, actor: actor.caller.name, reason });
        if (refused) {
          throw chainsError(
            "NODE_WRONG_STATE",
            { runId, nodeId, status },
            { verb: "complete", because: refused.because },
          );
        }
        return { answer: answer(), dry: dryRun, also };
      });
    },

    async stopChild(runId, reason, also) {
      await stop(runId, { by: SYSTEM, reason }, also).catch((error: unknown) => {
        if (!(error instanceof ApiError)) throw error; // It has ended meanwhile.
      });
    },

    async stopOrphan(runId) {
      const unlessAwaited: Also = async (tx) => {
        if (await isAwaited(tx, runId)) throw new Awaited();
      };
      const reason = "no node waits for it anymore";
      await stop(runId, { by: SYSTEM, reason }, unlessAwaited).catch((error: unknown) => {
        if (!(error instanceof Awaited) && !(error instanceof ApiError)) throw error;
      });
    },

    async retryChild(runId) {
      return change(runId, (book) => {
        const refused = retry(book, {
          nodeId: undefined,
          downstream: false,
          actor: SYSTEM,
          reason: "its parent node is retried",
        });
        return { answer: refused === undefined, dry: refused !== undefined };
      });
    },
  };
}

/** Two starts with one key are the same if their digests are equal. */
function digest({ params = {}, opTime = null, priority = 0 }: StartRequest): string {
  return fingerprint({ params, opTime, priority });
}

function refuseRun(runId: string, verb: string, { status }: { status: RunStatus }, refused: Refused | undefined): void {
  if (refused) throw chainsError("RUN_WRONG_STATE", { runId, status }, { verb, because: refused.because });
}

function needNode(book: Book, nodeId: string) {
  const entry = book.nodes.get(nodeId);
  if (entry) return entry;
  throw chainsError("NODE_NOT_FOUND", { runId: book.runId, nodeId }, { hint: didYouMean(nodeId, book.nodes.keys()) });
}

/** Throws if it is not the effect of that revision. */
function effectOf(book: Book, revision: string | undefined): Effect {
  const { runId, status } = book;
  const nodes = movesOf(book);
  // An attempt that has failed meanwhile is another one, although the moves are the same.
  const attempts = nodes.map(({ nodeId }) => book.nodes.get(nodeId)?.attempt ?? 0);
  const found = fingerprint({
    was: book.was.status,
    status,
    nodes: nodes.map(({ nodeId, from, to }) => [nodeId, from, to]),
    attempts,
  });
  if (revision !== undefined && revision !== found) throw chainsError("RUN_CHANGED", { runId, revision: found });
  return { status, nodes, revision: found };
}

/** In a run that is stopped, what still runs is asked to stop, and moves when it does. */
function movesOf(book: Book): NodeMove[] {
  const isStopped = book.status === "STOPPING" && book.was.status !== "STOPPING";
  return book.graph.nodes.flatMap(({ id }) => {
    const entry = book.nodes.get(id);
    if (!entry) return [];
    const from = entry.was.status;
    if (isStopped && entry.status === "RUNNING") return [{ nodeId: id, from, to: "STOPPED" }];
    return entry.status !== from || entry.endedAttempt ? [{ nodeId: id, from, to: entry.status }] : [];
  });
}
