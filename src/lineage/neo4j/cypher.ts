/**
 * All Cypher statements. Each pattern names the tenant at both ends of an edge, because Neo4j has no foreign key that would
 * forbid an edge between two tenants.
 *
 * Nodes are matched by the label `Knowledge` and their id, since the label of a metric changes with its type.
 */

import { type Hierarchy, type Label, metricLabels, ownershipOf } from "./model.ts";
import type { EdgeKind } from "./store/projection.ts";

/**
 * Writing to the tenant's node takes the lock on it until the transaction ends. Whoever holds it reads Postgres afterwards, so
 * an older state can never be written over a newer one.
 */
export const LOCK_TENANT = `
  MERGE (t:Tenant {id: $tenantId})
  SET t.updatedAt = datetime()`;

export const WRITE_TENANT = `
  MATCH (t:Tenant {id: $tenantId})
  SET t.code = $code, t.name = $name, t.createdAt = datetime($createdAt)`;

export const KNOWN_NODES = `
  UNWIND $ids AS id
  MATCH (n:Knowledge {tenantId: $tenantId, id: id})
  RETURN n.id AS id`;

/** Replaces all properties, so that an attribute that is gone vanishes here too. */
export function writeNodes(label: Label): string {
  const otherLabels = metricLabels.includes(label) ? metricLabels.filter((other) => other !== label) : [];
  const ownership = ownershipOf(label);
  return `
  MATCH (t:Tenant {id: $tenantId})
  UNWIND $rows AS row
  MERGE (n:Knowledge {tenantId: $tenantId, id: row.id})
  SET n = row.properties, n:${label},
      n.createdAt = datetime(row.times.createdAt),
      n.updatedAt = datetime(row.times.updatedAt),
      n.embeddingUpdatedAt = datetime(row.times.embeddingUpdatedAt),
      n.summaryGeneratedAt = datetime(row.times.summaryGeneratedAt)${
        otherLabels.length > 0 ? `\n  REMOVE n:${otherLabels.join(":")}` : ""
      }${ownership ? `\n  MERGE (t)-[:${ownership}]->(n)` : ""}`;
}

export const DELETE_NODES = `
  UNWIND $ids AS id
  MATCH (n:Knowledge {tenantId: $tenantId, id: id})
  DETACH DELETE n`;

/** Takes away the edge from a parent that an asset has no longer, as after a rename into another schema. */
export const leaveParents = (type: Hierarchy): string => `
  UNWIND $rows AS row
  MATCH (n:Knowledge {tenantId: $tenantId, id: row.id})<-[r:${type}]-(p:Knowledge {tenantId: $tenantId})
  WHERE row.parentId IS NULL OR p.id <> row.parentId
  DELETE r`;

export const joinParents = (type: Hierarchy): string => `
  UNWIND $rows AS row
  MATCH (p:Knowledge {tenantId: $tenantId, id: row.parentId})
  MATCH (n:Knowledge {tenantId: $tenantId, id: row.id})
  MERGE (p)-[:${type}]->(n)`;

export const writeEdges = (kind: EdgeKind): string => `
  UNWIND $rows AS row
  MATCH (a:Knowledge {tenantId: $tenantId, id: row.src})
  MATCH (b:Knowledge {tenantId: $tenantId, id: row.dst})
  MERGE (a)-[r:${kind}]->(b)
  SET r.transformations = row.transformations`;

export const deleteEdges = (kind: EdgeKind): string => `
  UNWIND $rows AS row
  MATCH (a:Knowledge {tenantId: $tenantId, id: row.src})-[r:${kind}]->(b:Knowledge {tenantId: $tenantId, id: row.dst})
  DELETE r`;

/**
 * In the order of ids, because events may bring nodes back meanwhile: without it, the end would run away from a busy tenant.
 * Ordered by both properties of the constraint, whose index then gives the order without a sort.
 */
export const DELETE_PAGE = `
  MATCH (n:Knowledge {tenantId: $tenantId}) WHERE n.id > $after
  WITH n, n.tenantId AS tenantId, n.id AS id ORDER BY tenantId, id LIMIT $limit
  DETACH DELETE n
  RETURN count(*) AS deleted, max(id) AS last`;
