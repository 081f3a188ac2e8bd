/** The built page of the console over real HTTP: caching, compression, the nonce, and which paths answer it. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { ADMIN_KEY, startMillrace } from "../../../test/millrace.ts";
import { serveConsole } from "./console-files.ts";

const database = useDatabase();
const SCRIPT = `console.log("${"x".repeat(2_000)}");`;
const ICON = "<svg xmlns='http://www.w3.org/2000/svg'/>";
const PAGE = `<!doctype html><meta property="csp-nonce" nonce="__CSP_NONCE__"><style nonce="__CSP_NONCE__"></style>`;
const BROWSER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };
let folder: string;
let http: TestHttp;

async function writeWithCopies(path: string, content: string): Promise<void> {
  await writeFile(path, content);
  await writeFile(`${path}.br`, brotliCompressSync(content));
  await writeFile(`${path}.gz`, gzipSync(content));
}

async function start(directory: string): Promise<TestHttp> {
  return startHttp({
    db: database.db,
    beforeListening: (made) => serveConsole(made, directory),
    routes(routes) {
      routes.get("/api/v1/things", { config: { scope: "run:read" } }, async () => ({}));
      routes.get("/healthz", { config: { scope: "public" } }, async () => ({ status: "alive" }));
    },
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-page-"));
  const page = join(folder, "console");
  await mkdir(join(page, "assets"), { recursive: true });
  await writeFile(join(folder, "secret.txt"), "secret");
  await writeFile(join(page, "index.html"), PAGE);
  await writeWithCopies(join(page, "assets/app-Ab3_x.js"), SCRIPT);
  await writeFile(join(page, "assets/font-9.woff2"), "font");
  await writeWithCopies(join(page, "favicon.svg"), ICON);
  await symlink(join(folder, "secret.txt"), join(page, "link.txt"));
  http = await start(page);
});
afterAll(async () => {
  await http.stop();
  await rm(folder, { recursive: true });
});

/** As it is sent: `fetch` would normalise the path and decode the body. */
async function raw(path: string, { method = "GET", headers = {} }: { method?: string; headers?: object } = {}) {
  const sent = request({ host: "127.0.0.1", port: http.port, path, method, headers: { ...headers } });
  sent.end();
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once("response", resolve).once("error", reject);
  });
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return { status: answer.statusCode, headers: answer.headers, body: Buffer.concat(chunks) };
}

describe("a file with a hash in its name", () => {
  test("is cached for ever, with the right type", async () => {
    const { status, headers, body } = await raw("/assets/app-Ab3_x.js");
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "cache-control": "public, max-age=31536000, immutable",
      "content-type": "text/javascript; charset=utf-8",
      "content-length": String(SCRIPT.length),
      "x-content-type-options": "nosniff",
      vary: "accept-encoding",
    });
    expect(headers["content-encoding"]).toBeUndefined();
    expect(body.toString()).toBe(SCRIPT);
  });

  test("may run as a worker that loads scripts and data of this server", async () => {
    const { headers } = await raw("/assets/app-Ab3_x.js");
    expect(headers["content-security-policy"]).toContain("script-src 'self'; connect-src 'self'");
  });

  test.each([
    ["gzip, deflate, br, zstd", "br"],
    ["BR;q=1.0", "br"],
    ["gzip, br;q=0", "gzip"],
    ["gzip;q=0.5", "gzip"],
    ["*", "br"],
    ["br;q=0.000, *", "gzip"],
    ["identity", undefined],
    ["gzip;q=0", undefined],
    ["brotli", undefined],
    ["", undefined],
  ])("comes compressed as the caller accepts it: %s", async (accepted, encoding) => {
    const { headers, body } = await raw("/assets/app-Ab3_x.js", { headers: { "accept-encoding": accepted } });
    expect(headers["content-encoding"]).toBe(encoding);
    const expected = { br: brotliCompressSync(SCRIPT), gzip: gzipSync(SCRIPT) }[encoding ?? ""] ?? Buffer.from(SCRIPT);
    expect(body.equals(expected)).toBe(true);
    expect(headers["content-length"]).toBe(String(expected.length));
    if (encoding === "gzip") expect(gunzipSync(body).toString()).toBe(SCRIPT);
  });

  test("that is there in one form only comes in that", async () => {
    const { headers, body } = await raw("/assets/font-9.woff2", { headers: { "accept-encoding": "br" } });
    expect(headers).toMatchObject({ "content-type": "font/woff2" });
    expect([headers["content-encoding"], headers.vary, body.toString()]).toEqual([undefined, undefined, "font"]);
  });

  test("of another build is 404, also to a browser, and so are the compressed copies", async () => {
    for (const path of ["/assets/app-old.js", "/assets/app-Ab3_x.js.br", "/assets/", "/assets"]) {
      const { status, body } = await raw(path, { headers: BROWSER });
      expect([status, JSON.parse(body.toString()).code]).toEqual([404, "ROUTE_NOT_FOUND"]);
    }
  });
});

describe("another file", () => {
  test("is revalidated, each of its forms by its own tag", async () => {
    const plain = await raw("/favicon.svg");
    expect(plain.headers).toMatchObject({ "cache-control": "no-cache", "content-type": "image/svg+xml" });
    const etag = String(plain.headers.etag);
    const packed = await raw("/favicon.svg", { headers: { "accept-encoding": "br" } });
    expect(packed.headers.etag).not.toBe(etag);
    const again = await raw("/favicon.svg", { headers: { "if-none-match": etag } });
    expect([again.status, again.body.length]).toEqual([304, 0]);
    expect((await raw("/favicon.svg", { headers: { "if-none-match": '"x"' } })).status).toBe(200);
  });

  test("that is gone since the start is 404", async () => {
    const page = await mkdtemp(join(folder, "gone-"));
    await writeFile(join(page, "index.html"), PAGE);
    await writeFile(join(page, "robots.txt"), "x");
    const other = await start(page);
    onTestFinished(other.stop);
    await rm(join(page, "robots.txt"));
    expect((await fetch(`${other.url}/robots.txt`)).status).toBe(404);
  });
});

describe("the page", () => {
  test.each([
    "/",
    "/index.html",
    "/login",
    "/chains/7/runs/42?tab=grid",
    "/lineage/assets/db.sales.orders",
    "/api-keys",
    "/tracking/orders.csv",
    "//",
    "/search?q=%zz",
    "/search#%zz",
  ])("answers a browser at %s, and is not cached", async (path) => {
    const { status, headers } = await raw(path, { headers: BROWSER });
    expect(status).toBe(200);
    expect(headers).toMatchObject({ "content-type": "text/html; charset=utf-8", "cache-control": "no-store" });
  });

  test("has a new nonce in each reply, the same in its policy and its markup", async () => {
    const nonces = new Set<string>();
    for (let i = 0; i < 3; i += 1) {
      const { headers, body } = await raw("/", { headers: BROWSER });
      const policy = String(headers["content-security-policy"]);
      const nonce = /style-src 'self' 'nonce-([\w-]{22})'/.exec(policy)?.[1] ?? "";
      expect(policy).toBe(
        `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; font-src 'self'; ` +
          "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      );
      expect(body.toString()).toBe(PAGE.replaceAll("__CSP_NONCE__", nonce));
      expect(headers["x-frame-options"]).toBe("DENY");
      nonces.add(nonce);
    }
    expect(nonces.size).toBe(3);
  });

  test("is not what a program gets at an unknown path", async () => {
    for (const headers of [{}, { accept: "*/*" }, { accept: "application/json" }]) {
      const { status, headers: answered } = await raw("/nowhere", { headers });
      expect([status, answered["content-type"]]).toEqual([404, "application/json; charset=utf-8"]);
    }
    expect((await raw("/", { headers: { accept: "*/*" } })).headers["content-type"]).toContain("text/html");
  });

  test.each([
    "/api",
    "/api/v1/nothing",
    "/api/nothing",
    "/API/v1/nothing",
    "/%61pi/v1/nothing",
    "/api%2Fv1%2Fnothing",
    "/api;x/v1/nothing",
    "http://x/api/v1/nothing",
    "/docs/nothing",
    "/metrics/x",
    "/healthz/x",
    "/readyz",
  ])("does not hide that there is no %s", async (path) => {
    const { status, headers } = await raw(path, { headers: BROWSER });
    expect(status).toBe(404);
    expect(headers["content-type"]).toBe("application/json; charset=utf-8");
  });

  test("takes no path from a route, and no other method", async () => {
    expect((await raw("/api/v1/things", { headers: BROWSER })).status).toBe(401);
    expect((await raw("/healthz", { headers: BROWSER })).headers["content-type"]).toContain("application/json");
    for (const path of ["/", "/login", "/favicon.svg"]) {
      const { status, body } = await raw(path, { method: "POST", headers: BROWSER });
      expect([status, JSON.parse(body.toString()).code]).toEqual([404, "ROUTE_NOT_FOUND"]);
    }
  });
});

test("HEAD answers the same headers without a body", async () => {
  for (const path of ["/", "/assets/app-Ab3_x.js", "/favicon.svg"]) {
    const [get, head] = [await raw(path, { headers: BROWSER }), await raw(path, { method: "HEAD", headers: BROWSER })];
    expect(head.status).toBe(200);
    expect(head.body).toHaveLength(0);
    for (const name of ["content-length", "content-type", "cache-control", "etag", "vary"]) {
      expect([name, head.headers[name]]).toEqual([name, get.headers[name]]);
    }
  }
});

test.each([
  "/../secret.txt",
  "/assets/../../secret.txt",
  "/assets/..%2f..%2fsecret.txt",
  "/assets/%2e%2e/%2e%2e/secret.txt",
  "/assets/..\\..\\secret.txt",
  "/assets//../../secret.txt",
  "//secret.txt",
  "/link.txt",
  "/console/../secret.txt",
  "/favicon.svg%00.txt",
])("no path leads out of the folder: %s", async (path) => {
  const { status, body } = await raw(path);
  expect([400, 404]).toContain(status);
  expect(body.toString()).not.toContain("secret\n");
  expect(body.toString()).not.toBe("secret");
  expect((JSON.parse(body.toString()) as Json)["code"]).toMatch(/^(ROUTE_NOT_FOUND|VALIDATION_FAILED)$/);
});

test("requests for the page are counted under one name", async () => {
  await raw("/", { headers: BROWSER });
  await raw("/assets/app-Ab3_x.js");
  expect(await http.metrics.render()).toMatch(/request_seconds_count\{method="GET",route="console",status="200"\} \d+/);
});

describe("a whole process", () => {
  test.each([
    ["with the role api serves the page", "api", (page: string) => page, "csp-nonce"],
    ["without the role api serves the front page", "worker", (page: string) => page, "Millrace is running"],
    [
      "without a built page says how to build it",
      "api",
      (page: string) => join(page, "nowhere"),
      "<code>npm run build</code>",
    ],
    [
      "whose build has no index.html says so, too",
      "api",
      (page: string) => join(page, "assets"),
      "<code>npm run build</code>",
    ],
  ])("%s", async (_, roles, directory, expected) => {
    const consoleDir = directory(join(folder, "console"));
    const millrace = await startMillrace(database, { env: { MILLRACE_ROLES: roles }, consoleDir });
    onTestFinished(() => millrace.app.stop());
    for (const path of ["/", "/login"]) {
      const answer = await fetch(millrace.url + path, { headers: BROWSER });
      expect(answer.status).toBe(200);
      const html = await answer.text();
      expect(html).toContain(expected);
      expect(html.includes("npm run build")).toBe(expected.includes("npm run build"));
    }
    expect((await fetch(`${millrace.url}/docs`)).status).toBe(200);
    expect((await fetch(`${millrace.url}/metrics`)).status).toBe(200);
    const named = { headers: { authorization: `Bearer ${ADMIN_KEY}`, ...BROWSER } };
    expect((await fetch(`${millrace.url}/api/v1/nowhere`, named)).status).toBe(roles === "worker" ? 421 : 404);
  });
});
