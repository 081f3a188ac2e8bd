/** When a table that is missing usually arrives: as long after the end of its period as it did before. */
import type { Db } from "../../kernel/data/db.ts";
import { endOfOpTime, type Grain, grainOf } from "../../kernel/time/op-time.ts";
import { DAY_MS, HOUR_MS } from "../../kernel/time/units.ts";
import { keyOf } from "../runs/decide.ts";
import { earlierArrivals } from "../store/cells.ts";

interface Expected {
  table: string;
  opTime: string;
}

const EARLIER = 14;
/** Neighbours that came closer together than this share of the time between their periods were loaded together. */
const PACE_MIN = 0.5;
/** Later than this many periods after its own is a repair, and says nothing about the usual day. */
const PERIODS_MAX = 7;
/** A model that waits for a month of hours would otherwise read 10,000 arrivals. */
const TABLES_MAX = 50;

/**
 * The median, by `keyOf`, of those that have arrived at the pace of their periods. Days that were loaded together, months later, would
 * put the usual time of a table that is late into the future. A name has no period, so it has no usual time.
 */
export async function usualTimes(db: Db, expected: readonly Expected[], timeZone: string): Promise<Map<string, Date>> {
  const some = expected.filter(({ opTime }) => grainOf(opTime) !== undefined).slice(0, TABLES_MAX);
  if (some.length === 0) return new Map();
  const keys = some.map(({ table, opTime }) => ({ table_name: table, op_time: opTime }));
  const arrived = new Map<string, Arrived[]>();
  for (const { table_name, op_time, earlier, first_time } of await earlierArrivals(db, keys, EARLIER)) {
    const endMs = endOf(earlier, timeZone);
    if (endMs === undefined) continue;
    const key = keyOf({ table: table_name, opTime: op_time });
    arrived.set(key, [...(arrived.get(key) ?? []), { endMs, atMs: first_time.getTime() }]);
  }
  return new Map(
    some.flatMap((one) => {
      const endMs = endOf(one.opTime, timeZone);
      const periodMs = PERIOD_MS[grainOf(one.opTime) ?? "day"];
      const sorted = usualDelays(arrived.get(keyOf(one)) ?? [], periodMs).toSorted((a, b) => a - b);
      const median = sorted[Math.floor(sorted.length / 2)];
      return endMs === undefined || median === undefined ? [] : [[keyOf(one), new Date(endMs + median)]];
    }),
  );
}

interface Arrived {
  /** The end of its period. */
  endMs: number;
  atMs: number;
}

const PERIOD_MS = { hour: HOUR_MS, day: DAY_MS, month: 31 * DAY_MS } as const satisfies Record<Grain, number>;

/** How long after their periods they came, without those that came together with a neighbour, or much later. */
export function usualDelays(arrived: readonly Arrived[], periodMs: number): number[] {
  const inOrder = arrived.toSorted((one, other) => one.endMs - other.endMs);
  const isApart = (one: Arrived | undefined, other: Arrived | undefined) =>
    !one || !other || Math.abs(other.atMs - one.atMs) >= PACE_MIN * Math.abs(other.endMs - one.endMs);
  return inOrder
    .filter((one, index) => isApart(inOrder[index - 1], one) && isApart(one, inOrder[index + 1]))
    .map(({ endMs, atMs }) => atMs - endMs)
    .filter((delayMs) => delayMs <= PERIODS_MAX * periodMs);
}

function endOf(opTime: string, timeZone: string): number | undefined {
  const grain = grainOf(opTime);
  return grain === undefined ? undefined : endOfOpTime(opTime, grain, timeZone);
}
