/**
 * Hints of changes: they tell a page which entities to fetch again, and carry no data. A hint is sent by NOTIFY after the
 * commit of the change. Each process collects its hints, sends the first at once and then at most every 250 ms, and receives
 * those of all processes. An idle process sends none.
 *
 * A hint has a rev: the id of the transaction that sent it. A process that has received a rev R reads, from then on, every
 * change that was hinted with a rev up to R:
 *  1. A change is committed before the transaction that sends its hint gets its id, say r.
 *  2. Ids are given in ascending order. With r <= R, the change was committed before R was given.
 *  3. R is received after it was given, and a read that starts then has a later snapshot.
 * So each reply to a read has the highest rev that the process had received when the request arrived. A reply whose rev is
 * lower than that of a hint may lack its change. That notifications are delivered in the order of their commits, which is
 * not that of their ids, does not matter here.
 *
 * Hints are missed while the connection is lost, and a process that dies between a commit and its hint never sends it. So
 * listeners get a gap, which stands for all changes, after the connection was replaced and after any process has died. One that
 * stops sends its hints first: a deployment, which replaces one process after the other, makes no page read everything again.
 *
 * A process also sends an empty batch when it has connected, and for a gap. Otherwise it would not know, until the next change of anything,
 * that what it reads is new, and the page would go on to drop its replies.
 */
import type { Queryable, Tx } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { createPaced } from "../work/paced.ts";
import { HINTS_CHANNEL, type Pulse } from "../work/pulse.ts";
import type { ServiceLog } from "../work/service.ts";
import type { Session } from "../work/session.ts";
import type { HintTable } from "./kinds.ts";
import { createOutgoing, payloadsOf } from "./outgoing.ts";
import { type Batch, type Change, createRing, type Ring } from "./ring.ts";

/** What a module uses. `Table` has its kinds. */
export interface Hints<Table extends HintTable = HintTable> {
  /**
   * Call it after the change. Sends hints once `tx` is committed, or at once for a `db`, whose statements are committed when
   * they answer. The same entity may be named again and again.
   */
  changed(tx: Queryable | AfterCommit, kind: keyof Table & string, ids: Ids, options?: HintOptions): void;
}
type AfterCommit = Pick<Tx, "afterCommit">;
type Ids = string | Iterable<string>;
export interface HintOptions {
  /** The tenant that the entities belong to. */
  tenantId?: string | number | bigint;
}

/** What streams and replies use. */
export interface ReceivedHints extends Pick<Ring, "after"> {
  /** The highest rev that was received. */
  rev(): bigint;
  /** Calls `onBatch` with each batch, or `onGap` with the first one after some were missed. Returns what ends it. */
  on(listener: HintListener): () => void;
}
export interface HintListener {
  onBatch(batch: Batch): void;
  onGap(rev: bigint): void;
}

export interface OpenHints {
  hints: Hints;
  received: ReceivedHints;
  /** Sends pending hints. */
  stop(): Promise<void>;
}

const SEND_GAP_MS = 250;

const NOTIFY = statement(
  "kernel.hints.notify",
  `select pg_notify('${HINTS_CHANNEL}', pg_current_xact_id()::text || ' ' || $1::text)`,
);

export interface HintsDeps {
  pulse: Pulse;
  session: Pick<Session, "onExpiry">;
  log: ServiceLog;
}

/** Resolves when a rev is known. */
export async function openHints({ pulse, session, log }: HintsDeps): Promise<OpenHints> {
  const outgoing = createOutgoing();
  const ring = createRing();
  const listeners = new Set<HintListener>();
  let isAnnounced = false;
  let hasGap = false;

  async function send(): Promise<boolean> {
    const taken = outgoing.take();
    isAnnounced = true;
    try {
      // Each in its own transaction, so that no two have the same rev and a stream can continue after any of them.
      await Promise.all(payloadsOf(taken).map((payload) => pulse.rows(NOTIFY, [payload])));
      return true;
    } catch (err) {
      for (const { kind, ids, tenantId } of taken) outgoing.add(kind, ids, tenantId);
      isAnnounced = false;
      log.warn({ err }, "hints of changes were not sent; they are sent later");
      return false;
    }
  }

  function missed(): void {
    ring.empty();
    hasGap = true;
    isAnnounced = false;
  }

  pulse.onNotification((payload) => {
    const batch = parsed(payload);
    if (!batch) return;
    ring.add(batch);
    for (const listener of listeners) {
      if (hasGap) listener.onGap(batch.rev);
      else listener.onBatch(batch);
    }
    hasGap = false;
  }, HINTS_CHANNEL);
  pulse.onReconnect(missed);
  const paced = createPaced({ pulse, gapMs: SEND_GAP_MS, isEmpty: () => isAnnounced && outgoing.isEmpty(), send });
  session.onExpiry((hasDied) => {
    if (!hasDied) return;
    missed();
    paced.schedule();
  });

  function add(kind: string, ids: Ids, { tenantId }: HintOptions = {}): void {
    outgoing.add(kind, typeof ids === "string" ? [ids] : ids, tenantId === undefined ? undefined : String(tenantId));
    paced.schedule();
  }

  await send();
  return {
    hints: {
      changed(tx, kind, ids, options) {
        if ("afterCommit" in tx) tx.afterCommit(() => add(kind, ids, options));
        else add(kind, ids, options);
      },
    },
    received: {
      rev: ring.highest,
      after: ring.after,
      on(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    },
    stop: paced.stop,
  };
}

function parsed(payload: string): Batch | undefined {
  const [, rev, changes] = /^(\d{1,20}) (\[[^]*\])$/.exec(payload) ?? [];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by `payloadsOf`
  return rev === undefined ? undefined : { rev: BigInt(rev), changes: JSON.parse(changes ?? "") as Change[] };
}
