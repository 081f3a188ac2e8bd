/** The columns of a table from its schema facet. Nested fields stay with their column, as its attribute `fields`. */
import { isRecord } from "../../kernel/json/is-record.ts";
import { type Attributes, type AttributeValue, RANK, type Rank } from "../graph/facts.ts";
import { type AssetName, columnName } from "../graph/names.ts";
import type { Facets } from "../ingest/event.ts";
import type { Draft } from "./draft.ts";
import { facet, given, nameText, text } from "./facets.ts";

const FIELDS_MAX = 10_000;
const NESTING_MAX = 16;

/** By name, in the order of the facet; positions are counted from one where the facet has none. */
export function schemaColumns(facets: Facets, path: string, draft: Draft): Map<string, Attributes> {
  const columns = new Map<string, Attributes>();
  const schema = facet(facets, "schema");
  if (!schema) return columns;
  const fields = schemaFields(schema, path, draft);
  for (const [index, field] of fields.entries()) {
    const name = isRecord(field) ? nameText(field["name"]) : undefined;
    if (name === undefined) {
      draft.warn(`${path}/schema/fields/${index}`, "has no name");
      continue;
    }
    columns.set(name, columnAttributes(field as Facets, index));
  }
  return columns;
}

export function addColumns(table: AssetName, columns: ReadonlyMap<string, Attributes>, rank: Rank, draft: Draft): void {
  const more = rank === RANK.reader ? undefined : { rank };
  for (const [name, attributes] of columns) draft.node(columnName(table, name), attributes, more);
}

/** The list of fields, or an empty one and a warning. */
export function schemaFields(schema: Facets, path: string, draft: Draft): readonly unknown[] {
  const { fields } = schema;
  if (!Array.isArray(fields)) {
    if (fields !== undefined && fields !== null) draft.warn(`${path}/schema/fields`, "is not a list");
    return [];
  }
  if (fields.length <= FIELDS_MAX) return fields;
  draft.warn(`${path}/schema/fields`, `has more than ${FIELDS_MAX} fields; the rest was left out`);
  return fields.slice(0, FIELDS_MAX);
}

function columnAttributes(field: Facets, index: number): Attributes {
  const ordinal = field["ordinal_position"];
  return given({
    dataType: text(field["type"]),
    description: text(field["description"]),
    position: Number.isSafeInteger(ordinal) ? (ordinal as number) : index + 1,
    fields: nestedFields(field["fields"], NESTING_MAX),
  });
}

function nestedFields(fields: unknown, levels: number): AttributeValue | undefined {
  if (!Array.isArray(fields) || fields.length === 0 || levels === 0) return undefined;
  return fields
    .slice(0, FIELDS_MAX)
    .filter((field) => isRecord(field))
    .map((field) =>
      given({
        name: text(field["name"]),
        dataType: text(field["type"]),
        description: text(field["description"]),
        fields: nestedFields(field["fields"], levels - 1),
      }),
    );
}
