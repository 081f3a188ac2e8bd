/** Small requests that become large: they are refused quickly on every route, and the process neither stops nor grows. */
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { makeTenant } from "../lineage-process.ts";
import { type Server, startServer } from "../server.ts";
import { operationsOf, pathOf, readDocument } from "./operations.ts";

const database = useDatabase();
const BRACKETS = 8_000_000;
/** 1.1 GB and seconds without the scan. */
const GROWTH_BYTES_MAX = 500 * 1_048_576;
/** Ends a test that hangs; on a busy machine an answer may take seconds. What shows the scan is the growth. */
const ANSWER_MS_MAX = 20_000;

const BOMBS: Record<string, string> = {
  "eight million brackets": "[".repeat(BRACKETS),
  "eight million objects": '{"a":'.repeat(BRACKETS / 5),
  "a list of millions of lists": `[${"[],".repeat(BRACKETS / 3)}[]]`,
  "a list of millions of objects": `[${"{},".repeat(BRACKETS / 3)}{}]`,
  "a million fields": `{${Array.from({ length: 1_000_000 }, (_, n) => `"k${n}":0`).join()}}`,
  "nearly as many fields as are parsed": `{${Array.from({ length: 499_000 }, (_, n) => `"k${n}":0`).join()}}`,
  "millions of numbers": `[${"0,".repeat(BRACKETS / 2)}0]`,
};

/** The most memory that the process has had. */
function peakBytes({ pid }: Server): number {
  const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kibibytes) * 1024;
}

async function send(server: Server, path: string, method: string, body: Buffer, headers: Record<string, string> = {}) {
  const from = performance.now();
  const response = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${server.adminKey}`, "content-type": "application/json", ...headers },
    body: new Uint8Array(body),
  });
  const answer = (await response.json()) as { code: string; error: string };
  return { status: response.status, ...answer, ms: performance.now() - from };
}

const gzip = { "content-encoding": "gzip" };

test("are refused on every route that takes a body, quickly and without growth", async () => {
  const server = await startServer({ database: { url: database.url } });
  await makeTenant(server.api, 7, { state: "NEW" });
  await server.api.post("/api/v1/lineage/tenants/7:sync-start");
  const operations = operationsOf(await readDocument(server.url), { tenantId: "7" }).filter(({ body }) => body);
  expect(operations.length).toBeGreaterThan(40);
  const before = peakBytes(server);
  const zipped = gzipSync(BOMBS["eight million brackets"] ?? "");
  expect(zipped.length).toBeLessThan(20_000);
  for (const operation of operations) {
    const path = pathOf(operation);
    for (const [body, headers] of [
      [zipped, gzip],
      [Buffer.from("[".repeat(1_000_000)), {}],
    ] as const) {
      const { status, ms, error } = await send(server, path, operation.method, body, headers);
      const place = `${operation.method} ${operation.path}: ${error}`;
      expect([400, 404, 409, 413, 415], place).toContain(status);
      expect(ms, place).toBeLessThan(ANSWER_MS_MAX);
    }
  }
  const bombs = Object.entries(BOMBS).map(([name, text]) => [name, gzipSync(text)] as const);
  for (const path of [
    "/api/openlineage",
    "/api/v1/lineage",
    "/api/v1/lineage/batch",
    "/api/v1/lineage/tenants/7/baseline",
  ]) {
    for (const [name, bomb] of bombs) {
      const { status, ms, error } = await send(server, path, "POST", bomb, gzip);
      expect(status, `${path}, ${name}: ${error}`).toBe(400);
      expect(ms, `${path}, ${name}`).toBeLessThan(ANSWER_MS_MAX);
    }
  }
  expect(peakBytes(server) - before).toBeLessThan(GROWTH_BYTES_MAX);
});

test("do not hold up others, however many come at once", async () => {
  const server = await startServer({ database: { url: database.url } });
  const zipped = gzipSync(BOMBS["eight million brackets"] ?? "");
  await send(server, "/api/v1/lineage", "POST", zipped, gzip); // Compiles what the first request compiles.
  const before = peakBytes(server);
  const over = new AbortController();
  const bombs = Promise.all(
    Array.from({ length: 12 }, () => send(server, "/api/v1/lineage", "POST", zipped, gzip)),
  ).finally(() => over.abort());
  let slowestMs = 0;
  while (!over.signal.aborted) {
    const from = performance.now();
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    slowestMs = Math.max(slowestMs, performance.now() - from);
  }
  // Twelve of them have more bytes than one key may have in flight.
  for (const { code } of await bombs) expect(["BODY_TOO_COMPLEX", "TOO_MANY_BYTES"]).toContain(code);
  expect(slowestMs).toBeLessThan(ANSWER_MS_MAX / 2);
  expect(peakBytes(server) - before).toBeLessThan(GROWTH_BYTES_MAX);
});
