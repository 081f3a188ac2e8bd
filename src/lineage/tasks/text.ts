/**
 * The text of an asset that is embedded, and its hash, by which a task is known. An event that does not change the text queues
 * nothing.
 */
import { createHash } from "node:crypto";
import type { Attributes, AttributeValue } from "../graph/facts.ts";
import { type AssetName, type NodeKind, ownName } from "../graph/names.ts";

/** The attributes that are embedded, in the order of the text. Other kinds are not embedded. */
const EMBEDDED_ATTRIBUTES = {
  CATALOG: ["catalogType", "provider", "description"],
  SCHEMA: ["description"],
  TABLE: ["datasetType", "description", "tags"],
  COLUMN: ["description"], // Engines differ in what they call its type, and it does not say what the column is about.
  SQL: ["dialect", "content"],
  METRIC: ["name", "metricType", "unit", "description", "aggregationLogic", "calculationFormula"],
  WORDROOT: ["name", "dataType", "description"],
  MODIFIER: ["name", "modifierType", "description"],
  UNIT: ["name", "symbol", "description"],
  VALUEDOMAIN: ["name", "domainType", "dataType", "description", "items"],
  TAG: ["description"],
} as const satisfies Partial<Record<NodeKind, readonly string[]>>;

export const EMBEDDED_KINDS = Object.keys(EMBEDDED_ATTRIBUTES) as (keyof typeof EMBEDDED_ATTRIBUTES)[];

/** Beyond it models cut off by themselves, or refuse: about 2,000 words, or 8,000 Chinese characters. */
const TEXT_LENGTH_MAX = 8_000;
/** A statement is summarised first, and what it reads may stand at its end. */
const SQL_LENGTH_MAX = 16_000;

export interface AssetText {
  text: string;
  /** The sha256 of the text, in hex. */
  hash: string;
}

/** Undefined for an asset that is not embedded. */
export function textOf(name: AssetName, attributes: Attributes): AssetText | undefined {
  const { kind } = name;
  if (!isEmbedded(kind)) return undefined;
  const values = EMBEDDED_ATTRIBUTES[kind]
    .map((attribute) => wordsOf(attributes[attribute]))
    .filter((words) => words !== "");
  const text = [`${kind.toLowerCase()} ${fullName(name)}`, ...values].join("\n");
  const cut = text.slice(0, kind === "SQL" ? SQL_LENGTH_MAX : TEXT_LENGTH_MAX).toWellFormed();
  return { text: cut, hash: createHash("sha256").update(cut).digest("hex") };
}

/** What goes to the embedding model: the summary first, where there is one, since the end may be cut off. */
export function embeddedText(text: string, summary: string | undefined): string {
  return [...(summary === undefined ? [] : [summary]), text].join("\n").slice(0, TEXT_LENGTH_MAX).toWellFormed();
}

/** With its parents: a column `id` alone says nothing. Nobody searches for the origin of a path. */
function fullName(name: AssetName): string {
  const parts = name.path[0] === "gravitino" || name.path[0] === "external" ? name.path.slice(1) : [ownName(name)];
  return parts.filter((part) => part !== "").join(".");
}

function isEmbedded(kind: NodeKind): kind is keyof typeof EMBEDDED_ATTRIBUTES {
  return kind in EMBEDDED_ATTRIBUTES;
}

function wordsOf(value: AttributeValue | undefined): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return (value as readonly AttributeValue[]).map(wordsOf).join(" ");
  if (typeof value === "object") return Object.values(value).map(wordsOf).join(" ");
  return String(value).trim();
}
