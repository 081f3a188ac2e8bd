/**
 * Slots for transactions on graphs, each of which holds a connection: one at a time for each tenant, since others would only
 * wait for its lock, and a few in all, so that the rest of the process has connections too.
 */
import { createSlots, type Slots } from "../../kernel/work/slots.ts";

export interface GraphSlots {
  take<T>(tenantId: string, work: () => Promise<T>): Promise<T>;
}

const NEVER = new AbortController().signal;

export function createGraphSlots(max: number): GraphSlots {
  const inAll = createSlots(max);
  const tenants = new Map<string, { slot: Slots; wanted: number }>();

  return {
    async take(tenantId, work) {
      const own = tenants.get(tenantId) ?? { slot: createSlots(1), wanted: 0 };
      tenants.set(tenantId, own);
      own.wanted += 1;
      // The tenant's own slot first: waiting for it blocks no other tenant.
      const giveBack = await own.slot.take(NEVER);
      const leave = await inAll.take(NEVER);
      try {
        return await work();
      } finally {
        leave();
        giveBack();
        own.wanted -= 1;
        if (own.wanted === 0) tenants.delete(tenantId);
      }
    },
  };
}
