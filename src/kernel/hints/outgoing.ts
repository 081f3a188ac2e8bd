/** The hints that a process has collected and not yet sent, each kept once, and their text in notifications. */
import type { Change } from "./ring.ts";

/** More changed entities of one kind than this are one hint for all of the kind. */
const IDS_MAX = 200;
/** Of kinds and tenants. Beyond it, hints are sent to all tenants. */
const GROUPS_MAX = 1_000;
/** Postgres refuses payloads of 8,000 bytes. The rev takes at most 21 of them. */
const PAYLOAD_BYTES_MAX = 7_900;
/** As an id: all entities of the kind. As a tenant: all tenants. */
export const ALL = "*";

/** The changes of one kind in one tenant. */
interface Group {
  kind: string;
  tenantId: string | undefined;
  ids: Set<string>;
}

export interface Outgoing {
  add(kind: string, ids: Iterable<string>, tenantId?: string): void;
  isEmpty(): boolean;
  /** Removes all and returns them. */
  take(): readonly Group[];
}

export function createOutgoing(): Outgoing {
  let groups = new Map<string, Group>();

  function groupOf(kind: string, tenantId: string | undefined): Group {
    const key = `${kind} ${tenantId ?? ""}`;
    const present = groups.get(key);
    if (present) return present;
    if (tenantId !== undefined && tenantId !== ALL && groups.size >= GROUPS_MAX) return groupOf(kind, ALL);
    const group = { kind, tenantId, ids: new Set<string>() };
    groups.set(key, group);
    return group;
  }

  return {
    add(kind, ids, tenantId) {
      let group: Group | undefined; // None for no ids: an empty group would be sent.
      for (const id of ids) {
        group ??= groupOf(kind, tenantId);
        if (group.ids.has(ALL)) return;
        group.ids.add(group.tenantId === tenantId ? id : ALL); // Other tenants get no ids.
        if (group.ids.size > IDS_MAX || id === ALL) group.ids = new Set([ALL]);
      }
    },
    isEmpty: () => groups.size === 0,
    take() {
      const taken = [...groups.values()];
      groups = new Map();
      return taken;
    },
  };
}

/** One or more payloads of notifications; without changes, one that is empty. */
export function payloadsOf(groups: readonly Group[]): string[] {
  const payloads: string[] = [];
  let texts: string[] = [];
  let bytes = 0;
  const changes = groups.flatMap(({ kind, tenantId, ids }) => [...ids].map((id) => ({ kind, id, tenantId })));
  for (const change of changes) {
    let text = JSON.stringify(change satisfies Change);
    if (Buffer.byteLength(text) > PAYLOAD_BYTES_MAX / 2) text = JSON.stringify({ ...change, id: ALL });
    const size = Buffer.byteLength(text) + 1;
    if (bytes + size > PAYLOAD_BYTES_MAX) {
      payloads.push(`[${texts.join(",")}]`);
      texts = [];
      bytes = 0;
    }
    texts.push(text);
    bytes += size;
  }
  return [...payloads, `[${texts.join(",")}]`];
}
