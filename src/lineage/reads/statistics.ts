/** The figures of a tenant for the front page, cached for half a minute, because open pages poll them. */

import type { Db } from "../../kernel/data/db.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { countAssets, countEdges, countHours, countTasks, countUnapplied, newestEvent } from "./store/statistics.ts";

const REMEMBER_MS = 30_000;
const REMEMBERED_MAX = 1_000;
/** A count that is equal to it means: at least so many. */
const COUNT_MAX = 100_000;
const HOUR_COUNT_MAX = 10_000;
const HOURS = 7 * 24;

export type Statistics = Awaited<ReturnType<typeof read>>;

export function createStatistics(db: Db, clock: Clock): (tenantId: string) => Promise<Statistics> {
  const remembered = new Map<string, { until: number; statistics: Promise<Statistics> }>();
  return (tenantId) => {
    const now = clock.now();
    const known = remembered.get(tenantId);
    if (known && known.until > now) return known.statistics;
    const statistics = read(db, tenantId);
    remembered.delete(tenantId); // So that it stands at the end, as the newest.
    remembered.set(tenantId, { until: now + REMEMBER_MS, statistics });
    for (const oldest of remembered.keys()) {
      if (remembered.size <= REMEMBERED_MAX) break;
      remembered.delete(oldest);
    }
    statistics.catch(() => remembered.delete(tenantId)); // After a failure the next request tries again.
    return statistics;
  };
}

async function read(db: Db, tenantId: string) {
  // One after the other: a single page shall not hold all connections for reads.
  const assets = await countAssets(db, tenantId, COUNT_MAX);
  const edges = await countEdges(db, tenantId, COUNT_MAX);
  const hours = await countHours(db, tenantId, HOURS, HOUR_COUNT_MAX);
  const newest = await newestEvent(db, tenantId);
  const unapplied = await countUnapplied(db, tenantId, COUNT_MAX);
  const tasks = await countTasks(db, tenantId, COUNT_MAX);
  const sum = (counts: readonly { count: number }[]) => counts.reduce((total, { count }) => total + count, 0);
  const inState = (state: string) => unapplied.find((one) => one.state === state)?.count ?? 0;
  return {
    assets: Object.fromEntries(assets.map(({ kind, count }) => [kind, count])),
    edges,
    events: {
      last24Hours: sum(hours.slice(-24)),
      last7Days: sum(hours),
      byHour: hours.map(({ hour, count }) => ({ hour, count })),
      newest,
      buffered: inState("BUFFERED"),
      dead: inState("DEAD"),
    },
    tasks: tasks.filter(({ count }) => count > 0),
    countMax: COUNT_MAX,
    hourCountMax: HOUR_COUNT_MAX,
  };
}
