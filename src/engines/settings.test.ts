import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, expectTypeOf, test } from "vitest";
import { loadConfig } from "../kernel/config/index.ts";
import { EnginesSettings } from "./settings.ts";

let cwd: string;
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), "millrace-engines-"));
});
afterEach(() => rm(cwd, { recursive: true }));

async function load(yaml: string) {
  await writeFile(join(cwd, "millrace.yaml"), yaml);
  return loadConfig({ env: {}, flags: {}, cwd, modules: [{ name: "engines", section: EnginesSettings }] }).sections
    .engines;
}

test("allow any name for an engine", async () => {
  const engines = await load(
    `engines:
      warehouse: { kind: postgres, url: "postgres://me:pw@db:5432/dw?sslmode=require" }
      big one: { kind: duckdb, path: /data/big.duckdb, memoryLimit: 2GB, threads: 2 }
      duckdb: { kind: duckdb }
      lakehouse: { kind: trino, url: "https://trino:8443", user: etl, catalog: hive, schema: kpi, password: "\${env.PW}", ca: ca.pem, session: { a: 30m, hive.b: true } }
      reports: { kind: postgres, url: "\${env.REPORTS_URL}" }
    `,
  );
  expect(engines).toEqual({
    warehouse: { kind: "postgres", url: "postgres://me:pw@db:5432/dw?sslmode=require" },
    "big one": { kind: "duckdb", path: "/data/big.duckdb", memoryLimit: "2GB", threads: 2 },
    duckdb: { kind: "duckdb" },
    lakehouse: {
      kind: "trino",
      url: "https://trino:8443",
      user: "etl",
      catalog: "hive",
      schema: "kpi",
      password: "${env.PW}",
      ca: "ca.pem",
      session: { a: "30m", "hive.b": true },
    },
    reports: { kind: "postgres", url: "${env.REPORTS_URL}" },
  });
  expectTypeOf(engines).toEqualTypeOf<EnginesSettings>();
  expect(await load("")).toEqual({});
  expect(await load("engines:\n")).toEqual({});
});

test.each([
  "{ kind: mysql, url: postgres://me:SECRET@db/x }",
  "{ kind: postgres, url: mysql://me:SECRET@db/x }",
  "{ kind: postgres, ulr: postgres://me:SECRET@db/x }",
  "{ kind: postgres, url: postgres://me@db/x, password: SECRET }",
  "{ kind: postgres, url: [SECRET] }",
  "{ url: postgres://me:SECRET@db/x }",
  "{ kind: duckdb, memoryLimit: SECRET }",
  "{ kind: trino, url: https://trino, password: SECRET }",
  "{ kind: trino, url: ftp://trino/SECRET, user: me }",
  "{ kind: trino, url: https://trino, user: me, secret: SECRET }",
  "{ kind: trino, url: https://trino, user: me, session: { a=SECRET: b } }",
  "{ kind: trino, url: https://trino, user: me, session: { a: [SECRET] } }",
  "{ kind: duckdb, threads: 0, path: SECRET }",
  "postgres://me:SECRET@db/x",
  "[SECRET]",
])("that are wrong are reported with their place but not their text: %s", async (yaml) => {
  await expect(load(`engines:\n  warehouse: ${yaml}\n`)).rejects.toThrow(
    /^millrace\.yaml:2:3: `engines\.warehouse` is .*Accepted: .*kind/,
  );
  await expect(load(`engines:\n  warehouse: ${yaml}\n`)).rejects.not.toThrow("SECRET");
});
