/** Migrations that change what is stored of the graph, on rows as older versions have left them. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { dataset, runEvent } from "../events.fixture.ts";
import { sqlHash } from "../extract/sql-text.ts";
import { migrationSql, testLineage } from "../lineage.fixture.ts";
import { BUILTIN, useTasks } from "../tasks/tasks.fixture.ts";
import { textOf } from "../tasks/text.ts";
import { createGraph } from "./graph.fixture.ts";
import { columnName, keyOf, tableName } from "./names.ts";

const database = useDatabase();
const lineage = testLineage(database);
const tasks = useTasks(database);

async function upgrade(name: string): Promise<void> {
  await database.db.exclusive((client) => client.query(`begin; ${migrationSql(name)}; commit`));
}

test("columns whose text held their type are not embedded again, and those that wait are embedded once", async () => {
  const process = tasks.open();
  const tenant = await tasks.tenant("1", BUILTIN);
  const table = tableName("external", "s3://w", "", "a.b");
  const made = async (column: string, attributes: { dataType: string; description?: string }) => {
    const asset = await tasks.asset("1", columnName(table, column), attributes);
    const former = [`column s3://w.a.b.${column}`, attributes.dataType, attributes.description ?? []].flat().join("\n");
    return { asset, former: createHash("sha256").update(former).digest("hex") };
  };
  const done = [
    await made("id", { dataType: "string", description: " 订单 " }),
    await made("amount", { dataType: "decimal(10,2)" }),
  ];
  done[0]!.former = createHash("sha256").update("column s3://w.a.b.id\nstring\n订单").digest("hex");
  const waiting = await made("day", { dataType: "date", description: "the day" });
  for (const { asset, former } of done)
    await database.query(
      `insert into lineage.embedding (tenant_id, node_id, model_fingerprint, content_hash, dimension, vector, provider)
       values (1, $1, 'builtin:hash-v1:16', $2, 1, '{1}', 'builtin')`,
      [asset.id, former],
    );
  await database.query(
    `insert into lineage.ol_async_task (task_type, tenant_id, tenant_code, resource_type, resource_id, content_hash, model_fingerprint)
     values ('EMBEDDING', 1, 'tenant-1', 'COLUMN', $1, $2, 'builtin:hash-v1:16')`,
    [waiting.asset.id, waiting.former],
  );
  await upgrade("000028_lineage_column_types");
  const assets = [...done, waiting].map(({ asset }) => asset);
  expect(await database.db.tx((tx) => process.enqueue(tx, tenant, assets)), "what is to be embedded").toBe(0);
  await process.worker.runOnce();
  await tasks.ended();
  const rows = await database.query<{ node_id: string; content_hash: string; embedded: boolean }>(
    "select node_id::text, content_hash, dimension > 1 as embedded from lineage.embedding order by node_id",
  );
  expect(rows).toEqual(
    assets.map(({ id, name, attributes }) => ({
      node_id: id,
      content_hash: textOf(name, attributes)?.hash,
      embedded: id === waiting.asset.id,
    })),
  );
});

test("queries of Trino that run one statement become the asset that its next query belongs to", async () => {
  const graph = await createGraph(database, "77");
  const [sql, TRINO] = ["insert into b select id from a where day = '2026-01-01'", "trino://c:8080"];
  const hash = sqlHash(sql);
  const names = ["20260101_080000_00017_x7k2p", "20260102_080000_00018_x7k2p", "20260103_080000_00019_x7k2p"];
  const [a, b] = ["hive.dw.a", "hive.dw.b"].map((name) =>
    tableName("external", TRINO, name.slice(0, 7), name.slice(8)),
  );
  const [from, to] = [await graph.asset(a!), await graph.asset(b!)];
  const ids: string[] = [];
  for (const [index, jobName] of names.entries()) {
    const name = { kind: "SQL", path: [TRINO, jobName, hash] } as const;
    const id = await graph.asset(name, { content: sql, jobName, jobNamespace: TRINO });
    ids.push(id);
    await graph.edge(from, "INPUT_OF", id);
    await graph.edge(id, "OUTPUT_TO", to);
    await graph.event({ time: "2026-03-01T10:00:00Z", names: [name] });
    await database.query(
      `with ran as (insert into lineage.execution values (77, $1, gen_random_uuid()))
       insert into lineage.execution_count values (77, $1, 1, $2)`,
      [id, index],
    );
  }
  const other = await graph.sql("daily_20260101", "select 1");
  await upgrade("000029_lineage_trino_queries");

  const merged = { kind: "SQL", path: [TRINO, `query-${hash.slice(0, 8)}`, hash] } as const;
  const nodes = await database.query(
    "select id::text, key, name from lineage.node where tenant_id = 77 and kind = 'SQL' order by id",
  );
  expect(nodes).toEqual([
    { id: ids[0], key: keyOf(merged), name: merged.path[1] },
    expect.objectContaining({ id: other, name: "daily_20260101" }),
  ]);
  expect((await lineage.graph("77")).executions).toEqual({ [merged.path.join("/")]: 3 });
  expect(await database.query("select 1 from lineage.execution where node_id = $1", [ids[0]])).toHaveLength(3);
  expect(await database.query("select 1 from lineage.mention where key = $1", [keyOf(merged)])).toHaveLength(3);
  const edges = () =>
    database.query("select src::text, kind, dst::text from lineage.edge where tenant_id = 77 order by kind");
  const expected = [
    { src: from, kind: "INPUT_OF", dst: ids[0] },
    { src: ids[0], kind: "OUTPUT_TO", dst: to },
  ];
  expect(await edges()).toEqual(expected);

  const next = runEvent({
    jobNamespace: TRINO,
    jobName: "20260301_080000_00001_zzzzz",
    jobFacets: { sql: { query: sql.replace("01-01", "03-01") } },
    inputs: [dataset(TRINO, "hive.dw.a")],
    outputs: [dataset(TRINO, "hive.dw.b")],
  });
  await lineage.send("77", next, { source: "COMPUTE_ENGINE" });
  expect(await edges()).toEqual(expected);
  expect((await lineage.graph("77")).executions).toEqual({ [merged.path.join("/")]: 4 });
});
