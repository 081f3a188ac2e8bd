/**
 * Writes parts of a tenant's graph to Neo4j. A transaction takes the tenant's lock, reads the state from Postgres and writes it, so
 * it can be repeated, and events may be handled in any order by any process.
 */
import type { Db } from "../../kernel/data/db.ts";
import {
  DELETE_NODES,
  DELETE_PAGE,
  deleteEdges,
  joinParents,
  KNOWN_NODES,
  LOCK_TENANT,
  leaveParents,
  WRITE_TENANT,
  writeEdges,
  writeNodes,
} from "./cypher.ts";
import type { GraphDriver, GraphTransaction } from "./driver.ts";
import { edgeRowOf, hierarchyOf, labelOf, nodeRowOf, tenantKey } from "./model.ts";
import type { Neo4jSettings } from "./settings.ts";
import {
  childrenOf,
  type EdgeKey,
  type EdgeState,
  edgeStates,
  edgesAfter,
  edgesAt,
  type NodeState,
  nodeStates,
  nodeStatesAfter,
  type PlaceState,
  placesAfter,
  tenantState,
} from "./store/projection.ts";

/** For one transaction, by the server's clock. */
const TRANSACTION_MS = 120_000;

export interface WriterDeps {
  db: Db;
  driver: GraphDriver;
  settings: Pick<Neo4jSettings, "database" | "batchRows">;
}

/** Where a page ended, and how much of it was written; nothing once there is no further page. */
export type Page<Cursor> = { last: Cursor; written: number } | undefined;

export interface Writer {
  /** At most `batchRows` of them. */
  syncNodes(tenantId: string, ids: readonly string[]): Promise<void>;
  /** At most `batchRows` of them. */
  syncEdges(tenantId: string, edges: readonly EdgeKey[]): Promise<void>;
  /** Deletes assets, whatever Postgres says of them. */
  deleteAfter(tenantId: string, id: string): Promise<Page<string>>;
  nodesAfter(tenantId: string, id: string): Promise<Page<string>>;
  placesAfter(tenantId: string, id: string): Promise<Page<string>>;
  edgesAfter(tenantId: string, edge: EdgeCursor): Promise<Page<EdgeCursor>>;
}
export type EdgeCursor = Record<keyof EdgeKey, string>;

/** A statement of one tenant's. */
type Run = (cypher: string, parameters?: object) => ReturnType<GraphTransaction["run"]>;

export function createWriter({ db, driver, settings }: WriterDeps): Writer {
  const { database, batchRows } = settings;

  async function locked<T>(tenantId: string, work: (run: Run) => Promise<T>): Promise<T> {
    const session = driver.session(database === undefined ? {} : { database });
    try {
      return await session.executeWrite(
        async (tx) => {
          const run: Run = (cypher, parameters) => tx.run(cypher, { ...parameters, tenantId: tenantKey(tenantId) });
          await run(LOCK_TENANT);
          const tenant = await tenantState(db, tenantId);
          if (tenant) {
            const { code, name, created_at } = tenant;
            await run(WRITE_TENANT, { code, name, createdAt: created_at.toISOString() });
          }
          return work(run);
        },
        { timeout: TRANSACTION_MS },
      );
    } finally {
      await session.close();
    }
  }

  async function write(run: Run, cypher: string, rows: readonly object[]): Promise<void> {
    for (const chunk of chunksOf(rows, batchRows)) await run(cypher, { rows: chunk });
  }

  async function putNodes(run: Run, tenantId: string, states: readonly NodeState[]): Promise<void> {
    for (const [label, group] of groupsOf(states, labelOf)) {
      const rows = group.map((state) => nodeRowOf(tenantId, state));
      await write(run, writeNodes(label), rows);
    }
  }

  /** `moved` may have an edge from a former parent. */
  async function putPlaces(run: Run, states: readonly PlaceState[], moved: readonly PlaceState[] = []): Promise<void> {
    const rowOf = ({ id, parent_id }: PlaceState) => ({ id, parentId: parent_id });
    for (const [type, group] of groupsOf(moved, ({ kind }) => hierarchyOf(kind))) {
      if (type) await write(run, leaveParents(type), group.map(rowOf));
    }
    const placed = states.filter(({ parent_id }) => parent_id !== null);
    for (const [type, group] of groupsOf(placed, ({ kind }) => hierarchyOf(kind))) {
      if (type) await write(run, joinParents(type), group.map(rowOf));
    }
  }

  async function putEdges(run: Run, states: readonly EdgeState[]): Promise<void> {
    for (const [kind, group] of groupsOf(states, (state) => state.kind)) {
      await write(run, writeEdges(kind), group.map(edgeRowOf));
    }
  }

  /**
   * A node that is new here, or here again, comes with all of its edges and children. The events about those may have
   * been handled before there was anything to tie them to, and the event of a restored node names the node only.
   * They are written in the same transaction: after a crash in between, the node would no longer be new.
   */
  async function putSurroundings(run: Run, tenantId: string, created: readonly string[]): Promise<void> {
    if (created.length === 0) return;
    await putPlaces(run, await childrenOf(db, tenantId, created));
    await putEdges(run, await edgesAt(db, tenantId, created));
  }

  return {
    syncNodes: (tenantId, ids) =>
      locked(tenantId, async (run) => {
        const states = await nodeStates(db, tenantId, ids);
        const { records } = await run(KNOWN_NODES, { ids });
        const known = new Set(records.map((record) => record.get("id")));
        const existing = new Set(states.map(({ id }) => id));
        const gone = ids.filter((id) => known.has(id) && !existing.has(id));
        if (gone.length > 0) await run(DELETE_NODES, { ids: gone });
        await putNodes(run, tenantId, states);
        await putPlaces(
          run,
          states,
          states.filter(({ id }) => known.has(id)),
        );
        const created = states.filter(({ id }) => !known.has(id)).map(({ id }) => id);
        await putSurroundings(run, tenantId, created);
      }),
    syncEdges: (tenantId, edges) =>
      locked(tenantId, async (run) => {
        const states = await edgeStates(db, tenantId, edges);
        const existing = new Set(states.map(edgeId));
        await putEdges(run, states);
        const gone = edges.filter((edge) => !existing.has(edgeId(edge)));
        for (const [kind, group] of groupsOf(gone, (edge) => edge.kind)) {
          await write(
            run,
            deleteEdges(kind),
            group.map(({ src, dst }) => ({ src, dst })),
          );
        }
      }),
    deleteAfter: (tenantId, after) =>
      locked(tenantId, async (run) => {
        const { records } = await run(DELETE_PAGE, { after, limit: BigInt(batchRows) });
        const last = records[0]?.get("last") as string | null | undefined;
        return last ? { last, written: Number(records[0]?.get("deleted")) } : undefined;
      }),
    nodesAfter: (tenantId, after) =>
      locked(tenantId, async (run) => {
        const states = await nodeStatesAfter(db, tenantId, after, batchRows);
        await putNodes(run, tenantId, states);
        return pageOf(states, ({ id }) => id, states.length);
      }),
    placesAfter: (tenantId, after) =>
      locked(tenantId, async (run) => {
        const states = await placesAfter(db, tenantId, after, batchRows);
        const placed = states.filter(({ parent_id }) => parent_id !== null);
        await putPlaces(run, placed);
        return pageOf(states, ({ id }) => id, placed.length);
      }),
    edgesAfter: (tenantId, after) =>
      locked(tenantId, async (run) => {
        const states = await edgesAfter(db, tenantId, after, batchRows);
        const existing = states.filter(({ exists }) => exists);
        await putEdges(run, existing);
        return pageOf(states, ({ src, kind, dst }) => ({ src, kind, dst }), existing.length);
      }),
  };
}

export const edgeId = ({ src, kind, dst }: EdgeKey): string => `${src} ${kind} ${dst}`;

function pageOf<State, Cursor>(
  states: readonly State[],
  cursorOf: (state: State) => Cursor,
  written: number,
): Page<Cursor> {
  const last = states.at(-1);
  return last && { last: cursorOf(last), written };
}

function groupsOf<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

export function* chunksOf<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}
