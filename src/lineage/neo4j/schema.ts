/**
 * Constraints and indexes of the graph in Neo4j. A server may refuse some, depending on its edition and version; a refusal is
 * logged, and the projection works without it.
 */
import type { Db } from "../../kernel/data/db.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import { type GraphDriver, isOutage } from "./driver.ts";
import { labels } from "./model.ts";
import { commonDimension } from "./store/projection.ts";

const CONSTRAINTS = [
  "CREATE CONSTRAINT tenant_id_uk IF NOT EXISTS FOR (t:Tenant) REQUIRE t.id IS UNIQUE",
  "CREATE CONSTRAINT tenant_code_uk IF NOT EXISTS FOR (t:Tenant) REQUIRE t.code IS UNIQUE",
  // By this one every node is found (cypher.ts); those by label are for who else reads the graph.
  "CREATE CONSTRAINT knowledge_tenant_id_uk IF NOT EXISTS FOR (n:Knowledge) REQUIRE (n.tenantId, n.id) IS UNIQUE",
  ...labels.map(
    (label) =>
      `CREATE CONSTRAINT ${constraintName(label)} IF NOT EXISTS FOR (n:${label}) REQUIRE (n.tenantId, n.id) IS UNIQUE`,
  ),
];

const FULL_TEXT = [
  `CREATE FULLTEXT INDEX knowledge_text IF NOT EXISTS FOR (n:Knowledge)
   ON EACH [n.name, n.description, n.summary, n.content, n.tags, n.code, n.items]`,
  "CREATE FULLTEXT INDEX sql_text IF NOT EXISTS FOR (n:SQL) ON EACH [n.content, n.summary, n.tags]",
];

/**
 * Tenants choose their models, so vectors of many dimensions lie side by side, and a label and property can have one index
 * only. Without a dimension it takes them all and compares those of the same dimension (seen on 5.26); 5.20 wants one.
 */
function vectorIndex(dimension?: number): string {
  const dimensions = dimension === undefined ? "" : `\`vector.dimensions\`: ${dimension}, `;
  return `CREATE VECTOR INDEX knowledge_embedding IF NOT EXISTS FOR (n:Knowledge) ON (n.embedding)
   OPTIONS {indexConfig: {${dimensions}\`vector.similarity_function\`: 'cosine'}}`;
}

export interface SchemaDeps {
  db: Db;
  driver: GraphDriver;
  log: ServiceLog;
  database: string | undefined;
}

const STATEMENT_MS = 60_000;

export async function prepareSchema({ db, driver, log, database }: SchemaDeps): Promise<void> {
  const session = driver.session(database === undefined ? {} : { database });

  /** Answers what the server has against it. */
  async function refusal(cypher: string): Promise<unknown> {
    try {
      await session.executeWrite(async (tx) => void (await tx.run(cypher, {})), { timeout: STATEMENT_MS });
      return undefined;
    } catch (error) {
      if (isOutage(error)) throw error;
      return error;
    }
  }

  try {
    for (const cypher of [...CONSTRAINTS, ...FULL_TEXT]) {
      const err = await refusal(cypher);
      if (err) log.warn({ err, cypher }, "Neo4j refuses a constraint or index; the projection goes on without it");
    }
    if (!(await refusal(vectorIndex()))) return;
    const dimension = await commonDimension(db);
    if (dimension === undefined) return; // There are no vectors yet; the next start looks again.
    const err = await refusal(vectorIndex(dimension));
    if (err) log.warn({ err, dimension }, "Neo4j refuses the vector index; the projection goes on without it");
    else log.warn({ dimension }, "this Neo4j indexes vectors of one dimension only; 5.26 indexes all");
  } finally {
    await session.close();
  }
}

/** `atomic_metric_tenant_id_uk`, but `wordroot_tenant_id_uk`: the names that the data model gives them. */
function constraintName(label: string): string {
  return `${label.replace(/Metric$/, "_metric").toLowerCase()}_tenant_id_uk`;
}
