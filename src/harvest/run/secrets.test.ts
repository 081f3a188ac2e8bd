/**
 * A key in the query, a header or the body, which the source repeats in records, tokens, headers and errors, is in no row, no
 * file and no line of the log. What the source sends beside it is in all of them, so the search would find it.
 */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startServer } from "../../../test/server.ts";
import { temporaryFolder } from "../../kernel/embedded-postgres/testing.fixture.ts";
import { endOf, plan } from "../harvest.fixture.ts";
import { type Asked, applyScripted, definitionOf, type Said, startScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const KEY = "s3cret/key+of the=tests-4711";
/** Repeated wherever the key is. */
const CANARY = "canary-4712";

const PLACES = {
  query: { location: "QUERY", keyOf: ({ query }: Asked) => query.get("key") },
  header: { location: "HEADER", keyOf: ({ headers }: Asked) => headers["key"] },
  body: { location: "BODY", keyOf: ({ body }: Asked) => new URLSearchParams(body).get("key") },
} as const;

/** A page whose record, quarantined item, token and headers have the key, then an error that has it. */
function echoing(keyOf: (request: Asked) => unknown) {
  return (request: Asked): Said => {
    const key = String(keyOf(request));
    if (key !== KEY) return { status: 401, body: { error: "no key" } };
    const echo = `${key} ${CANARY}`;
    const headers = { "x-rate-limit-note": encodeURIComponent(echo), "retry-after": "0" };
    if (request.query.get("token") !== null) {
      return {
        status: 400,
        headers,
        body: { error: `the key ${echo} may not do ${request.query.toString()} ${request.body}` },
      };
    }
    const item = { id: "1", updated: "2026-08-01T00:00:00Z", note: echo, [echo]: Buffer.from(key).toString("base64") };
    return { headers, body: { items: [item, { note: `nameless ${echo}` }], next: `token ${echo}` } };
  };
}

/** The tables whose rows have the text, plain or in a form that it takes in JSON, a URL or base64. */
async function tablesWith(text: string): Promise<string[]> {
  const tables = await database.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await database.query<{ row: string }>(`select t::text as row from ${name} t`);
    if (rows.some(({ row }) => hasText(row, text))) found.push(name);
  }
  return found;
}

function hasText(haystack: string, text: string): boolean {
  const forms = [
    text,
    encodeURIComponent(text),
    new URLSearchParams({ "": text }).toString().slice(1),
    JSON.stringify(text).slice(1, -1),
  ];
  return [...forms, Buffer.from(text).toString("base64").replace(/=+$/, "")].some((form) => haystack.includes(form));
}

async function filesWith(folder: string, text: string): Promise<number> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((name) => name.isFile()).map((name) => join(name.parentPath, name.name));
  const bodies = await Promise.all(files.map(async (file) => brotliDecompressSync(await readFile(file)).toString()));
  return bodies.filter((body) => hasText(body, text)).length;
}

test("a key that a source repeats is nowhere", { timeout: 90_000 }, async () => {
  const source = await startScripted();
  onTestFinished(() => source.close());
  const folder = await temporaryFolder();
  const bodies = join(folder, "bodies");
  const config = join(folder, "millrace.yaml");
  await writeFile(config, JSON.stringify({ harvest: { bodies } }));
  const server = await startServer({
    database,
    env: {
      MILLRACE_HARVEST_ALLOW_PRIVATE: source.host,
      MILLRACE_CONFIG: config,
      MILLRACE_SECRET_KEY: "0".repeat(64),
      MILLRACE_LOG_LEVEL: "trace",
      SOURCE_KEY: KEY,
    },
  });

  for (const [name, { location, keyOf }] of Object.entries(PLACES)) {
    source.on(name, echoing(keyOf));
    const query = { from: "${window.from}", to: "${window.to}", token: "${page.token}" };
    const definition = definitionOf(
      name,
      {
        ...(location === "BODY"
          ? { method: "POST", http: { query, form: { size: "${page.size}" } } }
          : { http: { query } }),
        pagination: { type: "TOKEN", tokenClass: "REPEATABLE", nextTokenPath: "$.next", pageSize: 10 },
        response: { totalPath: undefined },
        auth: { type: "API_KEY", location, name: "key", credential: "key", required: true },
      },
      { credentials: { key: { env: "SOURCE_KEY" } } },
    );
    await applyScripted({ api: server.api, server: source }, definition);
    const window = { from: "2026-08-01", to: "2026-08-02" };
    const ended = await endOf(server.api, (await plan(server.api, { source: name, window })).planId);
    expect(ended).toMatchObject({ status: "FAILED", reconciliation: { received: 1, quarantined: 1 } });
    expect(source.asked(name).length).toBeGreaterThanOrEqual(2);
  }

  expect(await tablesWith(CANARY)).toEqual(
    expect.arrayContaining([
      "harvest.ing_plan_slice",
      expect.stringMatching(/^harvest\.ing_task_run_batch_\d{6}$/),
      "harvest.quarantine",
      "harvest.record",
      "harvest.request_failure",
    ]),
  );
  expect(await tablesWith(KEY)).toEqual([]);
  expect(await filesWith(bodies, CANARY)).toBeGreaterThanOrEqual(2);
  expect(await filesWith(bodies, KEY)).toBe(0);
  expect(await server.stop()).toBe(0);
  expect(hasText(server.output(), KEY)).toBe(false);
});
