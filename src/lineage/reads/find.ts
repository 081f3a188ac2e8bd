/** Finding one asset by what a person has of it: its id, or its name as it is shown. */
import type { Db } from "../../kernel/data/db.ts";
import { lineageError } from "../catalogue.ts";
import { type AssetName, keyOf, NODE_KINDS, type NodeKind, type Origin, ownName } from "../names.ts";
import { type AssetRow, readAssets, readAssetsByKey, readAssetsByName, readTablesByAlias } from "../store/reads.ts";
import { fullName } from "./shown.ts";

const ID = /^\d{1,19}$/;
const ID_MAX = 2n ** 63n - 1n;
/** A name of so many parts can be cut into a path in a few hundred ways. */
const PARTS_MAX = 16;
const SHOWN_MAX = 5;
/** Assets that share the last part of their names; who has more of them has to say more of the name. */
const CANDIDATES_MAX = 500;
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
  const whole = wholeNames(name).filter((one) => kind === null || one.kind === kind);
  const keys = whole.map(keyOf);
  const exact = keys.length === 0 ? [] : await readAssetsByKey(db, tenantId, keys);
  if (exact.length > 0) return exact.slice(0, limit);
  const tables = await readTablesByAlias(db, tenantId, keys);
  if (tables.length > 0) return tables.slice(0, limit);
  const kinds = kind === null ? NODE_KINDS : [kind];
  const rows = await readAssetsByName(db, tenantId, kinds, ownNames(name), CANDIDATES_MAX);
  return rows.filter((row) => [fullName(row), ownName(row)].includes(name) || endsWith(row, name)).slice(0, limit);
}

/** What may be the own name of an asset that is called so: `public.orders` may be a table of a schema, or a file; `etl/load` a job. */
function ownNames(name: string): string[] {
  const ends = [...name.matchAll(/[./]/g)].slice(-PARTS_MAX).map(({ index }) => name.slice(index + 1));
  return [...new Set([name, ...ends])];
}

function endsWith(row: AssetRow, name: string): boolean {
  return fullName(row).endsWith(`.${name}`);
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
