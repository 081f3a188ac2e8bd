/** Tokens that a gateway signs: checked by real signatures, on a real server. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp } from "../../../test/http.ts";
import { ADMIN_KEY } from "../../../test/millrace.ts";
import { createGateway, type GatewayDeps } from "./gateway.ts";
import type { GatewaySettings } from "./gateway-settings.ts";

const database = useDatabase();
const ADDRESS = "192.0.2.1";
const NOW = 1_750_000_000;
const SECRET = "a secret of thirty-two bytes, and more";
const clock = { at: NOW * 1000, now: () => clock.at };

interface Pair {
  jwk: JWK;
  sign(claims?: Claims, header?: { kid?: string; alg?: string }): Promise<string>;
}
let [one, two, edwards] = [] as Pair[] as [Pair, Pair, Pair];
/** What is undefined is left out. */
type Claims = { [name in keyof JWTPayload]: JWTPayload[name] | undefined };
const claimsOf = (more: Claims) =>
  ({
    iss: "the-gateway",
    aud: "millrace",
    sub: "spark-7",
    exp: NOW + 60,
    tenant_id: 7,
    source: "COMPUTE_ENGINE",
    ...more,
  }) as JWTPayload;

async function makePair(alg: string, kid: string): Promise<Pair> {
  const { publicKey, privateKey } = await generateKeyPair(alg);
  return {
    jwk: { ...(await exportJWK(publicKey)), kid, alg },
    sign: (claims = {}, header = {}) =>
      new SignJWT(claimsOf(claims)).setProtectedHeader({ alg, kid, ...header }).sign(privateKey),
  };
}

beforeAll(async () => {
  [one, two, edwards] = await Promise.all([
    makePair("ES256", "one"),
    makePair("ES256", "two"),
    makePair("EdDSA", "edwards"),
  ]);
});

const settings = (more: Partial<GatewaySettings> = {}): GatewaySettings => ({
  issuer: "the-gateway",
  audience: "millrace",
  tenantClaim: "tenant_id",
  sourceClaim: "source",
  ...more,
});
const gateway = (
  more: Partial<GatewaySettings> = { jwks: { keys: [one.jwk, edwards.jwk] } },
  deps: Partial<GatewayDeps> = {},
) => createGateway({ settings: settings(more), env: { SECRET, SHORT: "short" }, directory: "/", clock, ...deps });
const verify = (token: string) => gateway().verify(token, ADDRESS);

describe("a token of the gateway", () => {
  test("vouches for a source and a tenant, and lets its caller write lineage only", async () => {
    expect(await verify(await one.sign())).toEqual({
      name: "gateway:spark-7",
      keyId: null,
      scopes: ["lineage:write"],
      tenantId: "7",
      source: "COMPUTE_ENGINE",
      rateLimitPerMinute: null,
      expiresAtMs: expect.any(Number) as number,
    });
    expect(await verify(await edwards.sign({ tenant_id: "12", source: "GRAVITINO" }))).toMatchObject({
      tenantId: "12",
      source: "GRAVITINO",
    });
  });

  test("may leave both out", async () => {
    expect(await verify(await one.sign({ tenant_id: undefined, source: undefined }))).toMatchObject({
      tenantId: null,
      source: null,
    });
  });

  test("may name them by other claims", async () => {
    const named = gateway({ jwks: { keys: [one.jwk] }, tenantClaim: "https://x/tenant", sourceClaim: "kind" });
    const token = await one.sign({ tenant_id: 1, "https://x/tenant": 8, kind: "GRAVITINO" });
    expect(await named.verify(token, ADDRESS)).toMatchObject({ tenantId: "8", source: "GRAVITINO" });
  });

  test.each<[string, Claims, string]>([
    ["has expired", { exp: NOW - 11 }, "This token has expired."],
    ["is for someone else", { aud: "another" }, "This token is not meant for this server, or not valid yet."],
    ["comes from someone else", { iss: "another" }, "This token is not meant for this server, or not valid yet."],
    ["is not valid yet", { nbf: NOW + 60 }, "This token is not meant for this server, or not valid yet."],
    ["never expires", { exp: undefined }, "This token is not meant for this server, or not valid yet."],
    ["names nobody", { sub: undefined }, "This token is not meant for this server, or not valid yet."],
    ["has a tenant that is none", { tenant_id: "acme" }, "This token's claim `tenant_id` is no tenant id."],
    ["has a tenant of half a number", { tenant_id: 7.5 }, "This token's claim `tenant_id` is no tenant id."],
    ["has another source", { source: "spark" }, "This token's claim `source` is neither GRAVITINO nor COMPUTE_ENGINE."],
  ])("that %s is refused", async (_, claims, reason) => {
    await expect(verify(await one.sign(claims))).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message: `${reason} Send \`Authorization: Bearer <key>\`.`,
    });
  });

  test("is checked again after some seconds, and never believed beyond its end", async () => {
    const known = gateway();
    const token = await one.sign({ exp: NOW + 2 });
    await known.verify(token, ADDRESS);
    clock.at += 11_000;
    onTestFinished(() => void (clock.at -= 13_000));
    expect(await known.verify(token, ADDRESS)).toBeDefined(); // Clocks may differ by some seconds.
    clock.at += 2_000;
    await expect(known.verify(token, ADDRESS)).rejects.toThrow("This token has expired.");
  });
});

describe("a token of anyone else", () => {
  const forged = async () => {
    const [header, payload, signature] = (await one.sign()).split(".");
    const changed = Buffer.from(JSON.stringify(claimsOf({ tenant_id: 8 }))).toString("base64url");
    return [header, payload && changed, signature].join(".");
  };
  /** Signed with the public key, as if it were a secret. */
  const confused = () =>
    new SignJWT(claimsOf({}))
      .setProtectedHeader({ alg: "HS256", kid: "one" })
      .sign(Buffer.from(JSON.stringify(one.jwk)));

  test.each<[string, () => Promise<string> | string]>([
    ["is signed by an unknown key", () => two.sign()],
    ["claims a known key", () => two.sign({}, { kid: "one" })],
    ["is changed", forged],
    ["is not signed", () => new UnsecuredJWT(claimsOf({})).encode()],
    ["takes a public key for a secret", confused],
    ["is no token", () => "a.b.c"],
    ["has no signature", async () => `${(await one.sign()).split(".").slice(0, 2).join(".")}.`],
  ])("that %s is refused, without a reason that helps to forge a better one", async (_, make) => {
    await expect(verify(await make())).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message: "This token is not one of the gateway's. Send `Authorization: Bearer <key>`.",
    });
  });

  test("counts as a guess, and after many of them the address has to wait; what the gateway signed counts never", async () => {
    const known = gateway();
    const good = await one.sign();
    await known.verify(good, ADDRESS);
    const expired = await one.sign({ exp: NOW - 100 });
    for (let n = 0; n < 100; n += 1) await expect(known.verify(expired, ADDRESS)).rejects.toThrow("expired");
    for (let n = 0; n < 60; n += 1) await expect(known.verify("a.b.c", ADDRESS)).rejects.toMatchObject({ status: 401 });
    await expect(known.verify("a.b.c", ADDRESS)).rejects.toMatchObject({ code: "RATE_LIMITED" });
    expect(await known.verify(good, ADDRESS)).toBeDefined();
    const another = await one.sign({ sub: "never seen before" });
    expect(await known.verify(another, ADDRESS)).toBeDefined();
    await expect(known.verify("a.b.c", "192.0.2.2")).rejects.toMatchObject({ status: 401 });
  });
});

describe("the keys of the gateway", () => {
  async function serveKeys() {
    const state = { keys: [one.jwk], status: 200, fetched: 0 };
    const server = createServer((_, response) => {
      state.fetched += 1;
      response
        .writeHead(state.status, { "content-type": "application/json" })
        .end(JSON.stringify({ keys: state.keys }));
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const close = () => new Promise<void>((resolve) => void server.close(() => resolve()));
    onTestFinished(close);
    return { state, close, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys` };
  }

  test("are fetched when they are needed, and once for many tokens", async () => {
    const { state, url } = await serveKeys();
    const fetching = gateway({ jwksUrl: url });
    expect(state.fetched).toBe(0);
    for (const n of [1, 2, 3]) await fetching.verify(await one.sign({ tenant_id: n }), ADDRESS);
    expect(state.fetched).toBe(1);
    await expect(fetching.verify(await two.sign(), ADDRESS)).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
  });

  test.each([
    ["does not answer", 0],
    ["answers with an error", 500],
    ["answers with something else", 200],
  ])("that cannot be had, because their address %s, are no reason to refuse a token for good", async (_, status) => {
    const { state, url, close } = await serveKeys();
    const fetching = gateway({ jwksUrl: url });
    if (status === 0) await close();
    state.status = status;
    state.keys = "nonsense" as unknown as JWK[];
    await expect(fetching.verify(await one.sign(), ADDRESS)).rejects.toMatchObject({
      code: "GATEWAY_KEYS_UNAVAILABLE",
      status: 503,
      retryAfterSeconds: 5,
    });
  });

  test("may stand in a file beside the settings", async () => {
    const directory = await mkdtemp(join(tmpdir(), "millrace-jwks-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    await writeFile(join(directory, "keys.json"), JSON.stringify({ keys: [one.jwk] }));
    await writeFile(join(directory, "broken.json"), "{");
    await writeFile(join(directory, "other.json"), '{"keys": 1}');
    const filed = gateway({ jwksFile: "keys.json" }, { directory });
    expect(await filed.verify(await one.sign(), ADDRESS)).toMatchObject({ tenantId: "7" });
    for (const [jwksFile, complaint] of [
      ["none.json", "lineage.gateway.jwksFile cannot be used"],
      ["broken.json", "lineage.gateway.jwksFile cannot be used"],
      ["other.json", "is not a JSON Web Key Set"],
    ] as const) {
      expect(() => gateway({ jwksFile }, { directory })).toThrow(complaint);
    }
  });

  test("may be a secret, and then nothing else counts", async () => {
    const shared = gateway({ secret: "${env.SECRET}" });
    const token = await new SignJWT(claimsOf({})).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from(SECRET));
    expect(await shared.verify(token, ADDRESS)).toMatchObject({ tenantId: "7" });
    await expect(shared.verify(await one.sign(), ADDRESS)).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    await expect(verify(token)).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
  });

  test.each<[string, Partial<GatewaySettings>]>([
    ["lineage.gateway needs exactly one of jwks, jwksFile, jwksUrl and secret.", {}],
    [
      "lineage.gateway needs exactly one of jwks, jwksFile, jwksUrl and secret.",
      { jwksUrl: "http://x", secret: "${env.SECRET}" },
    ],
    ["names the environment variable NONE, which is not set", { secret: "${env.NONE}" }],
    ["lineage.gateway.secret is too short. Use 32 bytes or more.", { secret: "${env.SHORT}" }],
    [
      "lineage.gateway.algorithms: HS256 needs lineage.gateway.secret.",
      { jwksUrl: "http://x", algorithms: ["RS256", "HS256"] },
    ],
    [
      "lineage.gateway.algorithms: RS256 does not go with a secret.",
      { secret: "${env.SECRET}", algorithms: ["RS256"] },
    ],
  ])("are not guessed: %s", (complaint, wrong) => {
    expect(() => gateway(wrong)).toThrow(complaint);
  });
});

describe("on the server", () => {
  const start = async (assertions?: ReturnType<typeof gateway>) => {
    const http = await startHttp({
      db: database.db,
      ...(assertions ? { assertions } : {}),
      routes(server) {
        for (const scope of ["lineage:write", "lineage:read", "admin"] as const) {
          server.get(`/${scope.replace(":", "::")}`, { config: { scope } }, async ({ caller }) => ({ ...caller }));
        }
      },
    });
    onTestFinished(() => http.stop());
    return (path: string, token: string) => http.send(path, { headers: { authorization: `Bearer ${token}` } });
  };

  test("a token stands in for a key, and keys go on working", async () => {
    const call = await start(gateway());
    const token = await one.sign();
    expect(await call("/lineage:write", token)).toMatchObject({
      status: 200,
      body: { name: "gateway:spark-7", tenantId: "7" },
    });
    expect(await call("/lineage:read", token)).toMatchObject({ status: 403, body: { code: "FORBIDDEN" } });
    expect((await call("/admin", token)).status).toBe(403);
    expect((await call("/admin", ADMIN_KEY)).status).toBe(200);
    expect((await call("/lineage:write", `${token}x`)).status).toBe(401);
    expect((await call("/lineage:write", "no-token")).body["error"]).toContain("This key is not known");
  });

  test("a token is a key that nobody knows where no gateway is configured", async () => {
    const call = await start();
    expect((await call("/lineage:write", await one.sign())).body["error"]).toContain("This key is not known");
  });

  test("keys that cannot be fetched are answered as back-pressure", async () => {
    const call = await start(gateway({ jwksUrl: "http://127.0.0.1:9/keys" }));
    const refused = await call("/lineage:write", await one.sign());
    expect(refused).toMatchObject({ status: 503, body: { code: "GATEWAY_KEYS_UNAVAILABLE" } });
    expect(refused.headers.get("retry-after")).toBe("5");
  });
});
