/** What protects people who use a browser: the headers of every answer, and the refusal of cross-site calls. */
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { ADMIN_KEY } from "../../../test/millrace.ts";
import { frontPageRoutes, publicSurfaces } from "./surfaces.ts";

const database = useDatabase();
let http: TestHttp;
let acted = 0;

beforeAll(async () => {
  http = await startHttp({
    db: database.db,
    anonymousScopes: ["run:control", "run:read"],
    routes: (server, { metrics }) => {
      const page = { version: "0", roles: [], database: "", startedAt: new Date() };
      publicSurfaces(server, { db: database.db, metrics });
      frontPageRoutes(server, page);
      server.get("/needs-a-key", { config: { scope: "admin" } }, async () => ({}));
      server.get("/read", { config: { scope: "run:read" } }, async () => ({}));
      server.post("/act", { config: { scope: "run:control", bodyOptional: true } }, async () => {
        acted += 1;
        return {};
      });
    },
  });
});
afterAll(() => http.stop());

describe("every answer", () => {
  test.each([
    ["GET", "/healthz"],
    ["GET", "/metrics"],
    ["GET", "/"],
    ["GET", "/openapi.json"],
    ["GET", "/docs"],
    ["GET", "/docs/static/swagger-ui.css"],
    ["GET", "/docs/nowhere"],
    ["GET", "/nowhere"],
    ["DELETE", "/healthz"],
    ["GET", "/needs-a-key"],
    ["GET", "/healthz?unknown=1"],
    ["GET", "/%zz"],
  ])("is neither sniffed nor framed and tells no referrer: %s %s", async (method, path) => {
    const response = await fetch(http.url + path, { method, redirect: "manual" });
    await response.arrayBuffer(); // An answer that is not read keeps its connection, and the server, from closing.
    const { headers } = response;
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("x-frame-options")).toBe("DENY");
    const policy = headers.get("content-security-policy");
    expect(policy).toMatch(/^default-src 'none';/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/script-src[^;]*unsafe/);
  });

  test("to bytes that are no request, too", async () => {
    const socket = connect(http.port, "127.0.0.1");
    socket.end("nonsense\r\n\r\n");
    expect((await text(socket)).toLowerCase()).toContain("\r\nx-content-type-options: nosniff\r\n");
  });
});

describe("a call without a key that changes something", () => {
  const own = () => `http://127.0.0.1:${http.port}`;
  async function post(headers: Record<string, string>): Promise<[number, unknown]> {
    const { status, body } = await http.send("/act", { method: "POST", headers: { authorization: "", ...headers } });
    return [status, body["code"]];
  }
  /** Without the header; `fetch` would send an empty one. */
  async function anonymous(
    headers: Record<string, string>,
    method = "POST",
    path = "/act",
  ): Promise<[number, unknown]> {
    const response = await fetch(http.url + path, { method, headers });
    const body = (await response.json()) as { code?: string };
    return [response.status, body.code];
  }

  test.each<[string, () => Record<string, string>]>([
    ["says that another site makes it", () => ({ "sec-fetch-site": "cross-site" })],
    ["says that another part of the site makes it", () => ({ "sec-fetch-site": "same-site" })],
    ["comes from another origin", () => ({ origin: "http://evil.example" })],
    ["comes from another port", () => ({ origin: "http://127.0.0.1:1" })],
    ["comes from an origin that is hidden", () => ({ origin: "null" })],
    ["comes from its own origin, but cross-site", () => ({ origin: own(), "sec-fetch-site": "cross-site" })],
  ])("is refused if it %s", async (_, headers) => {
    const before = acted;
    expect(await anonymous(headers())).toEqual([403, "CROSS_SITE"]);
    expect(acted).toBe(before);
  });

  test.each<[string, () => Record<string, string>]>([
    ["is not made by a browser", () => ({})],
    ["is made by a page of this server", () => ({ origin: own(), "sec-fetch-site": "same-origin" })],
    ["is made by a page of this server, over plain HTTP", () => ({ origin: own() })],
    ["is typed by a person", () => ({ "sec-fetch-site": "none" })],
  ])("acts if it %s", async (_, headers) => {
    const before = acted;
    expect(await anonymous(headers())).toEqual([200, undefined]);
    expect(acted).toBe(before + 1);
  });

  test.each([
    ["http://console.example", "console.example:80", 200],
    ["https://console.example", "Console.Example:443", 200],
    ["https://console.example", "console.example:80", 403],
    ["http://console.example", "console.example@evil.example", 403],
    ["http://console.example", "console.example:x", 403],
  ])("by a page of %s is answered, for a Host of %s, with %i", async (origin, host, status) => {
    const socket = connect(http.port, "127.0.0.1");
    socket.end(
      `POST /act HTTP/1.1\r\nHost: ${host}\r\nOrigin: ${origin}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    );
    expect(await text(socket)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });

  test("acts from anywhere with a key, which no other site's page knows", async () => {
    const headers = {
      authorization: `Bearer ${ADMIN_KEY}`,
      origin: "http://evil.example",
      "sec-fetch-site": "cross-site",
    };
    expect(await post(headers)).toEqual([200, undefined]);
  });

  test("is not what a read is: its answer cannot be seen from another site anyway", async () => {
    expect(await anonymous({ "sec-fetch-site": "cross-site" }, "GET", "/read")).toEqual([200, undefined]);
  });
});
