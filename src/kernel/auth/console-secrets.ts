/**
 * The secrets of the web console: tokens of sessions and codes of links. A secret belongs to a key, which its first letter
 * tells: `k` to a stored one, `e` to the one of the environment. The hash of the latter depends on that key, so that changing
 * or removing the setting ends what was made with it, and the setting itself is stored nowhere, not even as a hash.
 */
import { createHmac } from "node:crypto";
import { systemIds } from "../ids.ts";
import { hashOf } from "./hash-lookup.ts";
import type { Caller } from "./scopes.ts";

export interface ConsoleSecrets {
  /** For a caller with a key. */
  create(caller: Caller): NewSecret;
  /** Undefined for a text that no secret can be. */
  hashOf(secret: string): Buffer | undefined;
}

interface NewSecret {
  secret: string;
  hash: Buffer;
}

/** Neither callers with a token nor anonymous ones have a key to bind a secret to. */
export function hasKey({ keyId, isEnvironmentAdmin }: Caller): boolean {
  return keyId !== null || isEnvironmentAdmin === true;
}

const SECRET_BYTES = 32;
const SHAPE = /^[ke][\w-]{43}$/;

export function createConsoleSecrets({ adminKey }: { adminKey: string | undefined }): ConsoleSecrets {
  function hashOfSecret(secret: string): Buffer | undefined {
    if (!SHAPE.test(secret)) return undefined;
    if (secret.startsWith("k")) return hashOf(secret);
    return adminKey === undefined ? undefined : createHmac("sha256", adminKey).update(secret).digest();
  }

  return {
    hashOf: hashOfSecret,
    create(caller) {
      const secret = (caller.isEnvironmentAdmin ? "e" : "k") + systemIds.token(SECRET_BYTES);
      const hash = hashOfSecret(secret);
      // Without a key it would be found as one of the environment's admin.
      if (!hash || !hasKey(caller)) throw new Error("a caller without a key has no sessions");
      return { secret, hash };
    },
  };
}
