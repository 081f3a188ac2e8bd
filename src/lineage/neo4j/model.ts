/** The mapping of assets to Neo4j: the labels of a node and its properties. */
import type { Attributes, AttributeValue } from "../graph/facts.ts";
import type { NodeKind } from "../graph/names.ts";
import type { EdgeKind, EdgeState, NodeState } from "./store/projection.ts";

const METRIC_LABELS = { ATOMIC: "AtomicMetric", DERIVED: "DerivedMetric", COMPOSITE: "CompositeMetric" } as const;
/** All of them have the label `Knowledge` as well. A metric has the label of its type. */
const LABELS = {
  CATALOG: "Catalog",
  SCHEMA: "Schema",
  TABLE: "Table",
  COLUMN: "Column",
  SQL: "SQL",
  // The data model that the labels come from has none for a job without a statement, yet its lineage is known.
  JOB: "Job",
  WORDROOT: "WordRoot",
  MODIFIER: "Modifier",
  UNIT: "Unit",
  VALUEDOMAIN: "ValueDomain",
  TAG: "Tag",
} as const satisfies Record<Exclude<NodeKind, "METRIC">, string>;

export type Label = (typeof LABELS)[keyof typeof LABELS] | (typeof METRIC_LABELS)[keyof typeof METRIC_LABELS];
export const metricLabels: readonly Label[] = Object.values(METRIC_LABELS);
export const labels: readonly Label[] = [...Object.values(LABELS), ...metricLabels];

export function labelOf({ kind, attributes }: Pick<NodeState, "kind" | "attributes">): Label {
  if (kind !== "METRIC") return LABELS[kind];
  // A metric of which only the code is known was named as what another one derives from, and that is an atomic one.
  return METRIC_LABELS[attributes["metricType"] as keyof typeof METRIC_LABELS] ?? METRIC_LABELS.ATOMIC;
}

/** What a tenant owns directly. The rest it owns through the catalog that it lies in. */
const OWNED: readonly Label[] = [
  LABELS.CATALOG,
  LABELS.SQL,
  LABELS.JOB,
  LABELS.TAG,
  ...metricLabels,
  LABELS.WORDROOT,
  LABELS.MODIFIER,
  LABELS.UNIT,
  LABELS.VALUEDOMAIN,
];
export function ownershipOf(label: Label): string | undefined {
  if (!OWNED.includes(label)) return undefined;
  return metricLabels.includes(label) ? "OWNS_METRIC" : `OWNS_${label.toUpperCase()}`;
}

/** By the kind of the child; a table without a schema lies in its catalog. */
export const HIERARCHY = ["HAS_SCHEMA", "HAS_TABLE", "HAS_COLUMN", "HAS_METRIC"] as const;
export type Hierarchy = (typeof HIERARCHY)[number];
export const hierarchyOf = (kind: NodeKind): Hierarchy | undefined => HIERARCHY.find((type) => type === `HAS_${kind}`);

type Property = string | number | bigint | boolean | readonly string[] | readonly number[];
export interface NodeRow {
  id: string;
  properties: Record<string, Property>;
  /** ISO 8601, which the statement turns into points in time. */
  times: Record<"createdAt" | "updatedAt" | "embeddingUpdatedAt" | "summaryGeneratedAt", string | null>;
}

/**
 * The tenant's id is an integer, as the data model has it: a query written by that model, `{tenantId: 7}`, would find nothing
 * among strings, and say so to nobody. As a bigint it reaches Neo4j whole; a JS number would become a float.
 */
export const tenantKey = (tenantId: string): bigint => BigInt(tenantId);

export function nodeRowOf(tenantId: string, state: NodeState): NodeRow {
  const { id, kind, path, attributes, summary, summary_tags, provider, vector, executions } = state;
  const lastName = path.at(-1) ?? "";
  const hasCode =
    kind === "METRIC" || kind === "WORDROOT" || kind === "MODIFIER" || kind === "UNIT" || kind === "VALUEDOMAIN";
  return {
    id,
    properties: {
      // A statement has no name of its own: its path ends with a hash.
      ...(kind === "SQL" ? {} : { name: lastName }),
      ...(hasCode ? { code: lastName } : {}),
      ...propertiesOf(attributes),
      ...(summary === null ? {} : { summary, tags: summary_tags ?? [] }),
      ...(vector === null ? {} : { embedding: vector, embeddingProvider: provider ?? "" }),
      ...(executions === null ? {} : { executionCount: BigInt(executions) }),
      id,
      tenantId: tenantKey(tenantId),
    },
    times: {
      createdAt: state.created_at.toISOString(),
      updatedAt: state.updated_at.toISOString(),
      embeddingUpdatedAt: state.embedded_at?.toISOString() ?? null,
      summaryGeneratedAt: state.generated_at?.toISOString() ?? null,
    },
  };
}

function propertiesOf(attributes: Attributes): Record<string, Property> {
  const properties: Record<string, Property> = {};
  for (const [name, value] of Object.entries(attributes)) {
    const property = propertyOf(value);
    if (property !== undefined) properties[name] = property;
  }
  return properties;
}

/** A property is a scalar or a list of one kind of them. What is neither becomes JSON, in which full-text search finds its words. */
function propertyOf(value: AttributeValue): Property | undefined {
  if (value === null) return undefined;
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value !== "object") return value;
  if (!isList(value)) return JSON.stringify(value);
  // Without elements it is not known whether it is a list of strings, such as tags, or of documents.
  if (value.length === 0) return undefined;
  return value.every((element) => typeof element === "string") ? value : JSON.stringify(value);
}

/** `Array.isArray` does not narrow lists that are read-only. */
const isList = (value: object): value is readonly AttributeValue[] => Array.isArray(value);

export const edgeKinds: readonly EdgeKind[] = [
  "INPUT_OF",
  "OUTPUT_TO",
  "DERIVES_FROM",
  "MEASURES",
  "FILTERS_BY",
  "DERIVED_FROM",
  "COMPUTED_FROM",
  "HAS_VALUE_DOMAIN",
  "HAS_TAG",
];
export interface EdgeRow {
  src: string;
  dst: string;
  transformations: readonly string[] | null;
}
export const edgeRowOf = ({ src, dst, transformations }: EdgeState): EdgeRow => ({
  src,
  dst,
  transformations: transformations.length > 0 ? transformations : null,
});
