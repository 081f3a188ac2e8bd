/**
 * Models that run a chain. Such a run holds no slot while the chain's run is under way: it is parked with it, in the
 * transaction that starts it. The transaction that ends the chain's run makes the model claimable again, and one that
 * continues a failed chain run (retry, resume, complete) continues the model's failed run too.
 */
import type { Db, Tx } from "../../kernel/data/db.ts";
import { LeaseLost } from "../../kernel/work/run-control.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { ArrivalsHints } from "../catalogue.ts";
import { instanceId } from "../hint-ids.ts";
import { continueFailed, overdueChainRuns, park, parkedChainRuns, returnParked, setTimedOut } from "../store/parked.ts";
import { READY_TOPIC, TIMER_TOPIC } from "../topics.ts";
import type { ChainPort, ChainRunChange } from "./chain-port.ts";
import type { Run } from "./finish.ts";

export interface Parking {
  /**
   * Parks a run with this run of its chain, or with a new one. Throws LeaseLost if the lease was lost, and an ApiError if the
   * chain cannot be started.
   */
  park(run: Run, chainRunId: string | null): Promise<void>;
  /** Finds parked models whose chain's run has ended; answers how many. */
  catchUp(): Promise<number>;
  /** Stops runs of chains that take longer than their models allow; answers how many. */
  stopOverdue(): Promise<number>;
}

const AT_ONCE = 500;

export interface ParkingDeps {
  db: Db;
  wake: Wake;
  hints: ArrivalsHints;
  chains: ChainPort;
}

/** Of the run of a chain: behind everything that has the default. */
const BACKFILL_PRIORITY = 100;

export function createParking({ db, wake, hints, chains }: ParkingDeps): Parking {
  /** Makes models claimable whose chain's run has ended. */
  async function returned(tx: Tx, chainRunIds: readonly string[]): Promise<string[]> {
    if (chainRunIds.length === 0) return [];
    const found = await returnParked(tx, chainRunIds);
    if (found.length > 0) tx.afterCommit(() => wake.hint(READY_TOPIC));
    return found;
  }

  async function continued(tx: Tx, chainRunIds: readonly string[], state: "parked" | "returned"): Promise<string[]> {
    if (chainRunIds.length === 0) return [];
    const found = await continueFailed(tx, chainRunIds, state);
    if (found.length > 0) {
      tx.afterCommit(() => wake.hint(state === "parked" ? TIMER_TOPIC : READY_TOPIC));
      hints.changed(tx, "model", "*"); // A person has continued a run of a chain, which is rare.
    }
    return found;
  }

  chains.onChange(async (tx, changed) => {
    const idsOf = (wanted: (change: ChainRunChange) => boolean) => changed.filter(wanted).map(({ runId }) => runId);
    const awaited = new Set(
      await returned(
        tx,
        idsOf(({ status }) => status !== "RUNNING"),
      ),
    );
    const goingOn = idsOf(({ status }) => status === "RUNNING");
    await continued(tx, goingOn, "parked");
    // No worker has claimed the model since the time-out. If its run is stopped again, a person did it.
    await setTimedOut(tx, goingOn, false);
    await continued(
      tx,
      idsOf(({ status, runId }) => status === "SUCCESS" && !awaited.has(runId)),
      "returned",
    );
    return awaited;
  });

  /** Those whose run has ended since they were parked, or that nobody has told. */
  async function returnEnded(chainRunIds: readonly string[]): Promise<number> {
    const underWay = await chains.underWay(chainRunIds);
    const ended = chainRunIds.filter((runId) => !underWay.has(runId));
    return ended.length > 0 ? (await db.tx((tx) => returned(tx, ended))).length : 0;
  }

  return {
    async park(run, chainRunId) {
      const { model, op_time: opTime, generation } = run;
      await db.tx(async (tx) => {
        const params = { modelId: model.model_id, generation };
        const startedBy = `model ${model.model_id}`;
        const priority = run.trigger === "backfill" ? BACKFILL_PRIORITY : 0;
        const id = chainRunId ?? (await chains.start(tx, model.chain ?? "", { opTime, params, startedBy, priority }));
        if (!(await park(tx, { ...run, chainRunId: id, timeoutSeconds: model.timeout_seconds }))) throw new LeaseLost();
        tx.afterCommit(() => wake.hint(TIMER_TOPIC));
        hints.changed(tx, "model", instanceId(run));
      });
      // A run that was under way when it was read may have ended before the model was parked.
      if (chainRunId !== null) await returnEnded([chainRunId]);
    },

    async catchUp() {
      let found = 0;
      let after: string | null = null;
      for (;;) {
        const some = await parkedChainRuns(db, after, AT_ONCE);
        if (some.length === 0) return found;
        found += await returnEnded(some);
        after = some.at(-1) ?? null;
      }
    },

    async stopOverdue() {
      const overdue = await overdueChainRuns(db, AT_ONCE);
      for (const { chain_run_id: runId, timeout_seconds: seconds } of overdue) {
        await chains.stop(runId, `Its chain took longer than ${seconds} s.`, (tx) => setTimedOut(tx, [runId], true));
      }
      return overdue.length;
    },
  };
}
