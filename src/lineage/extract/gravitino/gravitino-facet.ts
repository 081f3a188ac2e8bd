/** Reads the `gravitino` facet of a catalog, schema or table. */
import { isRecord } from "../../../kernel/json/is-record.ts";
import type { Attributes, AttributeValue, MemberFact } from "../../graph/facts.ts";
import type { Facets } from "../../ingest/event.ts";
import type { Draft } from "../draft.ts";
import { anyValue, attributeValue, facet, flag, given, nameText, text } from "../facets.ts";
import { schemaColumns } from "../schema-facet.ts";
import { descriptionOf } from "../table-attributes.ts";

/** A table as an event describes it, to which the changes of the same event are then applied. */
export interface TableState {
  attributes: Record<string, AttributeValue>;
  columns: Map<string, Attributes>;
  /** Changes of attributes that the event does not have as a whole. */
  members: MemberFact[];
}

/** Of catalogs, schemas and tables. */
export function commonAttributes(facets: Facets): Record<string, AttributeValue> {
  const { description, properties } = facet(facets, "gravitino") ?? {};
  return given({
    description: text(description) ?? descriptionOf(facets),
    properties: isRecord(properties) ? attributeValue(properties) : undefined,
  });
}

export function tableState(facets: Facets, path: string, draft: Draft): TableState {
  const gravitino = facet(facets, "gravitino") ?? {};
  const attributes = {
    ...commonAttributes(facets),
    ...given({
      partitions: anyValue(gravitino["partitions"]),
      distribution: anyValue(gravitino["distribution"]),
      sortOrders: anyValue(gravitino["sortOrders"]),
      indexes: anyValue(gravitino["indexes"]),
      creator: anyValue(gravitino["creator"]),
      createTime: anyValue(gravitino["createTime"]),
      lastModifier: anyValue(gravitino["lastModifier"]),
      lastModifiedTime: anyValue(gravitino["lastModifiedTime"]),
    }),
  };
  const columns = schemaColumns(facets, path, draft);
  for (const [name, more] of constraintsOf(gravitino["columns"], path, draft)) {
    columns.set(name, { ...columns.get(name), ...more });
  }
  return { attributes, columns, members: [] };
}

/** Of a column, in the `columns` of the facet and in a change that adds one. */
export function columnConstraints(column: Facets): Record<string, AttributeValue> {
  return given({
    nullable: flag(column["nullable"]),
    autoIncrement: flag(column["autoIncrement"]),
    defaultValue: anyValue(column["defaultValue"]),
  });
}

function constraintsOf(columns: unknown, path: string, draft: Draft): [string, Attributes][] {
  if (columns === undefined || columns === null) return [];
  if (!Array.isArray(columns)) {
    draft.warn(`${path}/gravitino/columns`, "is not a list");
    return [];
  }
  const constraints: [string, Attributes][] = [];
  for (const [index, column] of columns.entries()) {
    const name = isRecord(column) ? nameText(column["name"]) : undefined;
    if (name === undefined) draft.warn(`${path}/gravitino/columns/${index}`, "has no name");
    else constraints.push([name, columnConstraints(column as Facets)]);
  }
  return constraints;
}
