/**
 * The semantic layer: metrics, word roots, modifiers, units, value domains and tags. Gravitino's listener writes their
 * attributes as fields of the schema facet, whose `description` is the value.
 */
import { parseWithin } from "../../../kernel/json/complexity.ts";
import { isRecord } from "../../../kernel/json/is-record.ts";
import type { Attributes } from "../../graph/facts.ts";
import { type AssetName, columnName, tableName } from "../../graph/names.ts";
import { cutAtFirstDot } from "../dataset-names.ts";
import { facet, given, nameText, text } from "../facets.ts";
import { schemaFields } from "../schema-facet.ts";
import { addMetalake, type Subject } from "./subject.ts";

export type TermKind = "WORDROOT" | "MODIFIER" | "UNIT" | "VALUEDOMAIN" | "TAG";

/** What each kind has, beside its description, which the listener calls `comment`. */
const TERM_ATTRIBUTES = {
  WORDROOT: ["code", "name", "dataType"],
  MODIFIER: ["code", "name", "modifierType"],
  UNIT: ["code", "name", "symbol"],
  VALUEDOMAIN: ["code", "name", "domainType", "domainLevel", "items", "dataType"],
  TAG: ["name"],
} as const satisfies Record<TermKind, readonly string[]>;

export function addTerm(kind: TermKind, subject: Subject): void {
  const fields = fieldsOf(subject);
  const name = termName(kind, subject, fields);
  subject.draft.mention(name);
  subject.draft.node(name, {
    ...attributesOf(fields, TERM_ATTRIBUTES[kind]),
    ...(kind === "TAG" && given({ properties: pairsOf(fields.get("properties")) })),
  });
}

/** By the code of a term or the name of a tag, which is also the last part of the dataset's name. */
export function termName(kind: TermKind, subject: Subject, fields = fieldsOf(subject)): AssetName {
  const { name } = subject.dataset;
  if (kind === "TAG") return { kind, path: [nameText(fields.get("name")) ?? name] };
  return { kind, path: [nameText(fields.get("code")) ?? cutAtFirstDot(name)[1]] };
}

export function metricName(subject: Subject, fields = fieldsOf(subject)): AssetName {
  const [schema, last] = cutAtFirstDot(subject.dataset.name);
  return { kind: "METRIC", path: ["gravitino", subject.catalog, schema, nameText(fields.get("code")) ?? last] };
}

/**
 * An atomic metric measures and filters by columns, a derived or composite one comes from other metrics of its schema. The
 * edges that its type does not have are set to none, since a metric may change its type.
 */
export function addMetric(subject: Subject): void {
  const { draft } = subject;
  const fields = fieldsOf(subject);
  const metric = metricName(subject, fields);
  const metricType = fields.get("metricType")?.toUpperCase();
  const parentCodes = (fields.get("parentMetricCodes") ?? "").split(",").flatMap((code) => nameText(code.trim()) ?? []);

  draft.mention(metric);
  draft.node(metric, {
    ...attributesOf(fields, ["code", "name", "unit", "aggregationLogic", "calculationFormula"]),
    ...given({ metricType, parentMetricCodes: fields.has("parentMetricCodes") ? parentCodes : undefined }),
  });
  addMetalake(subject);
  if (metricType === undefined) {
    draft.warn(`${subject.path}/schema`, "has no metricType");
    return;
  }

  const parents = parentCodes.map((code): AssetName => ({ kind: "METRIC", path: [...metric.path.slice(0, -1), code] }));
  const table = referredTable(fields, metric);
  const isAtomic = metricType === "ATOMIC";
  const columns = (field: string) => (isAtomic ? referredColumns(field, fields.get(field), table, subject) : []);
  draft.owns(metric, "MEASURES", columns("measureColumns"));
  draft.owns(metric, "FILTERS_BY", columns("filterColumns"));
  draft.owns(metric, "DERIVED_FROM", metricType === "DERIVED" ? parents : []);
  draft.owns(metric, "COMPUTED_FROM", metricType === "COMPOSITE" ? parents : []);
  if (isAtomic && table) draft.mention(table);
  if (!isAtomic) for (const parent of parents) draft.mention(parent);
}

/** In the metric's own catalog and schema, unless it names others. */
function referredTable(fields: ReadonlyMap<string, string>, metric: AssetName): AssetName | undefined {
  const [, catalog = "", schema = ""] = metric.path;
  const table = nameText(fields.get("refTableName"));
  if (table === undefined) return undefined;
  return tableName(
    "gravitino",
    nameText(fields.get("refCatalogName")) ?? catalog,
    nameText(fields.get("refSchemaName")) ?? schema,
    table,
  );
}

/** `[{"name":"amount"}]`, or a list of names. */
function referredColumns(
  field: string,
  json: string | undefined,
  table: AssetName | undefined,
  { path, draft }: Subject,
): AssetName[] {
  if (json === undefined) return [];
  const listed = parsedList(json);
  if (!listed || (!table && listed.length > 0)) {
    draft.warn(`${path}/schema`, listed ? `names ${field} of no table` : `has ${field} that are no JSON list`);
    return [];
  }
  return listed.flatMap((column) => {
    const name = nameText(isRecord(column) ? column["name"] : column);
    return name === undefined || !table ? [] : [columnName(table, name)];
  });
}

function parsedList(json: string): readonly unknown[] | undefined {
  try {
    const value: unknown = parseWithin(json);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function fieldsOf({ dataset, path, draft }: Subject): ReadonlyMap<string, string> {
  const schema = facet(dataset.facets, "schema");
  const values = new Map<string, string>();
  for (const field of schema ? schemaFields(schema, path, draft) : []) {
    const name = isRecord(field) ? text(field["name"]) : undefined;
    const value = isRecord(field) ? text(field["description"]) : undefined;
    if (name !== undefined && value !== undefined) values.set(name, value);
  }
  return values;
}

function attributesOf(fields: ReadonlyMap<string, string>, names: readonly string[]): Attributes {
  return given({
    ...Object.fromEntries(names.map((name) => [name, fields.get(name)])),
    description: fields.get("comment"),
  });
}

/** `level=high,owner=dpo`. A piece without a sign of equality belongs to the value before it, which has a comma in it. */
function pairsOf(written: string | undefined): Record<string, string> | undefined {
  if (written === undefined) return undefined;
  const pairs: [string, string][] = [];
  for (const piece of written.split(",")) {
    const sign = piece.indexOf("=");
    const last = pairs.at(-1);
    if (sign > 0) pairs.push([piece.slice(0, sign).trim(), piece.slice(sign + 1)]);
    else if (last) last[1] += `,${piece}`;
  }
  return Object.fromEntries(pairs);
}
