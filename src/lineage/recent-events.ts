/**
 * The events that this process has seen applied of late. Clients send an event again soon after a time-out, and what was
 * committed stays taken, so those are answered without asking the database.
 */

export interface RecentEvents {
  /** The id of the event, if it is one of them. */
  find(tenantId: string, key: string): string | undefined;
  add(tenantId: string, key: string, id: string): void;
}

const REMEMBERED_MAX = 50_000;

export function createRecentEvents(): RecentEvents {
  const ids = new Map<string, string>();
  return {
    find: (tenantId, key) => ids.get(`${tenantId} ${key}`),
    add(tenantId, key, id) {
      if (ids.size >= REMEMBERED_MAX) ids.clear();
      ids.set(`${tenantId} ${key}`, id);
    },
  };
}
