/**
 * A graph in memory behind the driver's interface, which understands the statements of the projection and no others. What
 * runs against it runs against a real server as well (graph.fixture.ts), and that is what keeps it honest.
 */
import { signal } from "../../../test/until.ts";
import * as cypher from "./cypher.ts";
import type { GraphDriver, GraphTransaction } from "./driver.ts";
import { type EdgeRow, edgeKinds, HIERARCHY, labels, metricLabels, type NodeRow, ownershipOf } from "./model.ts";

type Key = string;
interface MemoryNode {
  labels: Set<string>;
  properties: Record<string, unknown>;
}
export interface MemoryState {
  tenants: Map<bigint, Record<string, unknown>>;
  /** By tenant and id. */
  nodes: Map<Key, MemoryNode>;
  /** By the ends and the type; a tenant is the end `tenant`. */
  edges: Map<
    string,
    { tenantId: bigint; src: string; type: string; dst: string; transformations: readonly string[] | null }
  >;
}

interface Parameters {
  tenantId: bigint;
  ids: string[];
  rows: unknown[];
  after: string;
  limit: bigint;
}
type Handler = (state: MemoryState, parameters: Parameters) => Record<string, unknown>[] | undefined;
type PlaceRow = { id: string; parentId: string | null };

const keyOf = (tenantId: bigint, id: string): Key => `${tenantId}/${id}`;

function putEdge(state: MemoryState, tenantId: bigint, type: string, { src, dst, transformations }: EdgeRow): void {
  if (src !== "tenant" && !state.nodes.has(keyOf(tenantId, src))) return;
  if (!state.nodes.has(keyOf(tenantId, dst))) return;
  state.edges.set(`${tenantId} ${src} ${type} ${dst}`, { tenantId, src, type, dst, transformations });
}

function deleteNode(state: MemoryState, tenantId: bigint, id: string): void {
  state.nodes.delete(keyOf(tenantId, id));
  for (const [key, edge] of state.edges) {
    if (edge.tenantId === tenantId && (edge.src === id || edge.dst === id)) state.edges.delete(key);
  }
}

const handlers = new Map<string, Handler>([
  [
    cypher.LOCK_TENANT,
    ({ tenants }, { tenantId }) => void (tenants.has(tenantId) || tenants.set(tenantId, { id: tenantId })),
  ],
  [
    cypher.WRITE_TENANT,
    ({ tenants }, parameters) => {
      const { tenantId, code, name } = parameters as Parameters & { code: string; name: string };
      Object.assign(tenants.get(tenantId) ?? {}, { code, name });
    },
  ],
  [
    cypher.KNOWN_NODES,
    ({ nodes }, { tenantId, ids }) => ids.filter((id) => nodes.has(keyOf(tenantId, id))).map((id) => ({ id })),
  ],
  [
    cypher.DELETE_NODES,
    (state, { tenantId, ids }) => {
      for (const id of ids) deleteNode(state, tenantId, id);
    },
  ],
  [
    cypher.DELETE_PAGE,
    (state, { tenantId, after, limit }) => {
      const mine = [...state.nodes.values()].filter(({ properties }) => properties["tenantId"] === tenantId);
      const ids = mine.map(({ properties }) => properties["id"] as string).sort();
      const deleted = ids.filter((id) => id > after).slice(0, Number(limit));
      for (const id of deleted) deleteNode(state, tenantId, id);
      return [{ deleted: BigInt(deleted.length), last: deleted.at(-1) ?? null }];
    },
  ],
]);

for (const label of labels) {
  handlers.set(cypher.writeNodes(label), (state, { tenantId, rows }) => {
    for (const { id, properties, times } of rows as NodeRow[]) {
      const node = state.nodes.get(keyOf(tenantId, id)) ?? { labels: new Set(["Knowledge"]), properties: {} };
      if (metricLabels.includes(label)) for (const other of metricLabels) node.labels.delete(other);
      node.labels.add(label);
      const points = Object.entries(times).filter(([, time]) => time !== null);
      node.properties = { ...properties, ...Object.fromEntries(points) };
      state.nodes.set(keyOf(tenantId, id), node);
      const ownership = ownershipOf(label);
      if (ownership) putEdge(state, tenantId, ownership, { src: "tenant", dst: id, transformations: null });
    }
  });
}
for (const type of HIERARCHY) {
  handlers.set(cypher.leaveParents(type), ({ edges }, { tenantId, rows }) => {
    for (const { id, parentId } of rows as PlaceRow[]) {
      for (const [key, edge] of edges) {
        if (edge.tenantId === tenantId && edge.type === type && edge.dst === id && edge.src !== parentId) {
          edges.delete(key);
        }
      }
    }
  });
  handlers.set(cypher.joinParents(type), (state, { tenantId, rows }) => {
    for (const { id, parentId } of rows as PlaceRow[]) {
      putEdge(state, tenantId, type, { src: parentId ?? "", dst: id, transformations: null });
    }
  });
}
for (const kind of edgeKinds) {
  handlers.set(cypher.writeEdges(kind), (state, { tenantId, rows }) => {
    for (const row of rows as EdgeRow[]) putEdge(state, tenantId, kind, row);
  });
  handlers.set(cypher.deleteEdges(kind), ({ edges }, { tenantId, rows }) => {
    for (const { src, dst } of rows as EdgeRow[]) edges.delete(`${tenantId} ${src} ${kind} ${dst}`);
  });
}

/** The texts of all statements that read or write nodes and edges. */
export const statements: readonly string[] = [...handlers.keys()];

const TRIES = 3;

export interface MemoryGraph {
  driver: GraphDriver;
  state(): MemoryState;
  /** How many transactions wait for the lock. */
  waiting(): number;
}

export function createMemoryGraph(): MemoryGraph {
  let state: MemoryState = { tenants: new Map(), nodes: new Map(), edges: new Map() };
  let turn: Promise<void> = Promise.resolve();
  let waiting = 0;

  /** One lock for all tenants, which a tenant cannot tell from one of its own. */
  async function lock(): Promise<() => void> {
    const before = turn;
    const { promise, resolve } = signal();
    turn = promise;
    waiting += 1;
    await before;
    waiting -= 1;
    return resolve;
  }

  async function attempt<T>(work: (tx: GraphTransaction) => Promise<T>): Promise<T> {
    let draft: MemoryState | undefined;
    let unlock: (() => void) | undefined;
    try {
      const result = await work({
        async run(text, parameters) {
          if (text === cypher.LOCK_TENANT) unlock ??= await lock();
          draft ??= structuredClone(state);
          return run(draft, text, parameters as Parameters);
        },
      });
      state = unlock && draft ? draft : state;
      return result;
    } finally {
      unlock?.();
    }
  }

  const driver: GraphDriver = {
    session: () => ({
      async executeWrite(work) {
        for (let tries = 1; ; tries += 1) {
          try {
            return await attempt(work);
          } catch (error) {
            const code = String((error as { code?: unknown }).code);
            if (tries === TRIES || !code.startsWith("Neo.TransientError.")) throw error;
          }
        }
      },
      close: async () => {},
    }),
    getServerInfo: async () => ({ agent: "memory" }),
    close: async () => {},
  };
  return { driver, state: () => state, waiting: () => waiting };
}

function run(state: MemoryState, text: string, parameters: Parameters) {
  const handler = handlers.get(text);
  if (!handler && !/^CREATE (CONSTRAINT|FULLTEXT INDEX|VECTOR INDEX) \w+ IF NOT EXISTS /.test(text)) {
    throw new Error(`a statement that is not the projection's: ${text}`);
  }
  const records = handler?.(state, parameters) ?? [];
  return { records: records.map((record) => ({ get: (column: string) => record[column] })) };
}
