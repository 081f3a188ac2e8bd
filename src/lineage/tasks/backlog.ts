/** The backlog of tasks for the metrics. It is counted when metrics are read, at most once in an interval. */

import type { Db } from "../../kernel/data/db.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { LineageMetrics } from "../catalogue.ts";
import { type BacklogRow, readBacklog } from "./store/reads.ts";

const COUNT_EVERY_MS = 30_000;

export function measureBacklog(deps: { db: Db; clock: Clock; metrics: LineageMetrics; log: ServiceLog }): void {
  const { db, clock, metrics, log } = deps;
  let counted: BacklogRow[] = [];
  let countedAtMs = Number.NEGATIVE_INFINITY;
  metrics.gauge("millrace_lineage_tasks", () => {
    if (clock.now() - countedAtMs >= COUNT_EVERY_MS) {
      countedAtMs = clock.now();
      // The reading does not wait: it shows what was counted before.
      readBacklog(db).then(
        (rows) => void (counted = rows),
        (err: unknown) => log.warn({ err }, "the backlog of tasks could not be counted"),
      );
    }
    return counted.map(({ task_type, status, tasks }) => ({ labels: { type: task_type, status }, value: tasks }));
  });
}
