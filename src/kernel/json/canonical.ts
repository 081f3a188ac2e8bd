/** The canonical text of a JSON value (RFC 8785), and its sha256, to compare idempotency keys, snapshots and stored bodies. */

import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { isPlainObject } from "./is-plain-object.ts";

/** Deeper than any real document, and too shallow to exhaust the stack. */
const MAX_DEPTH = 256;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The RFC 8785 text of a JSON value. Throws a TypeError for anything that JSON cannot express without loss. */
export function canonicalJson(value: unknown): string {
  assertJson(value, "$", 0);
  return canonicalize(value)!; // Undefined only for values that `assertJson` refuses.
}

/** The sha256 of the canonical text, in hex: the same for equal values, whatever the order of their keys. */
export function fingerprint(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex");
}

/**
 * `canonicalize` drops `undefined`, writes a Map as `{}` and accepts lone surrogates, so different values would get the same
 * fingerprint. Therefore anything that is not plain JSON is refused.
 */
function assertJson(value: unknown, path: string, depth: number): void {
  if (depth > MAX_DEPTH) throw notJson(path, `it is nested deeper than ${MAX_DEPTH} levels, or contains itself`);
  if (value === null || typeof value === "boolean") return;
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw notJson(path, `${value} is not a JSON number`);
  } else if (typeof value === "string") {
    assertWellFormed(value, path);
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) assertJson(item, `${path}[${index}]`, depth + 1);
  } else if (isPlainObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      assertWellFormed(key, path);
      assertJson(item, `${path}.${key}`, depth + 1);
    }
  } else {
    throw notJson(path, `${kindOf(value)} is not a JSON value`);
  }
}

function assertWellFormed(text: string, path: string): void {
  if (LONE_SURROGATE.test(text)) throw notJson(path, "its text contains half of a surrogate pair");
}

function kindOf(value: unknown): string {
  return typeof value === "object" ? (value?.constructor?.name ?? "this object") : typeof value;
}

function notJson(path: string, reason: string): TypeError {
  return new TypeError(`Cannot write ${path} as canonical JSON: ${reason}.`);
}
