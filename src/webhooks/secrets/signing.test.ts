import { randomBytes, webcrypto } from "node:crypto";
import { describe, expect, test } from "vitest";
import { systemIds } from "../../kernel/ids.ts";
import { isSigningKey, makeSigningKey, signatureHeaders } from "./signing.ts";

const message = { id: "msg_1", timestamp: 1_700_000_000, body: '{"é":"\u{1f600}"}' };

/** Another implementation of the specification. */
async function verifies(key: string, signature: string, { id, timestamp, body }: typeof message): Promise<boolean> {
  const bytes = Buffer.from(key.replace("whsec_", ""), "base64");
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const imported = await webcrypto.subtle.importKey("raw", bytes, hmac, false, ["verify"]);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  return webcrypto.subtle.verify("HMAC", imported, Buffer.from(signature.replace("v1,", ""), "base64"), signed);
}

describe("a signature", () => {
  test("is the one of the specification", () => {
    const headers = signatureHeaders(
      { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330, body: '{"test": 2432232314}' },
      ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    );
    expect(headers).toEqual({
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  test("is valid only for its own key, id, time and body", async () => {
    const [key, other] = [makeSigningKey(systemIds), makeSigningKey(systemIds)];
    const signature = String(signatureHeaders(message, [key])["webhook-signature"]);
    expect(await verifies(key, signature, message)).toBe(true);
    expect(await verifies(other, signature, message)).toBe(false);
    for (const changed of [{ id: "msg_2" }, { timestamp: 1 }, { body: "{}" }]) {
      expect(await verifies(key, signature, { ...message, ...changed })).toBe(false);
    }
  });

  test("is made with every key, and there is none without", async () => {
    const keys = [makeSigningKey(systemIds), makeSigningKey(systemIds)];
    const signatures = String(signatureHeaders(message, keys)["webhook-signature"]).split(" ");
    expect(signatures).toHaveLength(2);
    for (const [index, key] of keys.entries()) expect(await verifies(key, signatures[index] ?? "", message)).toBe(true);
    expect(signatureHeaders(message, [])).toEqual({ "webhook-id": "msg_1", "webhook-timestamp": "1700000000" });
  });
});

test("a signing key has 24 to 64 bytes in base64 behind its prefix", () => {
  const of = (bytes: number) => `whsec_${randomBytes(bytes).toString("base64")}`;
  expect(isSigningKey(makeSigningKey(systemIds))).toBe(true);
  expect([24, 64].map(of).every(isSigningKey)).toBe(true);
  expect([of(23), of(65), of(32).slice(6), `${of(32)}!`, "whsec_", ""].some(isSigningKey)).toBe(false);
});
