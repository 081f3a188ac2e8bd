/**
 * The outbox consumer that passes changes of the graph to the Neo4j writer. Waiting events are merged: a table that changed in
 * fifty of them is written once.
 */
import { createGroupCommit } from "../../kernel/data/group-commit.ts";
import type { OutboxConsumer } from "../../kernel/work/outbox.ts";
import { isOutage, isRefusal } from "./driver.ts";
import { edgeKinds } from "./model.ts";
import type { EdgeKey } from "./store/projection.ts";
import { chunksOf, edgeId, type Writer } from "./writer.ts";

export const GRAPH_TOPIC = "lineage.graph";
/** Its name in the outbox. */
export const CONSUMER = "neo4j";

/** Ids of what may have changed, was made, or is gone. */
export interface GraphChanged {
  tenantId: string;
  nodes: string[];
  edges: { src: string; kind: string; dst: string }[];
}

/** For all events of a run together. Each transaction has a limit of its own, and a server that is gone is noticed in seconds. */
const TIMEOUT_MS = 600_000;

interface Waiting {
  eventId: string;
  changed: GraphChanged;
  signal: AbortSignal;
}
/** Why an event was not delivered; nothing if it was. */
type Failure = { error: unknown } | undefined;

export interface ConsumerDeps {
  writer: Writer;
  batchRows: number;
  /** Resolves once constraints and indexes are there. */
  prepared(): Promise<void>;
  /** Notes that a change of the tenant's graph is missing in Neo4j. */
  refused(tenantId: string, error: unknown): Promise<void>;
}

export function createConsumer({ writer, batchRows, prepared, refused }: ConsumerDeps): OutboxConsumer {
  const incoming = createGroupCommit<Waiting, Failure>({
    identity: ({ eventId }) => eventId,
    async write(events) {
      try {
        await prepared();
        const signals = events.map(({ signal }) => signal);
        for (const changed of merged(events)) await project(changed, signals);
        return events.map(() => undefined);
      } catch (error) {
        if (!isOutage(error)) throw error; // Each is then tried by itself.
        return events.map(() => ({ error }));
      }
    },
  });

  /** Nodes first: an edge is written where both of its ends are. */
  async function project({ tenantId, nodes, edges }: Merged, signals: readonly AbortSignal[]): Promise<void> {
    for (const chunk of chunksOf(nodes, batchRows)) {
      for (const signal of signals) signal.throwIfAborted();
      await writer.syncNodes(tenantId, chunk);
    }
    for (const chunk of chunksOf(edges, batchRows)) {
      for (const signal of signals) signal.throwIfAborted();
      await writer.syncEdges(tenantId, chunk);
    }
  }

  return {
    name: CONSUMER,
    topics: [GRAPH_TOPIC],
    timeoutMs: TIMEOUT_MS,
    // No event is given up: it would leave a difference that only a rebuild repairs.
    retry: { maxAttempts: Number.POSITIVE_INFINITY, baseMs: 1_000, factor: 2, capMs: 60_000, jitter: 0.2 },
    isOutage,
    async deliver({ eventId, payload }, signal) {
      const changed = payload as GraphChanged;
      try {
        const failure = await incoming.add({ eventId, changed, signal });
        if (failure) throw failure.error;
      } catch (error) {
        if (!isRefusal(error)) throw error;
        await refused(changed.tenantId, error); // Before the event is deleted: the gap must be recorded until a rebuild.
      }
    },
  };
}

interface Merged {
  tenantId: string;
  nodes: string[];
  edges: EdgeKey[];
}

/** One for each tenant, without repeats. */
function merged(events: readonly Waiting[]): Merged[] {
  const tenants = new Map<string, { nodes: Set<string>; edges: Map<string, EdgeKey> }>();
  for (const { tenantId, nodes, edges } of events.map(({ changed }) => changed)) {
    const tenant = tenants.get(tenantId) ?? { nodes: new Set(), edges: new Map() };
    tenants.set(tenantId, tenant);
    for (const id of nodes) tenant.nodes.add(id);
    for (const edge of edges) if (isKnown(edge)) tenant.edges.set(edgeId(edge), edge);
  }
  return [...tenants].map(([tenantId, { nodes, edges }]) => ({
    tenantId,
    nodes: [...nodes],
    edges: [...edges.values()],
  }));
}

/** The kind becomes part of a statement's text. */
const isKnown = (edge: GraphChanged["edges"][number]): edge is EdgeKey =>
  (edgeKinds as readonly string[]).includes(edge.kind);
