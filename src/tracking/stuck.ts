/**
 * The use cases of stuck shards: list them, and retry all that match. A retry goes in batches that are committed one by one, so
 * it never holds many locks, and one that was interrupted is finished by repeating it: what was retried is not stuck any more.
 */
import { type Actor, audit } from "../kernel/auth/audit.ts";
import type { Db } from "../kernel/data/db.ts";
import { type DryRun, FOR_REAL } from "../kernel/data/dry-run.ts";
import type { Wake } from "../kernel/work/wake.ts";
import type { TrackingHints, TrackingMetrics } from "./catalogue.ts";
import { STAGES, STUCK_REASONS, type Stage, type StuckReason } from "./states.ts";
import {
  countStuck,
  databaseTime,
  listStuck,
  type RetriedShard,
  type RetryFilter,
  retryStuck,
  type StuckCell,
  type StuckFilter,
  type StuckPlace,
  stagesOf,
} from "./store/stuck.ts";
import type { CellKey } from "./store.ts";
import { queueTopic } from "./tracking.ts";

export interface StuckRetry extends RetryFilter {
  stage?: Stage;
  reason?: StuckReason;
  /** Only what has been stuck since before this time; now unless given. */
  until?: Date;
}

export interface Retried {
  retried: number;
  by_reason: Record<StuckReason, number>;
  /** Whether some are left, because one call retries a limited number. */
  more: boolean;
  until: Date;
}

export interface Stuck {
  list(filter: StuckFilter, page: { after: StuckPlace | undefined; limit: number }): Promise<StuckCell[]>;
  /** Puts all that match back into their queues, or counts them. */
  retry(which: StuckRetry, actor: Actor, options?: DryRun): Promise<Retried>;
}

const RETRY_BATCH = 1_000;
/** Of one call: a few seconds. */
const RETRY_MAX = 50_000;

export interface StuckDeps {
  db: Db;
  wake: Wake;
  hints: TrackingHints;
  metrics: TrackingMetrics;
  limits?: { batch: number; call: number };
}

export function createStuck({ db, wake, hints, metrics, limits }: StuckDeps): Stuck {
  const { batch: batchMax, call: callMax } = limits ?? { batch: RETRY_BATCH, call: RETRY_MAX };

  function announce(shards: readonly RetriedShard[]): void {
    hints.changed(db, "file", new Set(shards.map(({ filename }) => filename)));
    for (const stage of STAGES) {
      const moved = shards.filter(({ stages }) => stages.includes(stage)).length;
      if (moved === 0) continue;
      if (stage !== "event-ingest") wake.hint(queueTopic(stage));
      metrics.count("millrace_tracking_moves_total", { stage, transition: "retry", outcome: "moved" }, moved);
    }
  }

  return {
    list: (filter, page) => listStuck(db, filter, page),

    async retry({ stage, reason, until: given, ...filter }, actor, { dryRun } = FOR_REAL) {
      const until = given ?? (await databaseTime(db));
      const kinds = STUCK_REASONS.filter(
        (one) => (reason ?? one) === one && (stage === undefined || stagesOf(one).includes(stage)),
      ).map((one) => ({ reason: one, stage }));
      const done: Retried = {
        retried: 0,
        by_reason: { failed: 0, lease_expired: 0, started_long: 0 },
        more: false,
        until,
      };
      const add = (which: StuckReason, n: number) => {
        done.retried += n;
        done.by_reason[which] += n;
      };
      if (dryRun) {
        for (const kind of kinds) add(kind.reason, await countStuck(db, kind, filter, until));
        return done;
      }
      await audit(db, actor, "pipeline.retry", filter.filename ?? filter.prefix ?? "all", { stage, reason, until });
      let left = callMax;
      for (const kind of kinds) {
        for (let after: CellKey | undefined; ; ) {
          const limit = Math.min(batchMax, left);
          if (limit === 0) return { ...done, more: true };
          const shards = await retryStuck(db, kind, filter, { until, after, limit });
          add(
            kind.reason,
            shards.reduce((sum, { stages }) => sum + stages.length, 0),
          );
          if (shards.length > 0) announce(shards);
          if (shards.length < limit) break;
          left -= shards.length;
          after = shards.at(-1);
        }
      }
      return done;
    },
  };
}
