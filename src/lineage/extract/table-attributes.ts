/** The attributes of a table from the common facets of a dataset. */
import { isRecord } from "../../kernel/json/is-record.ts";
import type { Attributes, AttributeValue } from "../graph/facts.ts";
import type { Dataset, Facets } from "../ingest/event.ts";
import type { Draft } from "./draft.ts";
import { facet, given, isDeleted, text } from "./facets.ts";
import type { Identity } from "./identities.ts";

const LIST_MAX = 1_000;

/** `producer` is who writes the table: for one that is only read there is none. */
export function tableAttributes(
  { facets }: Dataset,
  { table, namespace, name }: Identity,
  producer: string | null,
  path: string,
  draft: Draft,
): Attributes {
  const isExternal = table.path[0] === "external";
  return given({
    producer: producer ?? undefined,
    description: descriptionOf(facets),
    datasetType: text(facet(facets, "datasetType")?.["datasetType"]),
    owners: listOf(facets, "ownership", "owners", ["name", "type"], path, draft),
    tags: listOf(facets, "tags", "tags", ["key", "value", "source", "field"], path, draft),
    catalog: catalogOf(facets),
    namespace: isExternal ? namespace : undefined,
    datasetName: isExternal ? name : undefined,
  });
}

/** Null where the facet says that there is none any more. */
export function descriptionOf(facets: Facets): string | null | undefined {
  if (isDeleted(facets, "documentation")) return null;
  return text(facet(facets, "documentation")?.["description"]);
}

function listOf(
  facets: Facets,
  name: string,
  key: string,
  columns: readonly string[],
  path: string,
  draft: Draft,
): AttributeValue | undefined {
  if (isDeleted(facets, name)) return null;
  const list = facet(facets, name)?.[key];
  if (list === undefined) return undefined;
  if (!Array.isArray(list)) {
    draft.warn(`${path}/${name}/${key}`, "is not a list");
    return undefined;
  }
  const entries = list.slice(0, LIST_MAX).filter((entry) => isRecord(entry));
  return entries.map((entry) => given(Object.fromEntries(columns.map((column) => [column, text(entry[column])]))));
}

/** Where the table is registered: the name, framework and type of a catalog, which its namespace does not contain. */
function catalogOf(facets: Facets): AttributeValue | undefined {
  const catalog = facet(facets, "catalog");
  if (!catalog) return undefined;
  const { name, framework, type, metadataUri, warehouseUri } = catalog;
  return given({
    name: text(name),
    framework: text(framework),
    type: text(type),
    metadataUri: text(metadataUri),
    warehouseUri: text(warehouseUri),
  });
}
