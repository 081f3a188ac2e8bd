/**
 * Whose turn it is to hold a connection for a transaction on a tenant's graph: one of each tenant at a time, since they would
 * only wait for each other's lock, and a few in all, so that the rest of the process has connections too.
 */
import { createSlots, type Slots } from "../kernel/work/slots.ts";

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
      // The tenant's own first: who waits for that keeps nobody else waiting.
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
