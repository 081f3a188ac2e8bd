/** The time from which on events count beside a full sync, which covers everything before. */
import type { TenantNow } from "../store/tenants.ts";

const MICROS_PER_SECOND = 1_000_000;

/** In microseconds. The clocks of producers may be behind that of the sync by `toleranceSeconds`. */
export function cutoverOf({ cutover_at }: TenantNow, toleranceSeconds: number): number {
  if (cutover_at === null) return Number.NEGATIVE_INFINITY;
  return Number(cutover_at) - toleranceSeconds * MICROS_PER_SECOND;
}
