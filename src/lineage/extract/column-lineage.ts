/**
 * The columnLineage facet in all its versions: 1-0 has one transformation for each output column, 1-1 several for each input
 * column, and 1-2 adds the columns on which the table as a whole depends, such as those it is filtered by.
 *
 * dbt and Dagster list no inputs where they send this facet, so a table whose columns it names is also an input: of the process
 * that writes the table with the facet, or of that table directly if the event has no process.
 */
import { isRecord } from "../../kernel/json/is-record.ts";
import { type AssetName, columnName } from "../graph/names.ts";
import type { Facets } from "../ingest/event.ts";
import { textOf } from "./draft.ts";
import { facet, nameText } from "./facets.ts";
import type { Identities } from "./identities.ts";
import type { Reading } from "./lineage-facet.ts";
import { filled, transformationText, transformationTexts } from "./transformations.ts";

/** Of one facet. A table of a thousand columns, each of which depends on fifty others. */
const INPUT_FIELDS_MAX = 50_000;

/** `writer` is the process that writes the table, if the event has one. */
export function addColumnLineage(
  table: AssetName,
  facets: Facets,
  path: string,
  { identities, draft }: Reading,
  writer: AssetName | undefined,
): void {
  const lineage = facet(facets, "columnLineage");
  if (!lineage) return;
  let left = INPUT_FIELDS_MAX;
  const sources = new Set<AssetName>();

  function add(derived: AssetName, inputFields: unknown, fallback: string | undefined, where: () => string): void {
    if (!Array.isArray(inputFields)) {
      draft.warn(where(), "is not a list");
      return;
    }
    for (const [index, input] of inputFields.entries()) {
      if (left === 0) return;
      left -= 1;
      if (left === 0)
        draft.warn(`${path}/columnLineage`, `names more than ${INPUT_FIELDS_MAX} columns; the rest was left out`);
      const source = isRecord(input) ? sourceOf(input, identities) : undefined;
      if (!source) {
        draft.warn(`${where()}/${index}`, "has no namespace, name or field");
        continue;
      }
      sources.add(source.table);
      const own = transformationTexts((input as Facets)["transformations"]);
      const transformations = own.length === 0 && fallback !== undefined ? [fallback] : own;
      draft.edge("DERIVES_FROM", derived, columnName(source.table, source.field), transformations);
    }
  }

  const { fields, dataset } = lineage;
  if (isRecord(fields)) {
    for (const [field, entry] of Object.entries(fields)) {
      const column = nameText(field);
      const where = () => `${path}/columnLineage/fields/${field}/inputFields`;
      if (column === undefined || !isRecord(entry)) draft.warn(where(), "is missing");
      else add(columnName(table, column), entry["inputFields"], deprecatedTransformation(entry), where);
    }
  } else if (fields !== undefined) {
    draft.warn(`${path}/columnLineage/fields`, "is not an object");
  }
  if (dataset !== undefined) add(table, dataset, undefined, () => `${path}/columnLineage/dataset`);
  for (const source of sources) {
    if (textOf(source) === textOf(table)) continue;
    if (writer) draft.edge("INPUT_OF", source, writer);
    else draft.edge("DERIVES_FROM", table, source);
  }
}

function sourceOf(input: Facets, identities: Identities): { table: AssetName; field: string } | undefined {
  const namespace = nameText(input["namespace"]);
  const name = nameText(input["name"]);
  const field = nameText(input["field"]);
  if (namespace === undefined || name === undefined || field === undefined) return undefined;
  return { table: identities.named(namespace, name), field };
}

/**
 * Before 1-1 an output column was an IDENTITY of its inputs, or MASKED. Clients that know only later versions fill in both
 * fields with blank text, which says nothing: such a column is not known to be a direct one.
 */
function deprecatedTransformation({
  transformationType,
  transformationDescription: description,
}: Facets): string | undefined {
  const type = filled(transformationType);
  if (type === undefined && filled(description) === undefined) return undefined;
  const isMasked = type === "MASKED";
  const subtype = isMasked ? "TRANSFORMATION" : nameText(type);
  return transformationText("DIRECT", subtype, description, isMasked);
}
