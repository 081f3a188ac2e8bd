/** Where the time of a source goes in a period, in parts of equal length, with the newest failures. */
import type { Db } from "../../kernel/data/db.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { HOUR_MS } from "../../kernel/time/units.ts";
import * as store from "../store/sources/pace.ts";

export interface Pace {
  since: Date;
  hours: number;
  bucketSec: number;
  rows: store.PaceRow[];
  parked: store.ParkedRow[];
  failures: store.FailureRow[];
}

const BUCKETS = 48;
const PARKED_MAX = 5;
const FAILURES_MAX = 50;
/** Of the period that is shown where nobody has chosen one. */
const PERIODS = [1, 6, 24, 168, 720];

export async function readPace(
  { db, clock }: { db: Db; clock: Clock },
  source: string,
  asked: number | undefined,
): Promise<Pace> {
  const hours = asked ?? periodOf((await store.newestRunAt(db, source))?.getTime(), clock.now());
  const bucketSec = (hours * 3_600) / BUCKETS;
  // Whole buckets, so that a bucket does not change its content from one reading to the next.
  const endMs = Math.ceil(clock.now() / (bucketSec * 1_000)) * bucketSec * 1_000;
  const since = new Date(endMs - hours * HOUR_MS);
  const [rows, parked, failures] = await Promise.all([
    store.paceOf(db, source, since, bucketSec),
    store.parkedOf(db, source, since, PARKED_MAX),
    store.failuresOf(db, source, since, FAILURES_MAX),
  ]);
  return { since, hours, bucketSec, rows, parked, failures };
}

function periodOf(newestMs: number | undefined, nowMs: number): number {
  const ageMs = newestMs === undefined ? 0 : nowMs - newestMs;
  return PERIODS.find((hours) => ageMs < hours * HOUR_MS) ?? Math.max(...PERIODS);
}
