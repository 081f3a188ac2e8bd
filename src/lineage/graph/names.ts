/**
 * Names of assets: a kind and a path. A name means different assets at different times, since tables are renamed, dropped
 * and created again; resolve.ts finds the asset that it meant at the time of an event.
 */
import { hashUuid } from "./hash-uuid.ts";

export const NODE_KINDS = [
  "CATALOG",
  "SCHEMA",
  "TABLE",
  "COLUMN",
  "SQL",
  "JOB",
  "METRIC",
  "WORDROOT",
  "MODIFIER",
  "UNIT",
  "VALUEDOMAIN",
  "TAG",
] as const;
export type NodeKind = (typeof NODE_KINDS)[number];

/**
 * What the path of each kind holds. `origin` is `gravitino` for catalogs that Gravitino manages and `external` for those
 * that stand for the namespace of a dataset: a namespace may have the name of a catalog.
 *
 *     CATALOG [origin, catalog]             SQL [job namespace, job name, hash of the statement]
 *     SCHEMA  [origin, catalog, schema]     JOB [job namespace, job name]
 *     TABLE   [origin, catalog, schema, table]            `schema` is empty where the dataset has none, such as a file
 *     COLUMN  [origin, catalog, schema, table, column]
 *     METRIC  [origin, catalog, schema, code]
 *     WORDROOT, MODIFIER, UNIT, VALUEDOMAIN [code]        TAG [name]
 *     LINK    [kind of the asset, ...path of the asset, kind of the edge, tag or code]
 *
 * A link is not an asset: it names a tag or value domain of an asset, so that removing it is an ending like a drop.
 */
export interface AssetName {
  readonly kind: NodeKind;
  readonly path: readonly string[];
}
export interface LinkName {
  readonly kind: "LINK";
  readonly path: readonly string[];
}
export type Name = AssetName | LinkName;

export type Origin = "gravitino" | "external";
export type TagEdgeKind = "HAS_TAG" | "HAS_VALUE_DOMAIN";

export const catalogName = (origin: Origin, catalog: string): AssetName => ({
  kind: "CATALOG",
  path: [origin, catalog],
});
export const schemaName = (origin: Origin, catalog: string, schema: string): AssetName => ({
  kind: "SCHEMA",
  path: [origin, catalog, schema],
});
export const tableName = (origin: Origin, catalog: string, schema: string, table: string): AssetName => ({
  kind: "TABLE",
  path: [origin, catalog, schema, table],
});
export const columnName = (table: AssetName, column: string): AssetName => ({
  kind: "COLUMN",
  path: [...table.path, column],
});
export const linkName = (asset: AssetName, kind: TagEdgeKind, target: string): LinkName => ({
  kind: "LINK",
  path: [asset.kind, ...asset.path, kind, target],
});

/** Its parent, if its kind has one. */
export function parentOf(name: Name): AssetName | undefined {
  return selfAndParents(name)[1] as AssetName | undefined;
}

/** Itself first, then its parent, up to the catalog. */
export function selfAndParents(name: Name): readonly Name[] {
  return knownOf(name).line;
}

/** The same name after `from`, which it is or lies under, became `to`. */
export function rebase(name: Name, from: AssetName, to: AssetName): Name {
  const skip = name.kind === "LINK" ? 1 : 0;
  const rest = name.path.slice(skip + from.path.length);
  return { kind: name.kind, path: [...name.path.slice(0, skip), ...to.path, ...rest] };
}

/** Its own part of the name: of a statement, the job that runs it. */
export function ownName({ kind, path }: AssetName): string {
  return (kind === "SQL" || kind === "JOB" ? path[1] : path.at(-1)) ?? "";
}

/**
 * 128 bits of a hash as a uuid: names may be longer than an index allows. Each part is hashed with its length, so that
 * `["a", "bc"]` and `["ab", "c"]` have different keys.
 */
export function keyOf(name: Name): string {
  return knownOf(name).key;
}

interface Known {
  key: string;
  line: readonly Name[];
}

/**
 * Caches keys and parents: every event has the same names, and computing these took most of the time of applying an event.
 * Names are immutable.
 */
const ofObject = new WeakMap<Name, Known>();
const ofText = new Map<string, Known>();
const REMEMBERED_MAX = 50_000;

function knownOf(name: Name): Known {
  const found = ofObject.get(name) ?? equalOf(name);
  ofObject.set(name, found);
  return found;
}

function equalOf(name: Name): Known {
  let text: string = name.kind;
  for (const part of name.path) text += `:${part.length}:${part}`;
  const found = ofText.get(text);
  if (found) return found;
  const parent = above(name);
  const known = { key: hashUuid(text), line: parent ? [name, ...selfAndParents(parent)] : [name] };
  if (ofText.size >= REMEMBERED_MAX) ofText.clear();
  ofText.set(text, known);
  return known;
}

function above({ kind, path }: Name): AssetName | undefined {
  if (kind === "SCHEMA") return { kind: "CATALOG", path: path.slice(0, 2) };
  if (kind === "TABLE" || kind === "METRIC") {
    // A dataset without a schema, such as a file, lies in its catalog.
    return path[2] === "" ? { kind: "CATALOG", path: path.slice(0, 2) } : { kind: "SCHEMA", path: path.slice(0, 3) };
  }
  if (kind === "COLUMN") return { kind: "TABLE", path: path.slice(0, 4) };
  if (kind === "LINK") return { kind: path[0] as NodeKind, path: path.slice(1, -2) };
  return undefined;
}
