import { randomBytes } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OperatorError } from "../errors.ts";
import { createSecretBox } from "./cipher.ts";

const CONTEXT = "webhooks.subscription:42:secret";
const REFUSAL = /^A stored secret cannot be opened: /;

function refusal(work: () => unknown): OperatorError {
  try {
    work();
  } catch (error) {
    if (error instanceof OperatorError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("a secret box", () => {
  const key = randomBytes(32);
  const box = createSecretBox(key);

  test("opens every text that it sealed, also in another process with the same key", () => {
    const elsewhere = createSecretBox(Buffer.from(key));
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (plaintext, context) => {
        expect(elsewhere.open(box.seal(plaintext, context), context)).toBe(plaintext);
      }),
    );
  });

  test("opens what the first version of the format sealed", () => {
    const fixed = createSecretBox(Buffer.alloc(32, 7));
    const sealed = "v1.9h6ru6NtSOeSWL2w.QcwyP2E-HN3gEpB9nX85L4F9YL70E4YK4OsSsQo";
    expect(fixed.open(sealed, CONTEXT)).toBe("correct horse");
  });

  test("seals the same text differently each time, without a trace of the text", () => {
    const sealed = Array.from({ length: 100 }, () => box.seal("correct horse", CONTEXT));
    expect(new Set(sealed).size).toBe(100);
    expect(sealed[0]).toMatch(/^v1\.[\w-]{16}\.[\w-]+$/);
    expect(sealed.some((text) => Buffer.from(text, "base64url").includes("horse"))).toBe(false);
  });

  test("refuses a value that was copied to another row", () => {
    const sealed = box.seal("correct horse", CONTEXT);
    expect(() => box.open(sealed, "webhooks.subscription:43:secret")).toThrow(REFUSAL);
  });

  test("refuses a value with any one character changed", () => {
    const sealed = box.seal("correct horse", CONTEXT);
    // The last character of each part also carries padding bits that do not count, so it may have twins.
    for (const index of [0, 1, 3, 10, 20, 30, sealed.length - 2]) {
      const other = sealed[index] === "A" ? "B" : "A";
      expect(() => box.open(sealed.slice(0, index) + other + sealed.slice(index + 1), CONTEXT)).toThrow(REFUSAL);
    }
  });

  test("answers the same digest for a text in one place, and others for other texts, places and keys", () => {
    const digest = box.digest("correct horse", CONTEXT);
    expect(digest).toMatch(/^[\w-]{43}$/);
    expect(createSecretBox(Buffer.from(key)).digest("correct horse", CONTEXT)).toBe(digest);
    const others = [
      box.digest("correct horsf", CONTEXT),
      box.digest("correct horse", `${CONTEXT}x`),
      box.digest("xcorrect horse", CONTEXT),
      createSecretBox(randomBytes(32)).digest("correct horse", CONTEXT),
    ];
    expect(new Set([digest, ...others]).size).toBe(5);
  });

  test("refuses a wrong key, damage and malformed values with the same sentence", () => {
    const sealed = box.seal("correct horse", CONTEXT);
    const sentences = [
      refusal(() => createSecretBox(randomBytes(32)).open(sealed, CONTEXT)),
      refusal(() => box.open(sealed, "elsewhere")),
      ...["", "v1", "v1..", "correct horse", "v2" + sealed.slice(2), sealed.slice(0, -5), `${sealed}.x`].map((text) =>
        refusal(() => box.open(text, CONTEXT)),
      ),
    ];
    expect(new Set(sentences.map(({ message }) => message)).size).toBe(1);
    expect(sentences.every((error) => error.cause === undefined && !error.message.includes("horse"))).toBe(true);
  });

  test("without a key says which setting is missing", () => {
    const keyless = createSecretBox(undefined);
    expect(refusal(() => keyless.seal("correct horse", CONTEXT)).message).toMatch(
      /without MILLRACE_SECRET_KEY\. Make one/,
    );
    expect(refusal(() => keyless.open(box.seal("x", CONTEXT), CONTEXT)).message).toMatch(/without MILLRACE_SECRET_KEY/);
  });

  test("cannot be created with a key of the wrong length", () => {
    expect(() => createSecretBox(randomBytes(16))).toThrow("a secret key of 16 bytes");
  });
});
