/** Tags and value domains that are added to assets or removed. A value domain of a column is a tag that begins with `vd:`. */
import { type AssetName, catalogName, columnName, linkName, schemaName, type TagEdgeKind } from "../../graph/names.ts";
import { cutAtFirstDot, gravitinoTable } from "../dataset-names.ts";
import type { Draft } from "../draft.ts";
import { facet, nameText } from "../facets.ts";
import type { Subject } from "./subject.ts";

const VALUE_DOMAIN_PREFIX = "vd:";
/** In each of the three lists. */
const TAGS_MAX = 1_000;

/** `associatedTags` is the state afterwards: what is in it is there, whatever else the event says. */
export function addAssociation(subject: Subject): void {
  const { dataset, path, draft } = subject;
  const association = facet(dataset.facets, "gravitinoTag");
  const asset = association && taggedAsset(association["objectType"], subject);
  if (!association || !asset) {
    draft.warn(`${path}/gravitinoTag`, "names no catalog, schema, table or column");
    return;
  }
  const tagsIn = (list: string) => tagsOf(association[list], `${path}/gravitinoTag/${list}`, draft);
  const added = tagsIn("tagsToAdd");
  const removed = tagsIn("tagsToRemove");
  const associated = tagsIn("associatedTags");
  draft.mention(asset.kind === "COLUMN" ? { kind: "TABLE", path: asset.path.slice(0, -1) } : asset);

  for (const tag of new Set([...[...added].filter((one) => !removed.has(one)), ...associated])) {
    const { kind, target } = bearing(asset, tag);
    draft.mention(target);
    draft.tag(kind, asset, target);
  }
  for (const tag of removed) {
    if (associated.has(tag)) continue;
    const { kind, target } = bearing(asset, tag);
    draft.mention(target);
    draft.ends(linkName(asset, kind, target.path[0] ?? ""));
  }
}

function taggedAsset(objectType: unknown, { dataset: { name }, catalog }: Subject): AssetName | undefined {
  if (objectType === "CATALOG") return catalogName("gravitino", name);
  if (catalog === "") return undefined;
  if (objectType === "SCHEMA") return schemaName("gravitino", catalog, name);
  if (objectType === "TABLE") return gravitinoTable(catalog, name);
  if (objectType !== "COLUMN") return undefined;
  const [schema, rest] = cutAtFirstDot(name);
  const [table, column] = cutAtFirstDot(rest);
  return table === "" ? undefined : columnName(gravitinoTable(catalog, `${schema}.${table}`), column);
}

function bearing(asset: AssetName, tag: string): { kind: TagEdgeKind; target: AssetName } {
  const isValueDomain =
    asset.kind === "COLUMN" && tag.startsWith(VALUE_DOMAIN_PREFIX) && tag.length > VALUE_DOMAIN_PREFIX.length;
  return isValueDomain
    ? { kind: "HAS_VALUE_DOMAIN", target: { kind: "VALUEDOMAIN", path: [tag.slice(VALUE_DOMAIN_PREFIX.length)] } }
    : { kind: "HAS_TAG", target: { kind: "TAG", path: [tag] } };
}

function tagsOf(tags: unknown, path: string, draft: Draft): Set<string> {
  if (!Array.isArray(tags)) return new Set();
  if (tags.length > TAGS_MAX) draft.warn(path, `has more than ${TAGS_MAX} tags; the rest was left out`);
  return new Set(tags.slice(0, TAGS_MAX).flatMap((tag) => nameText(tag) ?? []));
}
