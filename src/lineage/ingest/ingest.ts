/**
 * Takes events. Those of one tenant share a transaction that writes the raw event, its fingerprint, the graph and the tasks;
 * each is acknowledged after the commit. Nearly all events repeat a settled assertion: they do not change the graph, and
 * their transactions share its lock. Any other event is applied under the exclusive lock of the tenant's graph.
 */

import type { Db, Queryable } from "../../kernel/data/db.ts";
import { createGroupCommit, type GroupCommit } from "../../kernel/data/group-commit.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type LineageHints, type LineageMetrics, lineageError } from "../catalogue.ts";
import { hashUuid } from "../graph/hash-uuid.ts";
import { isoOf } from "../graph/micros.ts";
import type { LineageSettings } from "../settings.ts";
import {
  type ApplyState,
  type NewEvent,
  settleEvents,
  type TakenBefore,
  takeEvents,
  takenEvents,
} from "../store/events.ts";
import { lockGraph } from "../store/graph-lock.ts";
import { type TenantNow, tenantNow } from "../store/tenants.ts";
import type { Tenant } from "../tenants/tenants.ts";
import { cutoverOf } from "./cutover.ts";
import { createGraphSlots } from "./graph-slots.ts";
import {
  applyIncoming,
  deadLetters,
  type Incoming,
  incomingOf,
  type OnChange,
  type ReadEvent,
  readKnown,
  recordRepeats,
  withoutParsed,
} from "./intake.ts";
import { createRecentEvents } from "./recent-events.ts";
import { createReplay, type Replayed } from "./replay.ts";
import { createSettledAssertions } from "./settled-assertions.ts";
import { createWaitingLimit } from "./waiting-limit.ts";

export interface Taken {
  id: string;
  /** Whether the very same event was taken before. */
  duplicate: boolean;
  state: ApplyState;
}

/** An event that waits to be taken. */
export interface Prepared extends Incoming {
  /** Its fingerprint. */
  key: string;
}

/** An event that was taken a moment ago, under this id. */
export interface TakenJustNow {
  again: string;
}

export type TakingTenant = Pick<Tenant, "id" | "code" | "name">;

export interface Ingest {
  /** What is held of an event until it is taken. Of one with a settled assertion only the text is. */
  prepare(tenantId: string, read: ReadEvent): Prepared | TakenJustNow;
  /** Resolves once the event is durable, and applied if its tenant is ready for it. */
  take(tenant: TakingTenant, prepared: Prepared | TakenJustNow): Promise<Taken>;
  /**
   * Applies the buffered events from the cutover on, skips older ones, and makes the tenant READY, as far as that can be
   * done in the time of a request.
   */
  makeReady(tenantId: string): Promise<Replayed>;
  /** Tries a dead letter again. */
  replay(tenantId: string, eventId: string): Promise<Taken>;
  drain(): Promise<void>;
}

export interface IngestDeps {
  db: Db;
  hints: LineageHints;
  clock: Clock;
  metrics: LineageMetrics;
  settings: Pick<LineageSettings, "waitingMax" | "waitingBytesMax" | "clockToleranceSeconds">;
  onChange: OnChange;
}

interface Item extends Prepared {
  tenant: TakingTenant;
}

/** Enough for one commit to be cheap, few enough that another tenant's batch does not wait long for its turn. */
const BATCH_EVENTS_MAX = 100;
/** Transactions on graphs at a time in one process, of different tenants. */
const GRAPH_SLOTS = 4;

/** Thrown in a transaction whose assertions are not settled after all: its events are then taken under the exclusive lock. */
class NotSettled extends Error {
  readonly assertions: ReadonlySet<string>;

  constructor(assertions: ReadonlySet<string> = new Set()) {
    super("the tenant has changed, or these assertions are not settled");
    this.assertions = assertions;
  }
}

export function createIngest(deps: IngestDeps): Ingest {
  const { db, hints, metrics, settings } = deps;
  const lanes = new Map<string, GroupCommit<Item, Taken>>();
  const recent = createRecentEvents();
  const waiting = createWaitingLimit(settings);
  const slots = createGraphSlots(GRAPH_SLOTS);
  const settled = createSettledAssertions();
  /** As the last transaction with an exclusive lock read them. */
  const tenantsSeen = new Map<string, TenantNow>();
  const replay = createReplay({ ...deps, slots });

  function laneOf(tenantId: string): GroupCommit<Item, Taken> {
    const known = lanes.get(tenantId);
    if (known) return known;
    const lane = createGroupCommit<Item, Taken>({
      identity: ({ key }) => key,
      itemsMax: BATCH_EVENTS_MAX,
      waitingMax: settings.waitingMax,
      write: (items) => slots.take(tenantId, () => write(items)),
    });
    lanes.set(tenantId, lane);
    return lane;
  }

  async function write(items: readonly Item[]): Promise<Taken[]> {
    const { tenant } = items[0] as Item;
    const taken = (await takeShared(tenant, items)) ?? (await takeExclusive(tenant, items));
    for (const [index, one] of taken.entries()) {
      if (one.state === "APPLIED") recent.add(tenant.id, (items[index] as Item).key, one.id);
      count(tenant.id, one);
    }
    settled.wereApplied(items.filter((_, index) => taken[index]?.state === "APPLIED").map(settledKeyOf));
    return taken;
  }

  /** Takes them under the shared lock. Undefined if they may need the exclusive one. */
  async function takeShared(tenant: TakingTenant, items: readonly Item[]): Promise<Taken[] | undefined> {
    const seen = tenantsSeen.get(tenant.id);
    if (!seen || !settled.areSettled(items.map(settledKeyOf))) return undefined;
    const states = items.map((item) => stateOf(item, seen));
    const due = items.filter((_, index) => states[index] === "APPLIED");
    try {
      return await db.tx(async (tx) => {
        // Sent together; the answers show whether everything is settled. They are read under the lock, because the tenant and
        // its names may have just changed.
        const [, now, known, fresh] = await Promise.all([
          lockGraph(tx, tenant.id, "shared"),
          tenantNow(tx, tenant.id),
          readKnown(tx, tenant.id, due),
          takeEvents(tx, tenant, newEvents(items, states)),
        ]);
        if (now?.state !== seen.state || now.cutover_at !== seen.cutover_at) throw new NotSettled();
        if (known.unsettled.size > 0) throw new NotSettled(known.unsettled);
        const repeats = due.filter(({ key }) => fresh.has(key));
        await recordRepeats(tx, tenant.id, repeats, known);
        return answers(tx, items, states, fresh);
      });
    } catch (error) {
      if (!(error instanceof NotSettled)) throw error;
      settled.wereWrong(items.filter(({ assertion }) => error.assertions.has(assertion)).map(settledKeyOf));
      return undefined;
    }
  }

  function takeExclusive(tenant: TakingTenant, items: readonly Item[]): Promise<Taken[]> {
    return db.tx(async (tx) => {
      const [, now] = await Promise.all([lockGraph(tx, tenant.id, "exclusive"), tenantNow(tx, tenant.id)]);
      if (!now) throw lineageError("TENANT_UNKNOWN", { tenantId: Number(tenant.id) });
      tenantsSeen.set(tenant.id, now);
      const states = items.map((item) => stateOf(item, now));
      const fresh = await takeEvents(tx, tenant, newEvents(items, states));
      const toApply = items.filter(({ key }, index) => states[index] === "APPLIED" && fresh.has(key));
      const outcomes = await applyIncoming(tx, tenant.id, toApply, deps.onChange);
      const dead = deadLetters(
        toApply.map(({ key }) => fresh.get(key) as string),
        outcomes,
      );
      await settleEvents(tx, tenant.id, dead);
      const isDead = new Set(dead.map(({ id }) => id));
      hints.changed(tx, "dead-letter", isDead, { tenantId: tenant.id });
      const taken = await answers(tx, items, states, fresh);
      return taken.map((one): Taken => (isDead.has(one.id) ? { ...one, state: "DEAD" } : one));
    });
  }

  function count(tenantId: string, { duplicate, state }: Taken): void {
    const outcome = duplicate ? "duplicate" : state.toLowerCase();
    metrics.count("millrace_lineage_events_total", { tenant: tenantId, outcome });
  }

  function stateOf({ baseline, event }: Item, now: TenantNow): ApplyState {
    if (baseline) return "APPLIED";
    if (now.state !== "READY") return "BUFFERED";
    return event.at < cutoverOf(now, settings.clockToleranceSeconds) ? "SKIPPED" : "APPLIED";
  }

  return {
    prepare(tenantId, read) {
      const key = keyOfEvent(read.body, read.baseline);
      const again = recent.find(tenantId, key);
      if (again !== undefined) return { again };
      const incoming = incomingOf(read);
      const isSettled = settled.areSettled([settledKeyAt(tenantId, incoming)]);
      return { ...(isSettled ? withoutParsed(incoming) : incoming), key };
    },

    async take(tenant, prepared) {
      if ("again" in prepared) {
        const taken: Taken = { id: prepared.again, duplicate: true, state: "APPLIED" };
        count(tenant.id, taken);
        return taken;
      }
      const leave = waiting.enter(tenant.id, Buffer.byteLength(prepared.body));
      try {
        return await laneOf(tenant.id).add({ ...prepared, tenant });
      } finally {
        leave();
      }
    },

    async makeReady(tenantId) {
      const done = await replay.makeReady(tenantId);
      if (done.dead > 0) hints.changed(db, "dead-letter", "*", { tenantId });
      return done;
    },

    async replay(tenantId, eventId) {
      const { state } = await replay.replay(tenantId, eventId);
      hints.changed(db, "dead-letter", eventId, { tenantId });
      return { id: eventId, duplicate: false, state };
    },

    async drain() {
      await Promise.all([...lanes.values()].map((lane) => lane.drain()));
    },
  };
}

const settledKeyAt = (tenantId: string, { assertion }: Incoming): string => `${tenantId} ${assertion}`;
const settledKeyOf = (item: Item): string => settledKeyAt(item.tenant.id, item);

/** The answer to each event; that of a duplicate has the id and state of the first. */
async function answers(
  tx: Queryable,
  items: readonly Item[],
  states: readonly ApplyState[],
  fresh: ReadonlyMap<string, string>,
): Promise<Taken[]> {
  const { tenant } = items[0] as Item;
  const again = items.filter(({ key }) => !fresh.has(key)).map(({ key }) => key);
  const before = new Map(
    (again.length > 0 ? await takenEvents(tx, tenant.id, again) : []).map((row) => [row.key, row]),
  );
  return items.map(({ key }, index): Taken => {
    const id = fresh.get(key);
    if (id !== undefined) return { id, duplicate: false, state: states[index] as ApplyState };
    const { event_id, apply_state } = before.get(key) as TakenBefore;
    return { id: event_id, duplicate: true, state: apply_state ?? "APPLIED" };
  });
}

/** The fingerprint: a hash of the text, which holds the run, the type and the time. A client that retries sends the same bytes. */
function keyOfEvent(body: string, baseline: boolean): string {
  return hashUuid(`${baseline} ${body.trim()}`);
}

function newEvents(items: readonly Item[], states: readonly ApplyState[]): NewEvent[] {
  return items.map(({ key, event, body, source, baseline, assertion }, index) => {
    const state = states[index] as ApplyState;
    return {
      key,
      event_time: isoOf(event.at),
      event_type: event.eventType,
      run_uuid: event.runId,
      job_name: event.job?.name ?? null,
      job_namespace: event.job?.namespace ?? null,
      producer: event.producer,
      kind: event.kind,
      body: Buffer.from(body),
      source,
      baseline,
      apply_state: state,
      assertion: state === "APPLIED" ? assertion : null,
    };
  });
}
