/** Landing in a running Millrace: the worker writes the window, a model that depends on the table runs, and lineage is told. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { startMillrace, type TestMillrace } from "../../../test/millrace.ts";
import { until } from "../../../test/until.ts";
import { makeSource, type TestSource } from "./windows.fixture.ts";

const database = useDatabase();
let directory: string;
let millrace: TestMillrace;
let source: TestSource;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "millrace-landing-"));
  const config = join(directory, "millrace.yaml");
  await writeFile(config, stringify({ lineage: { own: { id: 1, code: "own", name: "Own" } } }));
  millrace = await startMillrace(database, {
    env: {
      MILLRACE_ROLES: "api,scheduler,worker",
      MILLRACE_SECRET_KEY: "0".repeat(64),
      MILLRACE_CONFIG: config,
      MILLRACE_LAKE_DIR: join(directory, "lake"),
    },
  });
  source = await makeSource(database);
});
afterAll(async () => {
  await millrace.app.stop();
  await rm(directory, { recursive: true });
});

async function landed(count: number): Promise<void> {
  await database.query("select pg_notify('millrace_wake', 'test harvest.landing')");
  await until(async () => (await source.landing())["landed"] === count, `landing ${count}`);
}
const values = async () => {
  const { body } = await millrace.api.get<{ items: Json[] }>("/api/v1/kpi/data?opTime=20260801");
  return body.items.map(({ kpiId, value }) => ({ kpiId, value }));
};

test("a model that depends on the table runs when the window lands, and again when it lands with a change", async () => {
  await millrace.api.put("/api/v1/kpi/indicators/KD1", { type: "EXTENDED", name: "Works" });
  const sql = "select 'KD1' as kpi_id, count(*) as value from crossref_works where op_time = $op_time and not _deleted";
  const model = { name: "Works", engine: "duckdb", sql, dependencies: [{ table: "crossref_works" }], kpis: ["KD1"] };
  const defined = await millrace.api.put("/api/v1/kpi/models/WORKS", model);
  expect(defined.status, JSON.stringify(defined.body)).toBeLessThan(300);
  expect((await millrace.api.post("/api/v1/kpi/models/WORKS:publish")).status).toBeLessThan(300);

  await source.harvest([
    { key: "a", title: "A" },
    { key: "b", title: "B" },
  ]);
  await landed(1);
  await until(async () => (await values())[0]?.["value"] === 2, "the value of the first landing");

  await source.harvest([{ key: "b", title: "B", deleted: true }]);
  await landed(2);
  await until(async () => (await values())[0]?.["value"] === 1, "the value of the second landing");

  const nodes = await until(async () => {
    const found = await database.query<{ name: string }>("select * from lineage.node where tenant_id = 1");
    const text = JSON.stringify(found);
    return text.includes("https://api.example.org") && text.includes("crossref_works") ? text : undefined;
  }, "the lineage of the landing");
  expect(nodes).toContain("/v1/works");
});
