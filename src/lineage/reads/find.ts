/** Finds one asset by what a person has: its id, its full name or its address. */
import type { Db } from "../../kernel/data/db.ts";
import { lineageError } from "../catalogue.ts";
import { datasetTable } from "../extract/index.ts";
import { createNameHistory } from "../graph/name-history.ts";
import {
  type AssetName,
  columnName,
  keyOf,
  NODE_KINDS,
  type NodeKind,
  type Origin,
  ownName,
  selfAndParents,
} from "../graph/names.ts";
import { fullName } from "./shown.ts";
import { type AssetRow, readAssets, readAssetsByKey, readAssetsByName } from "./store/assets.ts";

const ID = /^\d{1,19}$/;
const ID_MAX = 2n ** 63n - 1n;
/** A name of so many parts can be cut into a path in a few hundred ways. */
const PARTS_MAX = 16;
const SHOWN_MAX = 5;
/** Assets that share the last part of their names; who has more of them has to say more of the name. */
const CANDIDATES_MAX = 500;
/** The times at which a name is taken to be used: today, or whenever it was used first. */
const NOW = Number.MAX_SAFE_INTEGER;
const EVER_SINCE = -1;
const ORIGINS: readonly Origin[] = ["gravitino", "external"];

/** Whether it can be one: what is not cannot belong to anything either. */
export function isId(text: string): boolean {
  return ID.test(text) && BigInt(text) <= ID_MAX;
}

export async function assetById(db: Db, tenantId: string, id: string): Promise<AssetRow> {
  const [asset] = isId(id) ? await readAssets(db, tenantId, [id]) : [];
  if (!asset) throw lineageError("ASSET_NOT_FOUND", { asset: id });
  return asset;
}

/** By id or by name. */
export async function findAsset(db: Db, tenantId: string, text: string): Promise<AssetRow> {
  const [byId] = isId(text) ? await readAssets(db, tenantId, [text]) : [];
  if (byId) return byId;
  const named = await findNamed(db, tenantId, null, text, SHOWN_MAX + 1);
  const [asset, ...others] = named;
  if (!asset) throw lineageError("ASSET_NOT_FOUND", { asset: text });
  if (others.length === 0) return asset;
  const which = named.slice(0, SHOWN_MAX).map((one) => `${one.id} (${one.kind} ${fullName(one)})`);
  throw lineageError("ASSET_AMBIGUOUS", { asset: text }, { which: which.join(", ") });
}

/** Those whose whole name this is; if there are none, those whose name ends with it, within whatever they lie in. */
export async function findNamed(
  db: Db,
  tenantId: string,
  kind: NodeKind | null,
  name: string,
  limit: number,
): Promise<AssetRow[]> {
  const whole = [...wholeNames(name), ...addressed(name)].filter((one) => kind === null || one.kind === kind);
  const exact = await readByName(db, tenantId, whole);
  if (exact.length > 0) return exact.slice(0, limit);
  const known = await findFormer(db, tenantId, whole);
  if (known.length > 0) return known.slice(0, limit);
  const kinds = kind === null ? NODE_KINDS : [kind];
  const rows = await readAssetsByName(db, tenantId, kinds, ownNames(name), CANDIDATES_MAX);
  return rows.filter((row) => [fullName(row), ownName(row)].includes(name) || endsWith(row, name)).slice(0, limit);
}

const readByName = (db: Db, tenantId: string, names: readonly AssetName[]): Promise<AssetRow[]> =>
  names.length === 0 ? Promise.resolve([]) : readAssetsByKey(db, tenantId, names.map(keyOf));

/**
 * Tables, and what lies below them, by an alias (a location, from a symlink); if there are none, by a
 * name that they have had: a location stays where it is when its table is renamed.
 */
async function findFormer(db: Db, tenantId: string, names: readonly AssetName[]): Promise<AssetRow[]> {
  const some = names.filter((name) => selfAndParents(name).some(({ kind }) => kind === "TABLE"));
  const history = createNameHistory({ rows: db.read }, tenantId);
  await history.load(some);
  for (const at of [NOW, EVER_SINCE]) {
    const resolved = some.flatMap((name) => history.resolve(name, at) ?? []);
    const found = await readByName(db, tenantId, resolved);
    if (found.length > 0) return found;
  }
  return [];
}

/** What may be the own name of an asset that is called so: `public.orders` may be a table of a schema, or a file; `etl/load` a job. */
function ownNames(name: string): string[] {
  const ends = [...name.matchAll(/[./]/g)].slice(-PARTS_MAX).map(({ index }) => name.slice(index + 1));
  return [...new Set([name, ...ends])];
}

function endsWith(row: AssetRow, name: string): boolean {
  return fullName(row).endsWith(`.${name}`);
}

/**
 * The names of the dataset at an address (`hdfs://namenode:8020/warehouse/orders`, `file:/tmp/a`), and of a column in it. By the
 * naming of OpenLineage the namespace is the scheme with the authority and the name what follows, for files `file` and the path; but
 * producers differ in whether a path begins with `/`, and some have more in their namespaces, so each slash may be the end of it.
 */
function addressed(shown: string): AssetName[] {
  const [, scheme = "", rest = ""] = /^([a-z][a-z0-9+.-]*):(.+)$/i.exec(shown) ?? [];
  if (!rest.includes("/")) return [];
  const pairs: [namespace: string, name: string][] = [];
  if (!rest.startsWith("//") || rest.startsWith("///")) {
    const path = rest.replace(/^\/*/, "/");
    for (const namespace of [scheme, `${scheme}:`, `${scheme}://`]) pairs.push([namespace, path]);
  }
  const start = scheme.length + (rest.startsWith("//") ? 3 : 1);
  for (const { index } of [...shown.slice(start).matchAll(/\//g)].slice(0, PARTS_MAX)) {
    const [namespace, name] = [shown.slice(0, start + index), shown.slice(start + index + 1)];
    if (name !== "") pairs.push([namespace, name], [namespace, `/${name}`]);
  }
  return pairs.flatMap(([namespace, name]) => namesAt(namespace, name));
}

/** A location may be written with a slash at its end, and a column behind its last dot. */
function namesAt(namespace: string, name: string): AssetName[] {
  const [plain, dot] = [name.replace(/\/+$/, ""), name.lastIndexOf(".")];
  const tables = [...new Set([name, plain, `${plain}/`])].filter((one) => one !== "" && one !== "/");
  const column = dot > 0 && dot < name.length - 1 ? name.slice(dot + 1) : undefined;
  return [
    ...tables.map((one) => datasetTable(namespace, one)),
    ...(column === undefined ? [] : [columnName(datasetTable(namespace, name.slice(0, dot)), column)]),
  ];
}

/** All names that are shown like this. Parts may contain dots themselves, as those of files and addresses do. */
function wholeNames(shown: string): AssetName[] {
  const names: AssetName[] = [
    { kind: "CATALOG", path: ["gravitino", shown] },
    { kind: "CATALOG", path: ["external", shown] },
    ...(["WORDROOT", "MODIFIER", "UNIT", "VALUEDOMAIN", "TAG"] as const).map((kind) => ({ kind, path: [shown] })),
  ];
  const parts = shown.split(".");
  if (parts.length > PARTS_MAX) return names;
  for (const path of cuts(parts, 4)) {
    for (const origin of ORIGINS) {
      const [catalog = "", second = "", third, fourth] = path;
      if (third === undefined) {
        names.push({ kind: "SCHEMA", path: [origin, catalog, second] });
        names.push({ kind: "TABLE", path: [origin, catalog, "", second] });
      } else if (fourth === undefined) {
        names.push({ kind: "TABLE", path: [origin, ...path] }, { kind: "METRIC", path: [origin, ...path] });
        names.push({ kind: "COLUMN", path: [origin, catalog, "", second, third] });
      } else {
        names.push({ kind: "COLUMN", path: [origin, ...path] });
      }
    }
  }
  return names;
}

/** Every way to join neighbouring parts so that two to `most` remain. */
function cuts(parts: readonly string[], most: number): string[][] {
  const found: string[][] = [];
  function cut(rest: readonly string[], path: readonly string[]): void {
    if (path.length >= 1) found.push([...path, rest.join(".")]);
    if (path.length + 1 >= most) return;
    for (let length = 1; length < rest.length; length += 1) {
      cut(rest.slice(length), [...path, rest.slice(0, length).join(".")]);
    }
  }
  cut(parts, []);
  return found;
}
