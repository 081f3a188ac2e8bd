/**
 * Signatures by the Standard Webhooks specification: HMAC-SHA256 over `id.timestamp.body`, in base64 after `v1,`. Several
 * keys give several signatures, of which one must match: that is how keys are rotated.
 */
import { createHmac } from "node:crypto";
import type { Ids } from "../../kernel/ids.ts";

const PREFIX = "whsec_";
const KEY_BYTES = 32;
const SIGNING_KEY = /^whsec_(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** The bounds of the specification. */
const [KEY_BYTES_MIN, KEY_BYTES_MAX] = [24, 64];

export function makeSigningKey(ids: Ids): string {
  return PREFIX + Buffer.from(ids.token(KEY_BYTES), "base64url").toString("base64");
}

export function isSigningKey(text: string): boolean {
  const { length } = bytesOf(text);
  return SIGNING_KEY.test(text) && length >= KEY_BYTES_MIN && length <= KEY_BYTES_MAX;
}

export interface Signed {
  id: string;
  /** Seconds since the epoch. */
  timestamp: number;
  body: string;
}

export function signatureHeaders({ id, timestamp, body }: Signed, keys: readonly string[]): Record<string, string> {
  const signatures = keys.map(
    (key) =>
      `v1,${createHmac("sha256", bytesOf(key)).update(`${id}.${timestamp}.`).update(body, "utf8").digest("base64")}`,
  );
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    ...(signatures.length > 0 ? { "webhook-signature": signatures.join(" ") } : {}),
  };
}

function bytesOf(key: string): Buffer {
  return Buffer.from(key.slice(PREFIX.length), "base64");
}
