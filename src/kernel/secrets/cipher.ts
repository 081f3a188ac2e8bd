/**
 * Encrypts values that a reader of the rows must not see: webhook secrets, source credentials, named secrets.
 * AES-256-GCM under the installation's one key (encryption-key.ts), as text: `v1.<nonce>.<ciphertext and tag>`.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { kernelError, OperatorError } from "../errors.ts";
import { SECRET_KEY_BYTES } from "./encryption-key.ts";

export interface SecretBox {
  /** `context` names the place where the result is stored, such as `webhooks.subscription:42:secret`. */
  seal(plaintext: string, context: string): string;
  /** Needs the context of `seal`: a sealed value that was copied to another row does not open there. */
  open(sealed: string, context: string): string;
  /** A keyed hash, to see whether a value has changed: without the key, guesses of the value cannot be tried on it. */
  digest(plaintext: string, context: string): string;
}

const VERSION = "v1";
const CIPHER = "aes-256-gcm";
/** Nonces are random. At 96 bits, four billion values may be sealed under one key before a repeat becomes a concern. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const SEALED = /^v1\.([\w-]{16})\.([\w-]{22,})$/;

/** Without a key, every call throws: only installations that use secrets need to configure one. */
export function createSecretBox(key: Buffer | undefined): SecretBox {
  if (key && key.length !== SECRET_KEY_BYTES) throw new Error(`a secret key of ${key.length} bytes`);
  // A key of its own, since one key should serve one algorithm.
  const digestKey = key && Buffer.from(hkdfSync("sha256", key, "", `millrace ${VERSION} digest`, SECRET_KEY_BYTES));

  return {
    seal(plaintext, context) {
      // Not from an injected source: a repeated nonce breaks the encryption.
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, needKey(key), nonce, { authTagLength: TAG_BYTES }).setAAD(boundTo(context));
      const body = Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return `${VERSION}.${nonce.toString("base64url")}.${body.toString("base64url")}`;
    },
    open(sealed, context) {
      const present = needKey(key);
      try {
        const [, nonce = "", encoded = ""] = SEALED.exec(sealed) ?? [];
        const body = Buffer.from(encoded, "base64url");
        const tagAt = body.length - TAG_BYTES;
        const decipher = createDecipheriv(CIPHER, present, Buffer.from(nonce, "base64url"), {
          authTagLength: TAG_BYTES,
        })
          .setAAD(boundTo(context))
          .setAuthTag(body.subarray(tagAt));
        return Buffer.concat([decipher.update(body.subarray(0, tagAt)), decipher.final()]).toString("utf8");
      } catch {
        // The same error for every cause: which check failed helps only an attacker.
        throw new OperatorError(
          "A stored secret cannot be opened: it was sealed under another MILLRACE_SECRET_KEY, or its row was altered. " +
            "Start with the key it was sealed under, or store the secret again.",
        );
      }
    },
    digest: (plaintext, context) =>
      createHmac("sha256", needKey(digestKey))
        .update(boundTo(context))
        .update("\0")
        .update(plaintext)
        .digest("base64url"),
  };
}

/** For HTTP routes: a server that cannot encrypt or decrypt answers 503, since the request is not at fault. */
export function orUnavailable<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    throw kernelError("SECRETS_UNAVAILABLE", {}, { reason: error.message });
  }
}

function boundTo(context: string): Buffer {
  return Buffer.from(`millrace ${VERSION} ${context}`);
}

function needKey(key: Buffer | undefined): Buffer {
  if (key) return key;
  throw new OperatorError(
    "Secrets cannot be stored or read without MILLRACE_SECRET_KEY. Make one with `openssl rand -hex 32` and start every " +
      "process on this database with the same one.",
  );
}
