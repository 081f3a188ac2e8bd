/**
 * Applies stored events: those that were buffered until their tenant is ready, and dead letters. They are applied in steps,
 * between which arriving events take their turns.
 */

import type { Db, Tx } from "../../kernel/data/db.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { lineageError } from "../catalogue.ts";
import { isoOf } from "../graph/micros.ts";
import type { LineageSettings } from "../settings.ts";
import { bufferedEvents, deadEvent, type StoredEvent, settleEvents, skipEvents } from "../store/events.ts";
import { lockGraph } from "../store/graph-lock.ts";
import { moveTenant, tenantNow } from "../store/tenants.ts";
import { cutoverOf } from "./cutover.ts";
import { parseEvent } from "./event.ts";
import type { GraphSlots } from "./graph-slots.ts";
import { applyIncoming, deadLetters, incomingOf, type OnChange, type Outcome } from "./intake.ts";

export interface Replayed {
  applied: number;
  skipped: number;
  dead: number;
}

export interface Replay {
  /**
   * Applies the buffered events from the cutover on, skips older ones, and makes the tenant READY when nothing is left. It
   * stops earlier if that takes too long for one request; another call continues.
   */
  makeReady(tenantId: string): Promise<Replayed>;
  /** Tries a dead letter again. */
  replay(tenantId: string, eventId: string): Promise<Outcome>;
}

export interface ReplayDeps {
  db: Db;
  clock: Clock;
  slots: GraphSlots;
  settings: Pick<LineageSettings, "clockToleranceSeconds">;
  onChange: OnChange;
}

const STEP_EVENTS = 200;
/** Well below the time after which clients and what is between give a request up. */
const REQUEST_MS_MAX = 20_000;

export function createReplay({ db, clock, slots, settings, onChange }: ReplayDeps): Replay {
  /** Runs `work` in a slot of the tenant, under the exclusive lock of its graph. */
  function alone<T>(tenantId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    const transaction = () =>
      db.tx(async (tx) => {
        await lockGraph(tx, tenantId, "exclusive");
        return work(tx);
      });
    return slots.take(tenantId, transaction);
  }

  const step = (tenantId: string) =>
    alone(tenantId, async (tx): Promise<Replayed & { isReady: boolean }> => {
      const now = await tenantNow(tx, tenantId);
      if (!now) throw lineageError("TENANT_NOT_FOUND", { tenantId });
      const cutover = cutoverOf(now, settings.clockToleranceSeconds);
      const skipped = Number.isFinite(cutover) ? await skipEvents(tx, tenantId, isoOf(cutover), STEP_EVENTS) : 0;
      if (skipped === STEP_EVENTS) return { applied: 0, skipped, dead: 0, isReady: false };
      const stored = await bufferedEvents(tx, tenantId, STEP_EVENTS);
      const outcomes = await applyStored(tx, tenantId, stored, onChange);
      const dead = outcomes.filter(({ state }) => state === "DEAD").length;
      const isReady = stored.length < STEP_EVENTS;
      if (isReady) await moveTenant(tx, tenantId, "READY");
      return { applied: outcomes.length - dead, skipped, dead, isReady };
    });

  return {
    async makeReady(tenantId) {
      const done: Replayed = { applied: 0, skipped: 0, dead: 0 };
      const enoughAt = clock.now() + REQUEST_MS_MAX;
      let isReady = false;
      do {
        const one = await step(tenantId);
        done.applied += one.applied;
        done.skipped += one.skipped;
        done.dead += one.dead;
        isReady = one.isReady;
      } while (!isReady && clock.now() < enoughAt);
      return done;
    },

    replay: (tenantId, eventId) =>
      alone(tenantId, async (tx) => {
        const stored = await deadEvent(tx, tenantId, eventId);
        if (!stored) throw lineageError("DEAD_LETTER_NOT_FOUND", { eventId });
        const [outcome] = await applyStored(tx, tenantId, [stored], onChange);
        return outcome as Outcome;
      }),
  };
}

async function applyStored(
  tx: Tx,
  tenantId: string,
  stored: readonly StoredEvent[],
  onChange: OnChange,
): Promise<Outcome[]> {
  const incoming = stored.map(({ event: body, at, source, baseline }) =>
    incomingOf({ event: { ...parseEvent(JSON.parse(body)), at: Number(at) }, body, source, baseline }),
  );
  const applied = incoming.map(({ assertion }, index) => ({
    id: (stored[index] as StoredEvent).id,
    apply_state: "APPLIED" as const,
    apply_error: null,
    assertion,
  }));
  await settleEvents(tx, tenantId, applied); // First: applying reads the times of assertions from the stored events.
  const outcomes = await applyIncoming(tx, tenantId, incoming, onChange);
  const ids = stored.map(({ id }) => id);
  await settleEvents(tx, tenantId, deadLetters(ids, outcomes));
  return outcomes;
}
