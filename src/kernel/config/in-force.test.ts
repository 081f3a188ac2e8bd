/** The settings in force: their values, where they come from, and that no secret is among them. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CATALOGUE, MODULES } from "../../modules.ts";
import { type Loaded, loadModules } from "../module.ts";
import { loadConfig } from "./load.ts";

const SECRET = "correct-horse-battery-staple-correct-horse";
let cwd: string;
let modules: readonly Loaded[];
beforeAll(async () => {
  modules = await loadModules(MODULES);
});
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), "millrace-in-force-"));
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

interface Given {
  env?: Record<string, string>;
  flags?: Record<string, string>;
  yaml?: string;
}
async function inForce({ env = {}, flags = {}, yaml }: Given = {}) {
  if (yaml !== undefined) await writeFile(join(cwd, "millrace.yaml"), yaml);
  return loadConfig({ env, flags, cwd, modules }).inForce;
}
async function setting(name: string, given: Given = {}) {
  return (await inForce(given)).find((one) => one.name === name);
}

describe("a setting in force", () => {
  test("comes from the default, the environment, a flag, or is unset", async () => {
    const name = "MILLRACE_PORT";
    const env = { MILLRACE_PORT: "8000" };
    expect(await setting(name)).toMatchObject({ value: "7400", origin: "default", description: expect.any(String) });
    expect(await setting(name, { env })).toMatchObject({ value: "8000", origin: "environment", from: name });
    expect(await setting(name, { env, flags: { port: "9000" } })).toMatchObject({
      value: "9000",
      origin: "flag",
      from: "--port",
    });
    expect(await setting(name, { env: { MILLRACE_PORT: "" } })).toMatchObject({ value: "7400", origin: "default" });
    expect(await setting("MILLRACE_DATA_DIR")).toEqual(expect.objectContaining({ origin: "unset", isSecret: false }));
    expect(await setting("MILLRACE_DATA_DIR")).not.toHaveProperty("value");
  });

  test("comes from the file with its path and line, beside others that are defaults or unset", async () => {
    const yaml =
      "tracking:\n  stageTimeoutSeconds:\n    shard-worker: 600\narrivals:\n  files: [{ pattern: 'a', table: T, opTime: $1 }]\n";
    const at = (place: string) => ({ origin: "file", from: `${join(cwd, "millrace.yaml")}:${place}` });
    expect(await setting("tracking.stageTimeoutSeconds.shard-worker", { yaml })).toMatchObject({
      value: "600",
      ...at("3:5"),
    });
    expect(await setting("tracking.stageTimeoutSeconds.mysql-sender", { yaml })).toMatchObject({ origin: "unset" });
    expect(await setting("tracking.lostLimit", { yaml })).toMatchObject({ value: "10", origin: "default" });
    expect(await setting("arrivals.files.0.table", { yaml })).toMatchObject({ value: "T", ...at("5:27") });
    expect(await setting("chains.nodeTypes", { yaml })).toMatchObject({ value: "[]", origin: "default" });
  });

  test("is every setting of the kernel and of the modules", async () => {
    const names = (await inForce()).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(CATALOGUE.settings.server.map(({ env }) => env)));
    for (const { name } of modules)
      expect(
        names.some((one) => one === name || one.startsWith(`${name}.`)),
        name,
      ).toBe(true);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("a secret", () => {
  test("is never in them, only that it is set and where", async () => {
    const settings = await inForce({
      env: {
        DATABASE_URL: `postgres://me:${SECRET}@db/x`,
        MILLRACE_ADMIN_KEY: SECRET,
        MILLRACE_SECRET_KEY: Buffer.from(SECRET.slice(0, 32)).toString("base64"),
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://me:${SECRET}@collector`,
      },
      yaml: `
engines:
  a: { kind: postgres, url: "postgres://me:${SECRET}@db/x" }
  b: { kind: trino, url: "https://trino.example", user: me, password: ${SECRET} }
  c: { kind: trino, url: "https://trino.example", user: me, token: ${SECRET} }
  d: { kind: postgres, url: "\${env.PG_URL}" }
webhooks:
  alerts: [{ url: "https://hooks.example/${SECRET}", secret: "Header,X,${SECRET}", signingKey: whsec_${SECRET} }]
lineage:
  neo4j: { url: "bolt://me:${SECRET}@neo", user: me, password: ${SECRET} }
  gateway: { issuer: i, audience: a, jwks: { keys: [{ kty: oct, k: ${SECRET} }] } }
`,
    });
    const text = JSON.stringify(settings);
    expect(text).not.toContain("horse");
    expect(text).not.toContain(Buffer.from(SECRET.slice(0, 32)).toString("base64"));
    const of = (name: string) => settings.find((one) => one.name === name);
    expect(of("engines.a.url")).toMatchObject({ isSecret: true, origin: "file" });
    expect(of("engines.a.url")).not.toHaveProperty("value");
    // The name of a variable is no secret.
    expect(of("engines.d.url")).toMatchObject({ isSecret: true, value: "${env.PG_URL}" });
    expect(of("engines.b.url")).toMatchObject({ isSecret: false, value: "https://trino.example" });
    expect(of("lineage.neo4j.url")).toMatchObject({ value: "bolt://...@neo" });
    expect(of("MILLRACE_ADMIN_KEY")).toMatchObject({ isSecret: true, origin: "environment" });
  });

  /** Looks like one by its name, but is none. */
  const KNOWN = ["engines.*.url of trino", "lineage.gateway.jwksUrl", "lineage.neo4j.url", "lineage.tasks.credentials"];

  test("is marked as such in every schema, so that a new one cannot be forgotten", () => {
    const unmarked = modules.flatMap(({ name, section }) => suspects(section, name));
    expect(unmarked.toSorted()).toEqual(KNOWN);
  });
});

interface Schema {
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  const?: string;
  secret?: boolean;
}

/** Settings whose names sound like secrets or addresses and that are not marked. */
function suspects(schema: Schema, path: string): string[] {
  if (schema.secret) return [];
  const kind = schema.properties?.["kind"]?.const ?? "";
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, part]) =>
      /secret|password|token|key|url|credential/i.test(name) && !part.secret
        ? [`${path}.${name}${kind && ` of ${kind}`}`]
        : suspects(part, `${path}.${name}`),
    ),
    ...Object.values(schema.patternProperties ?? {}).flatMap((part) => suspects(part, `${path}.*`)),
    ...(schema.items ? suspects(schema.items, path) : []),
    ...(schema.anyOf ?? []).flatMap((part) => suspects(part, path)),
  ];
}
