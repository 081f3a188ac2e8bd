/** Completed windows become partitions of a table, in the lake or in an engine: what wants them to, the worker that writes them, and who is told. */
import type { Lake, TableStore } from "../../engines/index.ts";
import type { Db, Tx } from "../../kernel/data/db.ts";
import type { DoctorCheck } from "../../kernel/doctor.ts";
import { createLeaseWorker, type LeaseWorker } from "../../kernel/work/lease-worker.ts";
import type { RunControl } from "../../kernel/work/run-control.ts";
import type { OnRun, ServiceLog } from "../../kernel/work/service.ts";
import type { Session } from "../../kernel/work/session.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { periodAt } from "../plan/window.ts";
import type { Snapshot } from "../spec/snapshot.ts";
import type { CancelledSlice } from "../store/plans/plan-ends.ts";
import type { EndedSlice } from "../store/plans/slices.ts";
import {
  type ClaimedLanding,
  type LandingPlan,
  type LandingWindow,
  landingLease,
  landingPlans,
  nextLandingMs,
  wantLanding,
} from "../store/records/landing.ts";
import { LANDING_TOPIC, NODES_TOPIC } from "../topics.ts";
import { landingCheck } from "./doctor.ts";
import { type Ended, type OnLanded, type SettleDeps, settle } from "./settle.ts";
import { writeWindow } from "./write-window.ts";

export interface Landing {
  /**
   * Call it in the transaction that ends a slice of the window, whatever its end, after that and before the plan is locked. The
   * window lands if it is complete and there is a place for it: an engine, or a lake. One that an earlier plan has completed also lands with what a slice
   * changed that ended FAILED or INCOMPLETE: the table shows the newest versions of what it has.
   */
  want(tx: Tx, window: LandingWindow, engine: string | undefined): Promise<void>;
  /** The same for slices of several plans that were ended together. */
  wantEnded(tx: Tx, slices: readonly EndedSlice[]): Promise<void>;
  /**
   * Call it after the transaction that cancelled slices with changes: windows that others have completed land with these. It is
   * a transaction of its own, since finishing a slice locks the window before the plan.
   */
  wantCancelled(planId: string, slices: readonly CancelledSlice[]): Promise<void>;
  /** Calls the listener for windows that land. Register it before the start. */
  onLanded(listener: OnLanded): void;
  /** Start it in a process with the role `worker`. There is none where there is neither a lake nor an engine for tables. */
  worker: LeaseWorker<ClaimedLanding> | undefined;
  check: DoctorCheck;
}

export interface LandingDeps extends Pick<SettleDeps, "arrivals"> {
  db: Db;
  wake: Wake;
  session: Session;
  log: ServiceLog;
  onRun: OnRun;
  lake: Lake | undefined;
  /** Engines in which tables can be written. */
  tables: { of(engine: string): TableStore; names(): string[] };
}

type Prepared = ClaimedLanding & { plan: LandingPlan | undefined };
type Held = Pick<ClaimedLanding, "endpoint_id" | "op_time" | "fence">;

/** In one process. A window takes a thread of Node's pool while its file is written. */
const SLOTS = 1;
const DRAIN_SECONDS = 5;
/** Windows in one transaction, each of which takes a lock. */
const WANTED_AT_ONCE = 500;
/** A window that lost this many processes in a row is FAILED: it may be what kills them. */
const LOST_LIMIT = 5;

export function createLanding(deps: LandingDeps): Landing {
  const { db, wake, lake, tables } = deps;
  const listeners: OnLanded[] = [];
  const hint = () => wake.hint(LANDING_TOPIC);
  const canLand = (engine: string | undefined) => engine !== undefined || lake !== undefined;
  const landable: typeof windowsOf = (snapshot, ...slices) =>
    canLand(snapshot.spec.landing?.engine) ? windowsOf(snapshot, ...slices) : [];
  return {
    async want(tx, window, engine) {
      if (canLand(engine) && (await wantLanding(tx, [window])) > 0) tx.afterCommit(hint);
    },
    async wantEnded(tx, slices) {
      if (slices.length === 0) return;
      const plans = await landingPlans(tx, [...new Set(slices.map(({ plan_id }) => plan_id))]);
      const windows = [...plans].flatMap(([planId, { snapshot }]) =>
        landable(
          snapshot,
          planId,
          slices.filter(({ plan_id }) => plan_id === planId),
        ),
      );
      // Two plans may have slices of one window, and a window is queued once.
      const distinct = new Map(windows.map((one) => [`${one.endpoint_id} ${one.op_time}`, one]));
      if ((await wantLanding(tx, [...distinct.values()])) > 0) tx.afterCommit(hint);
    },
    async wantCancelled(planId, slices) {
      if (slices.length === 0) return;
      const snapshot = (await landingPlans(db, [planId])).get(planId)?.snapshot;
      const windows = snapshot ? landable(snapshot, planId, slices) : [];
      for (let done = 0; done < windows.length; done += WANTED_AT_ONCE) {
        const some = windows.slice(done, done + WANTED_AT_ONCE);
        if ((await db.tx((tx) => wantLanding(tx, some))) > 0) hint();
      }
    },
    onLanded: (listener) => void listeners.push(listener),
    worker: lake || tables.names().length > 0 ? createWorker({ ...deps, listeners }) : undefined,
    check: landingCheck(lake, tables.names()),
  };
}

/** The windows of the table that slices are in, each once. */
function windowsOf({ spec }: Snapshot, planId: string, slices: readonly CancelledSlice[]): LandingWindow[] {
  const { window, landing } = spec;
  if (!window || !landing) return [];
  const windows = slices.map(({ endpoint_id, window_from }): LandingWindow => {
    const { opTime, from, to } = periodAt(window.timezone, landing.grain, window_from);
    const { table } = landing;
    return { endpoint_id, op_time: opTime, table_name: table, window_from: from, window_to: to, plan_id: planId };
  });
  return [...new Map(windows.map((one) => [one.op_time, one])).values()];
}

function createWorker(deps: LandingDeps & { listeners: readonly OnLanded[] }): LeaseWorker<ClaimedLanding> {
  const { db, log } = deps;
  const settleDeps: SettleDeps = { ...deps, random: Math.random };

  async function run({ plan, ...item }: Prepared, control: RunControl): Promise<Ended> {
    if (!plan) return { item, error: new Error("its plan is gone") };
    try {
      return await writeWindow(deps, { ...item, plan }, control.signal);
    } catch (error) {
      if (control.reason) throw error;
      return { item, error };
    }
  }

  async function record(ended: Ended): Promise<void> {
    const { endpoint_id: endpointId, table_name: table, op_time: opTime } = ended.item;
    const settled = await settle(settleDeps, ended);
    deps.wake.hint(NODES_TOPIC);
    const fields = { endpointId, table, opTime, ...("error" in ended ? { err: ended.error } : { rows: ended.rows }) };
    if (settled === "landed") log.info(fields, "a window has landed");
    if (settled === "retried") log.warn(fields, "a window could not land and is tried again");
    if (settled === "failed") log.error(fields, "a window could not land and is not tried again");
    if (settled === "taken away") log.warn(fields, "a window was written after its lease was lost; it is dropped");
  }

  return createLeaseWorker<ClaimedLanding, Prepared, Ended, Held>({
    name: "harvest.landing",
    session: deps.session,
    wake: deps.wake,
    log,
    onRun: deps.onRun,
    slots: SLOTS,
    drainSeconds: DRAIN_SECONDS,
    queues: [
      {
        name: "harvest.land",
        topics: [LANDING_TOPIC],
        claim: (limit, holder) => landingLease.claim(db, { limit, holder }),
        dueMs: () => nextLandingMs(db),
        claimsAfterEnd: true, // It may have to land again.
      },
    ],
    async prepare(claimed) {
      const plans = await landingPlans(
        db,
        claimed.map(({ plan_id }) => plan_id),
      );
      return claimed.map((item) => ({ ...item, plan: plans.get(item.plan_id) }));
    },
    run,
    settleMax: 1,
    settle: async ([ended]) => ended && record(ended),
    held: (holder) => landingLease.heldBy(db, holder),
    release: (items) => landingLease.release(db, items),
    lose: (items) => landingLease.lose(db, items, LOST_LIMIT),
    reclaim: async (limit) => (await landingLease.reclaim(db, { limit, lostLimit: LOST_LIMIT })).length,
    fields: ({ endpoint_id: endpointId, op_time: opTime }) => ({ endpointId, opTime }),
  });
}
