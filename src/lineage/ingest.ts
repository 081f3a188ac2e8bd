/**
 * Takes events. Those of one tenant share a transaction that writes the raw event, its fingerprint, the graph and the tasks;
 * each is acknowledged after the commit. Events that tell nothing new, which is nearly all of them, do not touch the graph
 * and are taken beside others; one that does is applied by a transaction that holds the tenant's graph alone.
 */

import type { Db, Queryable } from "../kernel/data/db.ts";
import { createGroupCommit, type GroupCommit } from "../kernel/data/group-commit.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { type LineageMetrics, lineageError } from "./catalogue.ts";
import { cutoverOf } from "./cutover.ts";
import { createGraphSlots } from "./graph-slots.ts";
import { hashUuid } from "./hash-uuid.ts";
import {
  applyIncoming,
  deadLetters,
  type Incoming,
  incomingOf,
  type OnChange,
  passOver,
  type ReadEvent,
  recall,
  withoutWhole,
} from "./intake.ts";
import { isoOf } from "./micros.ts";
import { createRecentEvents } from "./recent-events.ts";
import { createReplay, type Replayed } from "./replay.ts";
import type { LineageSettings } from "./settings.ts";
import { createSettledTellings } from "./settled-tellings.ts";
import {
  type ApplyState,
  type NewEvent,
  settleEvents,
  type TakenBefore,
  takeEvents,
  takenEvents,
} from "./store/events.ts";
import { lockGraph } from "./store/graph-lock.ts";
import { type TenantNow, tenantNow } from "./store/tenants.ts";
import type { Tenant } from "./tenants.ts";
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

/** One that was taken a moment ago, under this id. */
export interface TakenJustNow {
  again: string;
}

export type TakingTenant = Pick<Tenant, "id" | "code" | "name">;

export interface Ingest {
  /** What is to be held of an event until it is taken: little, if it tells of nothing that the tenant's graph does not say yet. */
  prepare(tenantId: string, read: ReadEvent): Prepared | TakenJustNow;
  /** Resolves once the event is durable, and applied if its tenant is ready for it. */
  take(tenant: TakingTenant, prepared: Prepared | TakenJustNow): Promise<Taken>;
  /**
   * Applies what was buffered from the cutover on, leaves out what is older, and makes the tenant READY; as much of that
   * as can be done in the time of a request.
   */
  makeReady(tenantId: string): Promise<Replayed>;
  /** Tries a dead letter again. */
  replay(tenantId: string, eventId: string): Promise<Taken>;
  drain(): Promise<void>;
}

export interface IngestDeps {
  db: Db;
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

/** Thrown within a transaction that took tellings for settled that are not, to take its events alone. */
class NotSettled extends Error {
  readonly tellings: ReadonlySet<string>;

  constructor(tellings: ReadonlySet<string> = new Set()) {
    super("the tenant has changed, or these tellings are not what its graph says");
    this.tellings = tellings;
  }
}

export function createIngest(deps: IngestDeps): Ingest {
  const { db, metrics, settings } = deps;
  const lanes = new Map<string, GroupCommit<Item, Taken>>();
  const recent = createRecentEvents();
  const waiting = createWaitingLimit(settings);
  const slots = createGraphSlots(GRAPH_SLOTS);
  const settled = createSettledTellings();
  /** As the last transaction found them. */
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
    const taken = (await takeBeside(tenant, items)) ?? (await takeAlone(tenant, items));
    for (const [index, one] of taken.entries()) {
      if (one.state === "APPLIED") recent.add(tenant.id, (items[index] as Item).key, one.id);
      count(tenant.id, one);
    }
    settled.wereApplied(items.filter((_, index) => taken[index]?.state === "APPLIED").map(settledKeyOf));
    return taken;
  }

  /** Nothing if they need the graph alone, or may. */
  async function takeBeside(tenant: TakingTenant, items: readonly Item[]): Promise<Taken[] | undefined> {
    const seen = tenantsSeen.get(tenant.id);
    if (!seen || !settled.areSettled(items.map(settledKeyOf))) return undefined;
    const states = items.map((item) => stateOf(item, seen));
    const due = items.filter((_, index) => states[index] === "APPLIED");
    try {
      return await db.tx(async (tx) => {
        // All in one go: the answers tell whether all of it is settled. They are given under the lock, since the tenant, and what
        // a name means in it, may have changed a moment ago.
        const [, now, known, fresh] = await Promise.all([
          lockGraph(tx, tenant.id, "shared"),
          tenantNow(tx, tenant.id),
          recall(tx, tenant.id, due),
          takeEvents(tx, tenant, newEvents(items, states)),
        ]);
        if (now?.state !== seen.state || now.cutover_at !== seen.cutover_at) throw new NotSettled();
        if (known.callForWork.size > 0) throw new NotSettled(known.callForWork);
        const toPass = due.filter(({ key }) => fresh.has(key));
        await passOver(tx, tenant.id, toPass, known);
        return answers(tx, items, states, fresh);
      });
    } catch (error) {
      if (!(error instanceof NotSettled)) throw error;
      settled.wereWrong(items.filter(({ telling }) => error.tellings.has(telling)).map(settledKeyOf));
      return undefined;
    }
  }

  function takeAlone(tenant: TakingTenant, items: readonly Item[]): Promise<Taken[]> {
    return db.tx(async (tx) => {
      const [, now] = await Promise.all([lockGraph(tx, tenant.id, "alone"), tenantNow(tx, tenant.id)]);
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
      const told = await answers(tx, items, states, fresh);
      return told.map((one): Taken => (isDead.has(one.id) ? { ...one, state: "DEAD" } : one));
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
      return { ...(isSettled ? withoutWhole(incoming) : incoming), key };
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

    makeReady: replay.makeReady,

    async replay(tenantId, eventId) {
      const { state } = await replay.replay(tenantId, eventId);
      return { id: eventId, duplicate: false, state };
    },

    async drain() {
      await Promise.all([...lanes.values()].map((lane) => lane.drain()));
    },
  };
}

const settledKeyAt = (tenantId: string, { telling }: Incoming): string => `${tenantId} ${telling}`;
const settledKeyOf = (item: Item): string => settledKeyAt(item.tenant.id, item);

/** Of those that were taken before, what became of them then. */
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

/** The fingerprint of the text itself, which holds the run, the type and the time: who sends an event again sends the same bytes. */
function keyOfEvent(body: string, baseline: boolean): string {
  return hashUuid(`${baseline} ${body.trim()}`);
}

function newEvents(items: readonly Item[], states: readonly ApplyState[]): NewEvent[] {
  return items.map(({ key, event, body, source, baseline, telling }, index) => {
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
      telling: state === "APPLIED" ? telling : null,
    };
  });
}
