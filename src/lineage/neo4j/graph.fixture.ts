/**
 * A graph to project into, for tests: in memory, and on a real server where `TEST_NEO4J_URL` names one (with
 * `TEST_NEO4J_USER` and `TEST_NEO4J_PASSWORD`; without them, `neo4j` twice). Tests take tenants that nobody else has.
 */
import { isDateTime, isInt } from "neo4j-driver";
import { type GraphDriver, openDriver } from "./driver.ts";
import { createMemoryGraph } from "./memory-graph.fixture.ts";

const url = process.env["TEST_NEO4J_URL"];
export const noServer = url === undefined && "TEST_NEO4J_URL is not set";
if (noServer) console.info(`skipped on a real server: ${noServer}`);

export interface Picture {
  tenant: Record<string, unknown>;
  /** By id. Integers are bigints and points in time are ISO 8601. */
  nodes: Record<string, { labels: string[]; properties: Record<string, unknown> }>;
  /** `src TYPE dst`, sorted; the tenant's own end is `tenant`. */
  edges: string[];
  transformations: Record<string, readonly string[]>;
}

export interface TestGraph {
  driver: GraphDriver;
  look(tenantId: string): Promise<Picture>;
  /** Whether a transaction waits for another. */
  isWaiting(): Promise<boolean>;
  /** Takes away all that the tenants left, and closes. */
  close(tenants: readonly string[]): Promise<void>;
}

export function openMemoryGraph(): TestGraph {
  const { driver, state, waiting } = createMemoryGraph();
  return {
    driver,
    isWaiting: async () => waiting() > 0,
    async look(tenantId) {
      const { tenants, nodes, edges } = state();
      const mine = [...nodes.values()].filter(({ properties }) => properties["tenantId"] === BigInt(tenantId));
      return pictureOf({
        tenant: tenants.get(BigInt(tenantId)) ?? {},
        nodes: mine.map((node) => ({ labels: [...node.labels], properties: node.properties })),
        edges: [...edges.values()].filter((edge) => edge.tenantId === BigInt(tenantId)),
      });
    },
    close: async () => {},
  };
}

export const serverSettings = {
  url: url ?? "",
  user: process.env["TEST_NEO4J_USER"] ?? "neo4j",
  password: process.env["TEST_NEO4J_PASSWORD"] ?? "neo4j",
  batchRows: 1_000,
};

export async function openServerGraph(): Promise<TestGraph> {
  const driver = await openDriver(serverSettings, {});
  const rows = async (cypher: string, tenantId = "0") => {
    const session = driver.session({});
    try {
      const work = async (tx: { run: (cypher: string, parameters: object) => PromiseLike<unknown> }) =>
        (await tx.run(cypher, { tenantId: BigInt(tenantId) })) as {
          records: { toObject(): Record<string, unknown> }[];
        };
      const { records } = await session.executeWrite(work, { timeout: 60_000 });
      return records.map((record) => plain(record.toObject()) as Record<string, never>);
    } finally {
      await session.close();
    }
  };
  return {
    driver,
    async isWaiting() {
      const transactions = await rows("SHOW TRANSACTIONS YIELD status RETURN status");
      return transactions.some(({ status }) => String(status).startsWith("Blocked"));
    },
    async look(tenantId) {
      const [tenant] = await rows("MATCH (t:Tenant {id: $tenantId}) RETURN properties(t) AS properties", tenantId);
      const { updatedAt: _, createdAt: __, ...properties } = (tenant?.["properties"] ?? {}) as Record<string, unknown>;
      return pictureOf({
        tenant: properties,
        nodes: (await rows(
          "MATCH (n:Knowledge {tenantId: $tenantId}) RETURN labels(n) AS labels, properties(n) AS properties",
          tenantId,
        )) as unknown as RawNode[],
        // Edges are looked for from either end, so that one that leaves the tenant would show.
        edges: (await rows(
          `MATCH (a)-[r]->(b) WHERE $tenantId IN [a.tenantId, b.tenantId]
           RETURN DISTINCT r, CASE WHEN a:Tenant AND a.id = $tenantId THEN 'tenant' ELSE a.id END AS src, type(r) AS type,
             b.id AS dst, r.transformations AS transformations`,
          tenantId,
        )) as unknown as RawEdge[],
      });
    },
    async close(tenants) {
      for (const tenantId of tenants) {
        await rows("MATCH (n:Knowledge {tenantId: $tenantId}) DETACH DELETE n", tenantId);
        await rows("MATCH (t:Tenant {id: $tenantId}) DETACH DELETE t", tenantId);
      }
      await driver.close();
    },
  };
}

interface RawNode {
  labels: string[];
  properties: Record<string, unknown>;
}
interface RawEdge {
  src: string;
  type: string;
  dst: string;
  transformations: readonly string[] | null;
}

function pictureOf(raw: {
  tenant: Record<string, unknown>;
  nodes: readonly RawNode[];
  edges: readonly RawEdge[];
}): Picture {
  const name = ({ src, type, dst }: RawEdge) => `${src} ${type} ${dst}`;
  return {
    tenant: raw.tenant,
    nodes: Object.fromEntries(
      raw.nodes.map(({ labels, properties }) => [properties["id"], { labels: labels.toSorted(), properties }]),
    ),
    edges: raw.edges.map(name).sort(),
    transformations: Object.fromEntries(
      raw.edges.flatMap((edge) => (edge.transformations ? [[name(edge), edge.transformations]] : [])),
    ),
  };
}

/** What the driver answers, without its own types. */
function plain(value: unknown): unknown {
  if (isInt(value)) return value.toBigInt();
  if (isDateTime(value)) return new Date(value.toString()).toISOString();
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
}

/** The same driver, with something that happens before each statement. */
export function watched(
  driver: GraphDriver,
  before: (cypher: string, parameters: object) => Promise<void> | void,
): GraphDriver {
  return {
    ...driver,
    getServerInfo: (config) => driver.getServerInfo(config),
    close: () => driver.close(),
    session(config) {
      const session = driver.session(config);
      return {
        close: () => session.close(),
        executeWrite: (work, limits) =>
          session.executeWrite(
            (tx) =>
              work({
                async run(cypher, parameters) {
                  await before(cypher, parameters);
                  return tx.run(cypher, parameters);
                },
              }),
            limits,
          ),
      };
    },
  };
}
