/**
 * A cache of events that were applied recently. Clients send an event again soon after a time-out; such duplicates are
 * answered without a statement.
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
