/**
 * Decides which lanes get the free slots. Tenants take turns, a batch at a time, those with the fewest running batches first: a
 * tenant with 100,000 tasks does not delay one with 5.
 */
import type { Lane } from "./store/tasks.ts";

export interface Slots {
  free: number;
  perTenant: number;
  /** What is under way. */
  busy: readonly Lane[];
  /** The tenant that had its turn last. */
  lastTenant: string;
}

/** One entry for each batch to begin; a lane may have several. */
export function choose(due: readonly Lane[], { free, perTenant, busy, lastTenant }: Slots): Lane[] {
  const underWay = [...busy];
  const ofTenant = (id: string) => underWay.filter(({ tenant_id }) => tenant_id === id).length;
  const ofLane = (lane: Lane) => underWay.filter((other) => laneKey(other) === laneKey(lane)).length;
  const tenants = inTurn([...new Set(due.map(({ tenant_id }) => tenant_id))], lastTenant);
  const chosen: Lane[] = [];
  while (chosen.length < free) {
    const tenant = least(
      tenants.filter((id) => ofTenant(id) < perTenant),
      ofTenant,
    );
    const lane = least(
      due.filter(({ tenant_id }) => tenant_id === tenant),
      ofLane,
    );
    if (!lane) break;
    chosen.push(lane);
    underWay.push(lane);
  }
  return chosen;
}

export function laneKey({ tenant_id, task_type, model_fingerprint }: Lane): string {
  return `${tenant_id} ${task_type} ${model_fingerprint}`;
}

/** From the one behind `last` on, in the order of the ids, and then from the first. */
function inTurn(tenants: readonly string[], last: string): string[] {
  const sorted = tenants.toSorted((a, b) => Number(BigInt(a) - BigInt(b)));
  const next = sorted.findIndex((id) => BigInt(id) > BigInt(last));
  return next < 0 ? sorted : [...sorted.slice(next), ...sorted.slice(0, next)];
}

/** The first of those with the smallest value. */
function least<T>(items: readonly T[], valueOf: (item: T) => number): T | undefined {
  let best: { item: T; value: number } | undefined;
  for (const item of items) {
    const value = valueOf(item);
    if (!best || value < best.value) best = { item, value };
  }
  return best?.item;
}
