/**
 * Reads values of facets. A facet may hold anything, so a value of the wrong type is left out, and texts are made storable for
 * Postgres.
 */

import { storableText } from "../../kernel/data/storable.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import type { AttributeValue } from "../graph/facts.ts";
import { type Facets, NAME_LENGTH_MAX } from "../ingest/event.ts";

/** Enough for the longest description or the text of a view; what is longer is cut. */
const TEXT_LENGTH_MAX = 100_000;
const KEY_LENGTH_MAX = 1_000;
const DEPTH_MAX = 16;

/** The facet, unless it is absent, not an object, or marked as `_deleted`. */
export function facet(facets: Facets, name: string): Facets | undefined {
  const value = facets[name];
  return isRecord(value) && value["_deleted"] !== true ? value : undefined;
}

export function isDeleted(facets: Facets, name: string): boolean {
  const value = facets[name];
  return isRecord(value) && value["_deleted"] === true;
}

/** Text that says something, or nothing. */
export function text(value: unknown, lengthMax = TEXT_LENGTH_MAX): string | undefined {
  return typeof value === "string" && value !== "" ? storableText(value, lengthMax) : undefined;
}

/** Text that can be part of an asset's name, or nothing. */
export function nameText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" && value.length <= NAME_LENGTH_MAX
    ? storableText(value, NAME_LENGTH_MAX)
    : undefined;
}

export function flag(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** Any value that says something, or nothing. */
export function anyValue(value: unknown): AttributeValue | undefined {
  return value === undefined || value === null || value === "" ? undefined : (attributeValue(value) ?? undefined);
}

/** Those of the texts and flags that are there, as attributes. */
export function given<Name extends string>(
  values: Record<Name, AttributeValue | undefined>,
): Record<string, AttributeValue> {
  const attributes: Record<string, AttributeValue> = {};
  for (const name in values) {
    const value = values[name];
    if (value !== undefined) attributes[name] = value;
  }
  return attributes;
}

/**
 * Any JSON value as one that Postgres takes. What lies deeper than any list of properties does is left out, and so is a
 * number like `1e999`, which is JSON and yet infinite once it is read.
 */
export function attributeValue(value: unknown, depth = DEPTH_MAX): AttributeValue {
  if (typeof value === "string") return storableText(value, TEXT_LENGTH_MAX);
  if (typeof value === "boolean" || Number.isFinite(value)) return value as boolean | number;
  if (typeof value !== "object" || value === null || depth === 0) return null;
  if (Array.isArray(value)) return value.map((item) => attributeValue(item, depth - 1));
  const entries = Object.entries(value).map(
    ([key, item]) => [storableText(key, KEY_LENGTH_MAX), attributeValue(item, depth - 1)] as const,
  );
  return Object.fromEntries(entries);
}
