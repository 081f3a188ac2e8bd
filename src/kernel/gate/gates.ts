/**
 * The rate gate: permits for requests to external services, shared by all processes through Postgres. A gate is a row for
 * each limit (`ip:ncbi`, `cred:42`, `endpoint:works`), and a request takes a permit of all its gates at once or of none.
 *
 *     const taken = await gates.take({ task, gates: [{ key: "crossref" }] }, { maxWaitMs: 30_000, signal });
 *     if (taken.kind === "rejected") return park(taken.retryAfterMs);
 *     try {
 *       ... send the request now, and read the body ...
 *       await gates.feedback("crossref", signalOf(response));
 *     } finally {
 *       await taken.release();
 *     }
 *
 * Times are those of the database's clock; a process only learns how long to wait. No transaction is open while it waits.
 * Permits that are not used expire: returned ones would make bursts. Where the database is unreachable nothing is granted,
 * because a limit kept by each process alone would be exceeded by all of them together.
 */
import type { Db, Queryable, Tx } from "../data/db.ts";
import { kernelError } from "../errors.ts";
import type { Hints } from "../hints/hints.ts";
import type { KERNEL_HINTS } from "../hints/kinds.ts";
import type { KERNEL_METRICS } from "../telemetry/metric-table.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { ServiceLog } from "../work/service.ts";
import type { Session } from "../work/session.ts";
import type { Wake } from "../work/wake.ts";
import { faultOf, type GateDeclaration } from "./declaration.ts";
import { declare, describe, type GateRow, undeclare } from "./declaration-store.ts";
import { applyHeaders, open, slowDown } from "./feedback-store.ts";
import {
  type AcquireRequest,
  type Allowed,
  COST_MAX,
  type GateSignal,
  type HeaderSignal,
  type HeldSlots,
  type Rejected,
} from "./permits.ts";
import { COOLDOWN_MS_MAX } from "./signal.ts";
import { acquire, addUndeclared, databaseTimeMs, GATES_MAX, release } from "./store.ts";
import { createTake, gateTopic, QUANTUM, type Take } from "./take.ts";

/** Gates were opened or declared anew: what was put off because of them may be tried again. */
export const GATES_TOPIC = "kernel.gates";

export interface Gates extends Pick<Take, "take"> {
  /**
   * Takes effect at once. Declaring the same again changes nothing; the pace and the quotas used stay as they are. With `asOf`
   * a source declares, by a definition of that time: gates that an operator or a newer definition has declared stay as they are.
   */
  declare(tx: Queryable, gates: readonly GateDeclaration[], asOf?: Date): Promise<void>;
  /** The gate has the limits of an undeclared one from now on: 1 request a second. */
  undeclare(tx: Queryable, key: string): Promise<void>;
  /** Ends a cooldown, restores the declared rate and forgets limits that the service has sent in headers. */
  open(tx: Queryable, key: string): Promise<void>;
  /** One decision, without waiting. Most callers want `take`. */
  acquire(request: AcquireRequest): Promise<Allowed | Rejected>;
  /** Frees slots once the body was read. Repeating it is harmless. */
  release(held: HeldSlots): Promise<void>;
  feedback(key: string, signal: GateSignal): Promise<void>;
  /** Called in each transaction that opens gates or changes what they allow. Hints of GATES_TOPIC follow its commit. */
  onChange(listener: (tx: Queryable, keys: readonly string[]) => Promise<void>): void;
  /** Without keys, all gates. `tx` sees its own changes. */
  describe(keys?: readonly string[], tx?: Queryable): Promise<GateRow[]>;
}

export interface GatesDeps {
  db: Db;
  session: Pick<Session, "id">;
  wake: Wake;
  hints: Hints<typeof KERNEL_HINTS>;
  log: ServiceLog;
  metrics: Metrics<typeof KERNEL_METRICS>;
  /** From 0 up to 1. */
  random?: () => number;
}

const REQUEST_GATES_MAX = 8;
/** Of harvests and of nodes of chains. Smaller numbers may spend what quotas hold back; larger ones leave a part for these. */
const PRIORITY = 100;
/** Of a request whose price nobody names: what is spent is known from headers, and a quota that is spent refuses it. */
const USD_MICROS = 1;
const SLOT_TTL_MS = 150_000;
const COOLDOWN_MS = 1_000;
/** A cooldown is longer than the service asks by this share, so that processes do not come back in the same moment. */
const JITTER = { min: 0.05, max: 0.15 };

export function createGates({ db, session, wake, hints, log, metrics, random = Math.random }: GatesDeps): Gates {
  /** The limits of headers that are already written, by gate. */
  const heeded = new Map<string, string>();
  const listeners: ((tx: Queryable, keys: readonly string[]) => Promise<void>)[] = [];

  async function changed(tx: Queryable | Tx, keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    for (const key of keys) heeded.delete(key);
    for (const listener of listeners) await listener(tx, keys);
    hints.changed(tx, "gate", keys);
    const hint = () => {
      for (const topic of [...keys.map(gateTopic), GATES_TOPIC]) wake.hint(topic);
    };
    if ("afterCommit" in tx) tx.afterCommit(hint);
    else hint();
  }

  async function decide(request: AcquireRequest): Promise<Allowed | Rejected> {
    const gates = [...request.gates].map(({ key, cost = 1, spend = {} }) => ({
      key,
      cost,
      credits: spend.credits ?? cost,
      usd_micros: spend.usdMicros ?? USD_MICROS,
    }));
    assertRequest(gates);
    const values = {
      gates,
      permits: Math.min(request.permits ?? 1, QUANTUM),
      deadlineMs: request.deadlineMs,
      heldBackTimes: 1 + Math.sign((request.priority ?? PRIORITY) - PRIORITY),
      sessionId: session.id(),
      slotTtlSec: (request.slotTtlMs ?? SLOT_TTL_MS) / 1_000,
    };
    let row = await acquire(db, values);
    if (!row) {
      await addUndeclared(
        db,
        gates.map(({ key }) => key),
      );
      row = await acquire(db, values);
    }
    if (!row) throw kernelError("GATES_FULL", { limit: GATES_MAX });
    if (row.granted === 0) {
      if (row.reason === null || row.refused_key === null || row.retry_ms === null) throw new Error("no reason given");
      metrics.count("millrace_gate_rejections_total", { reason: row.reason });
      return {
        kind: "rejected",
        reason: row.reason,
        key: row.refused_key,
        retryAfterMs: Math.ceil(row.retry_ms),
        answeredAtMs: row.answered_at_ms,
        soft: row.soft,
      };
    }
    metrics.count("millrace_gate_permits_total", {}, row.granted);
    return {
      kind: "allow",
      waitMs: row.wait_ms,
      permits: row.granted,
      gapMs: row.gap_ms,
      ratePerSec: row.rate_per_sec,
      answeredAtMs: row.answered_at_ms,
      held: { fence: row.fence, slots: row.slots },
    };
  }

  async function releaseSlots({ slots, fence }: HeldSlots): Promise<void> {
    if (slots.length === 0) return;
    for (const { key, was_full } of await release(db, slots, fence)) if (was_full) wake.hint(gateTopic(key));
  }

  async function cool(key: string, cut: boolean, askedMs: number): Promise<void> {
    const jitter = 1 + JITTER.min + (JITTER.max - JITTER.min) * random();
    const cooldownSec = (Math.min(Math.max(askedMs, 0), COOLDOWN_MS_MAX) * jitter) / 1_000;
    let row = await slowDown(db, key, { cut, cooldownSec });
    if (!row) {
      await addUndeclared(db, [key]);
      row = await slowDown(db, key, { cut, cooldownSec });
    }
    if (row) hints.changed(db, "gate", key);
    if (row?.cut) {
      metrics.count("millrace_gate_cuts_total", {});
      log.info({ gate: key, cooldownSec }, "a service asked to be called less often; its gate was slowed down");
    }
    if (row?.is_cooling) take.cool(key, row.at_ms);
  }

  async function heed(key: string, signal: HeaderSignal): Promise<void> {
    const { ratePerSec = null, concurrency = null, quotas = [] } = signal;
    const limits = JSON.stringify([ratePerSec, concurrency]);
    if (quotas.length === 0 && heeded.get(key) === limits) return; // The same on every response.
    const headers = {
      ratePerSec,
      concurrency,
      quotas: quotas.map(({ unit, remaining, limit, resetAfterMs }) => ({
        unit,
        remaining,
        quota_limit: limit ?? null,
        resets_in_sec: resetAfterMs === undefined ? null : resetAfterMs / 1_000,
      })),
    };
    if (!(await applyHeaders(db, key, headers))) {
      await addUndeclared(db, [key]);
      await applyHeaders(db, key, headers);
    }
    if (heeded.size >= GATES_MAX) heeded.clear();
    if (heeded.get(key) !== limits) hints.changed(db, "gate", key); // Not for what is left of a quota, which each response changes.
    heeded.set(key, limits);
  }

  const take = createTake({
    acquire: decide,
    release: releaseSlots,
    databaseTimeMs: () => databaseTimeMs(db),
    wake,
    log,
    metrics,
  });

  metrics.gauge("millrace_gate_waiting", () => [{ labels: {}, value: take.waiting() }]);

  return {
    async declare(tx, gates, asOf) {
      for (const gate of gates) {
        const fault = faultOf(gate);
        if (fault !== undefined) throw new Error(`gate ${gate.key}: ${fault}`);
      }
      const keys = await declare(tx, gates, asOf);
      if (!keys) throw kernelError("GATES_FULL", { limit: GATES_MAX });
      await changed(tx, keys);
    },
    async undeclare(tx, key) {
      if (!(await undeclare(tx, key))) throw kernelError("GATE_NOT_FOUND", { key });
      await changed(tx, [key]);
    },
    async open(tx, key) {
      if (!(await open(tx, key))) throw kernelError("GATE_NOT_FOUND", { key });
      await changed(tx, [key]);
    },
    acquire: decide,
    release: releaseSlots,
    async feedback(key, signal) {
      if (signal.kind === "throttled") await cool(key, true, signal.retryAfterMs ?? COOLDOWN_MS);
      if (signal.kind === "wait") await cool(key, false, signal.retryAfterMs);
      if (signal.kind === "headers") await heed(key, signal);
    },
    onChange: (listener) => void listeners.push(listener),
    describe: (keys, tx) => describe(tx ?? { rows: db.read }, keys ?? null),
    take: take.take,
  };
}

function assertRequest(gates: readonly { key: string; cost: number }[]): void {
  if (gates.length === 0 || gates.length > REQUEST_GATES_MAX)
    throw new Error(`a request passes 1 to ${REQUEST_GATES_MAX} gates`);
  if (new Set(gates.map(({ key }) => key)).size < gates.length) throw new Error("a request names a gate twice");
  for (const { key, cost } of gates) {
    if (!Number.isInteger(cost) || cost < 1 || cost > COST_MAX)
      throw new Error(`the cost ${cost} of gate ${key} is not a whole number from 1`);
  }
}
