/**
 * Rebuilds the graph of a tenant in Neo4j. Events continue meanwhile, since they and each page write the present state of
 * Postgres. Readers see gaps until it has ended; an interrupted rebuild is repaired by the next.
 */
import type { EdgeCursor, Page, Writer } from "./writer.ts";

export interface Rebuilt {
  deleted: number;
  nodes: number;
  /** From tenants to what they own not counted. */
  edges: number;
}
export type OnProgress = (tenantId: string, soFar: Rebuilt) => void;

const FIRST: EdgeCursor = { src: "0", kind: "", dst: "0" };

export async function rebuildTenant(writer: Writer, tenantId: string, onProgress: OnProgress): Promise<Rebuilt> {
  const counts: Rebuilt = { deleted: 0, nodes: 0, edges: 0 };
  const count = (what: keyof Rebuilt, written: number) => {
    counts[what] += written;
    onProgress(tenantId, { ...counts });
  };

  await pages(
    "",
    (id) => writer.deleteAfter(tenantId, id),
    (written) => count("deleted", written),
  );
  await pages(
    "0",
    (id) => writer.nodesAfter(tenantId, id),
    (written) => count("nodes", written),
  );
  // Once all nodes are there: a parent may be younger than its children.
  await pages(
    "0",
    (id) => writer.placesAfter(tenantId, id),
    (written) => count("edges", written),
  );
  await pages(
    FIRST,
    (edge) => writer.edgesAfter(tenantId, edge),
    (written) => count("edges", written),
  );
  return counts;
}

async function pages<Cursor>(
  first: Cursor,
  write: (after: Cursor) => Promise<Page<Cursor>>,
  onWritten: (written: number) => void,
): Promise<void> {
  let page = await write(first);
  while (page) {
    onWritten(page.written);
    page = await write(page.last);
  }
}
