/**
 * The rate limit of a tenant, per process. It is answered with 503 and Retry-After, which lineage clients retry; any 4xx makes
 * them drop the event.
 */

import type { Clock } from "../../kernel/time/clock.ts";
import { MINUTE_MS } from "../../kernel/time/units.ts";
import { lineageError } from "../catalogue.ts";
import type { Tenant } from "./tenants.ts";

export interface TenantRate {
  /** Throws TENANT_RATE_LIMITED if the tenant has sent as much as it may. */
  take(tenant: Tenant): void;
}

const BUCKETS_MAX = 10_000;

/** A bucket holds what the tenant may send in a minute and fills up evenly: jobs that all end on the hour need no more room. */
export function createTenantRate({ clock }: { clock: Clock }): TenantRate {
  const buckets = new Map<string, { tokens: number; at: number }>();

  return {
    take({ id, rateLimitPerMinute: limit }) {
      if (limit === null) return;
      const now = clock.now();
      const { tokens, at } = buckets.get(id) ?? { tokens: limit, at: now };
      const filled = Math.min(limit, tokens + ((now - at) / MINUTE_MS) * limit);
      if (filled < 1) {
        const seconds = Math.max(1, Math.ceil(((1 - filled) * MINUTE_MS) / limit / 1000));
        throw lineageError("TENANT_RATE_LIMITED", { tenantId: Number(id), limit, seconds });
      }
      if (buckets.size >= BUCKETS_MAX && !buckets.has(id)) buckets.clear();
      buckets.set(id, { tokens: filled - 1, at: now });
    },
  };
}
