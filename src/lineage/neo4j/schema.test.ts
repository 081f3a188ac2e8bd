/** Constraints and indexes: their names, what happens where a server lacks one, and that they find something on a real one. */
import { Neo4jError } from "neo4j-driver";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { recordingLog } from "../../../test/log.ts";
import type { GraphDriver } from "./driver.ts";
import { noServer, openMemoryGraph, openServerGraph, watched } from "./graph.fixture.ts";
import { prepareSchema } from "./schema.ts";
import { createWorld } from "./world.fixture.ts";

const database = useDatabase();
const world = createWorld(database);

async function prepare(driver: GraphDriver) {
  const log = recordingLog();
  await prepareSchema({ db: database.db, driver, log, database: undefined });
  return log.lines;
}

/** The texts that a server gets which has something against some of them. */
async function asked(refuses: (cypher: string) => string | undefined) {
  const texts: string[] = [];
  const driver = watched(openMemoryGraph().driver, (cypher) => {
    texts.push(cypher);
    const code = refuses(cypher);
    if (code) throw new Neo4jError("refused", code, "", "");
  });
  return { lines: await prepare(driver), texts };
}

const TENANT_LABELS = [
  "catalog",
  "schema",
  "table",
  "column",
  "sql",
  "job",
  "atomic_metric",
  "derived_metric",
  "composite_metric",
  "wordroot",
  "modifier",
  "unit",
  "valuedomain",
  "tag",
  "knowledge",
];

test("constraints and indexes have the names of the data model", async () => {
  const { lines, texts } = await asked(() => undefined);
  const names = texts.map((text) => / (\w+) IF NOT EXISTS/.exec(text)?.[1] ?? text);
  expect(names.sort()).toEqual(
    [
      "tenant_id_uk",
      "tenant_code_uk",
      ...TENANT_LABELS.map((label) => `${label}_tenant_id_uk`),
      "knowledge_text",
      "sql_text",
      "knowledge_embedding",
    ].sort(),
  );
  expect(lines).toEqual([]);
});

describe("a server", () => {
  test("that lacks one of them is logged, and gets the others", async () => {
    const { lines, texts } = await asked((cypher) =>
      cypher.includes("FULLTEXT") ? "Neo.ClientError.Statement.SyntaxError" : undefined,
    );
    expect(lines.map(({ level }) => level)).toEqual(["warn", "warn"]);
    expect(texts.at(-1)).toContain("CREATE VECTOR INDEX knowledge_embedding");
  });

  test("that wants a dimension for vectors gets the most frequent one, once there are vectors", async () => {
    const refuses = (cypher: string) =>
      cypher.includes("VECTOR") && !cypher.includes("dimensions")
        ? "Neo.ClientError.General.InvalidArguments"
        : undefined;
    expect((await asked(refuses)).lines).toEqual([]);
    const tenantId = await world.tenant();
    for (const [tag, vector] of Object.entries({ a: [1, 2], b: [1, 2, 3], c: [3, 2, 1] })) {
      const id = await world.node(tenantId, { kind: "TAG", path: [tag] });
      await database.query(
        `insert into lineage.embedding (tenant_id, node_id, model_fingerprint, content_hash, dimension, vector, provider)
         values ($1, $2, 'm', 'h', $3, $4, 'p')`,
        [tenantId, id, vector.length, vector],
      );
    }
    const { lines, texts } = await asked(refuses);
    expect(texts.at(-1)).toContain("`vector.dimensions`: 3,");
    expect(lines).toMatchObject([{ level: "warn", fields: { dimension: 3 } }]);
  });

  test.each([
    "ServiceUnavailable",
    "Neo.ClientError.Security.Unauthorized",
    "Neo.TransientError.General.MemoryPoolOutOfMemoryError",
  ])("that answers %s is asked again later", async (code) => {
    await expect(asked(() => code)).rejects.toThrow("refused");
  });
});

describe.skipIf(noServer !== false)("on a real server", () => {
  test("they are there, and find text and vectors of several dimensions", async () => {
    const graph = await openServerGraph();
    const tenantId = await world.tenant();
    const session = graph.driver.session({});
    const run = (cypher: string) =>
      session.executeWrite(async (tx) => (await tx.run(cypher, { tenantId: BigInt(tenantId) })).records, {
        timeout: 60_000,
      });
    const ids = async (cypher: string) => (await run(cypher)).map((record) => record.get("id"));
    try {
      expect(await prepare(graph.driver)).toEqual([]);
      await run(`CREATE (:Knowledge:SQL {tenantId: $tenantId, id: 'a', content: 'select zebra', tags: ['stripes'], embedding: [1.0, 0.0]}),
        (:Knowledge {tenantId: $tenantId, id: 'b', name: 'okapi', embedding: [0.0, 1.0, 0.0]})`);
      await run("CALL db.awaitIndexes(60)");
      const constraints = (await run("SHOW CONSTRAINTS YIELD name RETURN name")).map((record) => record.get("name"));
      for (const label of TENANT_LABELS) expect(constraints).toContain(`${label}_tenant_id_uk`);
      const text = (index: string, word: string) =>
        ids(
          `CALL db.index.fulltext.queryNodes('${index}', '${word}') YIELD node WHERE node.tenantId = $tenantId RETURN node.id AS id`,
        );
      expect(await text("knowledge_text", "okapi")).toEqual(["b"]);
      expect(await text("knowledge_text", "stripes")).toEqual(["a"]);
      expect(await text("sql_text", "zebra")).toEqual(["a"]);
      const near = (vector: string) =>
        ids(
          `CALL db.index.vector.queryNodes('knowledge_embedding', 50, ${vector}) YIELD node WHERE node.tenantId = $tenantId RETURN node.id AS id`,
        );
      expect(await near("[1.0, 0.1]")).toEqual(["a"]);
      expect(await near("[0.0, 1.0, 0.1]")).toEqual(["b"]);
      const twice = run("CREATE (:Knowledge:Table {tenantId: $tenantId, id: 'a'})");
      await expect(twice).rejects.toThrow("already exists");
    } finally {
      await session.close();
      await graph.close(world.tenants);
    }
  });
});
